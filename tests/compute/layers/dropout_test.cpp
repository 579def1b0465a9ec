// Dropout: the generator's published answers, the same bits everywhere, the right share.
#include "../guarded_buffer.hpp"
#include "compute/layers/layers.hpp"
#include "layer_case.hpp"

namespace tacc::layers::test {
namespace {

/// Whether the number at counter {counter, step} and half `half` of all words is kept, with ones as input.
bool isKept(const LayerKernels& kernels, std::uint64_t counter, std::uint64_t step, std::uint64_t seed, int half,
            std::uint32_t share) {
  const std::vector<float> ones(128, 1.0F);
  std::vector<float> output(128);
  kernels.dropout({ones.data(), output.data(), 128, counter / 16, seed, step, share << 16, 2.0F, false});
  const float result = output[static_cast<std::size_t>(half) * 16 + counter % 16];
  EXPECT_TRUE(result == 0 || result == 2);
  return result != 0;
}

TEST(Dropout, HasThePublishedRandomNumbers) {
  // Random123's known answers for philox4x32 with 7 rounds.
  struct Answer {
    std::uint64_t counter, step, seed;
    std::uint32_t words[4];
  };
  constexpr std::uint64_t ones = ~std::uint64_t{0};
  constexpr Answer answers[] = {
      {0, 0, 0, {0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}},
      {ones, ones, ones, {0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}},
      {0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822, {0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}}};
  for (const LayerKernels* kernels : availableTables()) {
    for (const Answer& answer : answers) {
      for (int half = 0; half < 8; ++half) {
        const std::uint32_t number = answer.words[half / 2] >> (half % 2 * 16) & 0xFFFF;
        EXPECT_TRUE(isKept(*kernels, answer.counter, answer.step, answer.seed, half, number)) << kernels->isa;
        EXPECT_FALSE(isKept(*kernels, answer.counter, answer.step, answer.seed, half, number + 1)) << kernels->isa;
      }
    }
  }
}

TEST(Dropout, IsTheSameOnEveryInstructionSetAndForEveryLength) {
  constexpr std::size_t most = 33000;  // more than one task
  Floats input(most), all(most);
  for (std::size_t i = 0; i < most; ++i) input.data()[i] = 1.0F + static_cast<float>(i);
  dropout(input.data(), all.data(), most, 0.3F, 7, 9, portableTable(), conv::TaskExecutor(*taccSerialExecutor()));
  for (const LayerKernels* kernels : availableTables()) {
    for (std::size_t count = 1; count <= most; count += count < 200 ? 1 : 8200) {
      tacc::test::GuardedBuffer output(count * sizeof(float), 4);
      dropout(input.data(), output.as<float>(), count, 0.3F, 7, 9, *kernels, conv::TaskExecutor(*taccSerialExecutor()));
      EXPECT_TRUE(output.isIntact());
      EXPECT_TRUE(std::equal(all.data(), all.data() + count, output.as<float>())) << kernels->isa << " " << count;
    }
  }
}

TEST(Dropout, ThreadsChangeNoBitAndBackwardDropsTheSame) {
  constexpr std::size_t count = 200001;
  Floats input(count), output(count), gradient(count);
  for (std::size_t i = 0; i < count; ++i) {
    input.data()[i] = 1.0F + static_cast<float>(i);
    gradient.data()[i] = 3.0F;
  }
  ASSERT_EQ(taccDropout(input.data(), output.data(), count, 0.5F, 1, 2, taccSerialExecutor()), taccSuccess);
  const ThreadedExecutor threads(4);
  ASSERT_EQ(taccDropout(gradient.data(), gradient.data(), count, 0.5F, 1, 2, &threads.get()), taccSuccess);
  ASSERT_EQ(taccDropout(input.data(), input.data(), count, 0.5F, 1, 2, &threads.get()), taccSuccess);
  EXPECT_TRUE(input == output);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(output.data()[i] == 0, gradient.data()[i] == 0);
    ASSERT_EQ(output.data()[i], output.data()[i] == 0 ? 0 : 2 * (1.0F + static_cast<float>(i)));
  }
}

TEST(Dropout, DropsTheShareThatItShould) {
  constexpr std::size_t count = 1 << 20;
  Floats ones(count), first(count), other(count);
  std::fill_n(ones.data(), count, 1.0F);
  // Of the rates between two 65536ths the nearer one counts.
  constexpr float step = 0x1p-16F;
  for (const float rate : {0.0F, 655 * step, 0.5F, 58982 * step}) {
    const float near = rate + 0.4F * step;
    ASSERT_EQ(taccDropout(ones.data(), first.data(), count, near, 3, 0, taccSerialExecutor()), taccSuccess);
    ASSERT_EQ(taccDropout(ones.data(), other.data(), count, near, 3, 1, taccSerialExecutor()), taccSuccess);
    double dropped = 0, both = 0;
    for (std::size_t i = 0; i < count; ++i) {
      dropped += first.data()[i] == 0;
      both += first.data()[i] == 0 && other.data()[i] == 0;
      ASSERT_TRUE(first.data()[i] == 0 || first.data()[i] == 1 / (1 - rate));
    }
    const double square = double(rate) * rate;
    EXPECT_NEAR(dropped / count, rate, 5 * std::sqrt(rate * (1 - rate) / count));
    EXPECT_NEAR(both / count, square, 5 * std::sqrt(square * (1 - square) / count));  // steps have nothing in common
  }
}

TEST(Dropout, SaysWhatIsWrong) {
  float some[4] = {};
  for (const float rate : {1.0F, -0.1F, std::nanf("")}) {
    EXPECT_EQ(taccDropout(some, some, 4, rate, 0, 0, taccSerialExecutor()), taccInvalidArgument);
    EXPECT_THAT(taccGetLastError(nullptr), testing::HasSubstr("it has to be from 0 to below 1"));
  }
  EXPECT_EQ(taccDropout(nullptr, some, 4, 0.5F, 0, 0, taccSerialExecutor()), taccInvalidArgument);
  EXPECT_EQ(taccDropout(some, some, 4, 0.5F, 0, 0, nullptr), taccInvalidArgument);
  EXPECT_EQ(taccDropout(nullptr, nullptr, 0, 0.5F, 0, 0, taccSerialExecutor()), taccSuccess);
}

}  // namespace
}  // namespace tacc::layers::test

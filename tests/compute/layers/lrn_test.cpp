// Local response normalisation against its definition in float64, and its gradient against differences of that.
#include "../guarded_buffer.hpp"
#include "compute/layers/layers.hpp"
#include "layer_case.hpp"

namespace tacc::layers::test {
namespace {

using conv::TaskExecutor;

taccLrnDesc_t describe(const Sizes& s, int window, float alpha, float beta) {
  taccLrnDesc_t desc = TACC_LRN_INITIALIZER;
  desc.batch = s.batch;
  desc.channels = s.channels;
  desc.height = s.height;
  desc.width = s.width;
  desc.window = window;
  desc.alpha = alpha;
  desc.beta = beta;
  desc.base = 1.5F;
  return desc;
}

/// The channels of one pixel by the definition.
struct Pixel {
  Pixel(const taccLrnDesc_t& d, const Sizes& sizes, const Floats& input, int n, int p) : desc(d) {
    for (int c = 0; c < sizes.channels; ++c) x.push_back(input[sizes.at(n, c, p)]);
  }
  double output(int c) const {
    double sum = 0;
    for (int i = c - desc.window / 2; i <= c + desc.window / 2; ++i) {
      if (i >= 0 && i < static_cast<int>(x.size()))
        sum += x[static_cast<std::size_t>(i)] * x[static_cast<std::size_t>(i)];
    }
    return x[static_cast<std::size_t>(c)] * std::pow(desc.base + double(desc.alpha) / desc.window * sum, -desc.beta);
  }
  taccLrnDesc_t desc;
  std::vector<double> x;
};

TEST(Lrn, MatchesTheDefinition) {
  for (const LayerKernels* kernels : availableTables()) {
    for (const int channels : {1, 16, 20, 70}) {
      for (const int window : {1, 3, 5, 33}) {
        for (const float beta : {0.75F, 0.5F, -1.2F}) {
          const Sizes sizes{2, channels, 5, 7};
          const taccLrnDesc_t desc = describe(sizes, window, 40, beta);
          const Floats input = someTensor(sizes, 1);
          Floats output(sizes.floats());
          std::fill_n(output.data(), output.size(), 1e30F);
          lrnForward(desc, input.data(), output.data(), *kernels, TaskExecutor(*taccSerialExecutor()));
          for (int i = 0; i < 70; ++i) {
            const Pixel pixel(desc, sizes, input, i / 35, i % 35);
            for (int c = 0; c < channels; ++c) {
              const double right = pixel.output(c);
              EXPECT_NEAR(output[sizes.at(i / 35, c, i % 35)], right, 2e-6 * std::abs(right)) << kernels->isa;
            }
          }
          expectZeroPadding(sizes, output);
        }
      }
    }
  }
}

TEST(Lrn, PowersAreRightFromTinyToHuge) {
  for (const LayerKernels* kernels : availableTables()) {
    const Sizes sizes{1, 1, 1, 60};
    taccLrnDesc_t desc = describe(sizes, 1, 1, 0.75F);
    desc.base = 1e-12F;
    Floats input(sizes.floats()), output(sizes.floats());
    for (int p = 0; p < 60; ++p) input[sizes.at(0, 0, p)] = std::pow(10.0F, static_cast<float>(p - 30) / 2.0F);
    lrnForward(desc, input.data(), output.data(), *kernels, TaskExecutor(*taccSerialExecutor()));
    for (int p = 0; p < 60; ++p) {
      const double right = Pixel(desc, sizes, input, 0, p).output(0);
      EXPECT_NEAR(output[sizes.at(0, 0, p)], right, 4e-6 * right) << kernels->isa << " " << p;
    }
  }
}

TEST(Lrn, GradientIsThatOfTheDefinition) {
  for (const LayerKernels* kernels : availableTables()) {
    for (const int channels : {3, 37}) {
      for (const int window : {3, 5, 21}) {
        const Sizes sizes{2, channels, 3, 6};
        const taccLrnDesc_t desc = describe(sizes, window, 20, 0.75F);
        const Floats input = someTensor(sizes, 1);
        const Floats gradient = someTensor(sizes, 2);
        Floats result(sizes.floats());
        std::fill_n(result.data(), result.size(), 1e30F);
        lrnBackward(desc, input.data(), gradient.data(), result.data(), *kernels, TaskExecutor(*taccSerialExecutor()));
        for (int i = 0; i < 36; ++i) {
          Pixel pixel(desc, sizes, input, i / 18, i % 18);
          const auto loss = [&] {
            double sum = 0;
            for (int c = 0; c < channels; ++c) sum += pixel.output(c) * gradient[sizes.at(i / 18, c, i % 18)];
            return sum;
          };
          for (int c = 0; c < channels; ++c) {
            double& x = pixel.x[static_cast<std::size_t>(c)];
            const double kept = x;
            x = kept + 1e-5;
            const double above = loss();
            x = kept - 1e-5;
            const double below = loss();
            x = kept;
            EXPECT_NEAR(result[sizes.at(i / 18, c, i % 18)], (above - below) / 2e-5, 2e-5) << kernels->isa << " " << c;
          }
        }
        expectZeroPadding(sizes, result);
      }
    }
  }
}

TEST(Lrn, ThreadsChangeNoBitAndNothingOutsideIsTouched) {
  const Sizes sizes{2, 40, 17, 19};
  const std::size_t bytes = sizes.floats() * sizeof(float);
  const taccLrnDesc_t desc = describe(sizes, 5, 1, 0.75F);
  const Floats input = someTensor(sizes, 1);
  const Floats gradient = someTensor(sizes, 2);
  Floats output(sizes.floats()), result(sizes.floats());
  ASSERT_EQ(taccLrnForward(&desc, input.data(), output.data(), taccSerialExecutor()), taccSuccess);
  ASSERT_EQ(taccLrnBackward(&desc, input.data(), gradient.data(), result.data(), taccSerialExecutor()), taccSuccess);
  const ThreadedExecutor threads(3);
  for (const bool atEnd : {false, true}) {
    tacc::test::PageBuffer from(40), toward(40), to(40);
    const auto place = [&](tacc::test::PageBuffer& buffer) {
      return reinterpret_cast<float*>(atEnd ? buffer.atEnd(bytes) : buffer.atBegin());
    };
    std::copy_n(input.data(), input.size(), place(from));
    std::copy_n(gradient.data(), gradient.size(), place(toward));
    ASSERT_EQ(taccLrnForward(&desc, place(from), place(to), &threads.get()), taccSuccess);
    EXPECT_TRUE(std::equal(output.data(), output.data() + output.size(), place(to)));
    ASSERT_EQ(taccLrnBackward(&desc, place(from), place(toward), place(to), &threads.get()), taccSuccess);
    EXPECT_TRUE(std::equal(result.data(), result.data() + result.size(), place(to)));
  }
}

TEST(Lrn, SaysWhatIsWrong) {
  float some[64] = {}, other[64] = {};
  const auto refusal = [&](auto member, auto value) -> std::string {
    taccLrnDesc_t desc = describe({1, 4, 2, 2}, 5, 1, 0.75F);
    desc.*member = value;
    EXPECT_EQ(taccLrnForward(&desc, some, other, taccSerialExecutor()), taccInvalidArgument);
    return taccGetLastError(nullptr);
  };
  EXPECT_THAT(refusal(&taccLrnDesc_t::size, std::size_t{8}), testing::HasSubstr("TACC_LRN_INITIALIZER"));
  EXPECT_THAT(refusal(&taccLrnDesc_t::window, 4), testing::HasSubstr("window is 4; it has to be odd, from 1 to 33"));
  EXPECT_THAT(refusal(&taccLrnDesc_t::window, 35), testing::HasSubstr("window is 35"));
  EXPECT_THAT(refusal(&taccLrnDesc_t::base, 0.0F), testing::HasSubstr("base is 0"));
  EXPECT_THAT(refusal(&taccLrnDesc_t::alpha, -1.0F), testing::HasSubstr("alpha is -1"));
  EXPECT_THAT(refusal(&taccLrnDesc_t::beta, std::nanf("")), testing::HasSubstr("beta is nan"));
  EXPECT_THAT(refusal(&taccLrnDesc_t::width, -2), testing::HasSubstr("width is -2"));
}

}  // namespace
}  // namespace tacc::layers::test

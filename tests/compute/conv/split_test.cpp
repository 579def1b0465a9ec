// Products of split numbers: where rows come to lie, how exact sums are, and what numbers that are not finite do.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "compute/conv/amx/bf16x3.hpp"
#include "compute/conv/amx/bf16x3_jobs.hpp"
#include "conv_case.hpp"
#include "plain_tiles.hpp"
#include "threaded_executor.hpp"

namespace tacc::conv::test {
namespace {

const KernelSet* splittingKernels() {
  for (const KernelSet* kernels : availableKernels()) {
    if (kernels->split != nullptr) return kernels;
  }
  return nullptr;
}

/// Of some images of 16 channels, forward or backward to the data.
taccConvDesc_t someConvolution(std::mt19937& random) {
  const auto from = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  taccConvDesc_t desc = convolution(from(0, 1) == 0 ? taccConvForward : taccConvBackwardData, from(1, 5), 16,
                                    from(1, 15), from(1, 20), 16, 1);
  chooseKernel(desc, random);
  return desc;
}

/// Which number a row begins with: its place in the source, or -1 for zeros. Runs are in order and within the rows.
std::vector<std::ptrdiff_t> sourcesOf(const Bf16x3Image& image, int part, int phase, int stride) {
  std::vector<std::ptrdiff_t> sources(static_cast<std::size_t>(image.rows()), -1);
  std::ptrdiff_t done = 0;
  for (const Bf16x3Run& run : image.runs(part, phase)) {
    EXPECT_GE(run.row, done);
    EXPECT_GT(run.rows, 0);
    done = run.row + run.rows;
    EXPECT_LE(done, image.rows());
    if (testing::Test::HasFailure()) break;
    for (int i = 0; i < run.rows; ++i)
      sources[static_cast<std::size_t>(run.row + i)] = run.source + std::ptrdiff_t{i} * stride * blockLength;
  }
  return sources;
}

void expectEveryTapReadsItsPixel(const taccConvDesc_t& desc, std::size_t bytes) {
  const Description d = understand(desc);
  const SplitSides sides(d);
  const std::vector<Bf16x3Job> jobs = splitJobs(d);
  Bf16x3Image image = uncutSplitImage(d, jobs);
  image.choosePart(d.shape.batch, bytes);
  image.findRuns(sides.in.steps());
  std::map<std::ptrdiff_t, int> written;  // how often, by place
  for (int index = 0; index < image.parts(); ++index) {
    const Bf16x3Image::Part part = image.part(index);
    std::vector<std::vector<std::ptrdiff_t>> sources;
    for (int phase = 0; phase < image.phases(); ++phase)
      sources.push_back(sourcesOf(image, index, phase, sides.strideWidth));
    for (const Bf16x3Job& job : jobs) {
      const auto places = image.outputs(job.outHeight, job.outWidth, sides.out.image, job.outLine, job.outPixel);
      const int positions = image.positions(part, job.outHeight, job.outWidth);
      for (int p = 0; p < positions; ++p) {
        const std::ptrdiff_t place = places[static_cast<std::size_t>(p)];
        if (place < 0) continue;
        ++written[part.image * sides.out.image + job.output + part.line * job.outLine + place];
        const std::ptrdiff_t ofImage = place % sides.out.image;
        const auto x = static_cast<int>(ofImage % job.outLine / job.outPixel);
        const auto y = static_cast<int>(ofImage / job.outLine) + part.line;
        for (const Tap& tap : job.taps) {
          const int line = y * sides.strideHeight + tap.dy, column = x * sides.strideWidth + tap.dx;
          const bool isInside = line >= 0 && line < sides.height && column >= 0 && column < sides.width;
          const std::ptrdiff_t right =
              isInside ? place / sides.out.image * sides.in.image + (std::ptrdiff_t{line} * sides.width + column) * 16
                       : -1;
          const auto row = static_cast<std::size_t>(p + image.distanceOf(tap));
          ASSERT_EQ(sources[static_cast<std::size_t>(image.phaseOf(tap))].at(row), right)
              << d.shape.text() << ", " << bytes << " bytes, part " << index << ", output " << y << " " << x;
        }
      }
    }
  }
  for (const auto& [place, times] : written) EXPECT_EQ(times, 1) << place;
  EXPECT_EQ(static_cast<std::ptrdiff_t>(written.size()) * blockLength, sides.out.image * d.shape.batch)
      << d.shape.text();
}

TEST(Bf16x3Image, EveryTapReadsItsPixel) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const taccConvDesc_t desc = someConvolution(random);
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{10'000}, std::size_t{40'000}, std::size_t{1} << 30}) {
      expectEveryTapReadsItsPixel(desc, bytes);
      if (HasFatalFailure()) return;
    }
  }
}

/// Of the plans for tiles, on tiles in plain loops: AMX is needed for its instructions only.
TEST(Split, IsExactOnTilesInPlainLoops) {
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    taccConvDesc_t desc = someConvolution(random);
    if (i % 3 == 0) desc.pass = taccConvBackwardWeights;
    desc.inChannels = 1 + static_cast<int>(random() % 100);
    desc.outChannels = 1 + static_cast<int>(random() % 100);
    chooseEpilogue(desc, random);
    desc.maxWorkers = 3;
    const Case test(desc);
    Description forced = withKernels(test.description(), plainTileKernels());
    forced.algorithm = "split";
    const auto plan = makePlan(forced, plainTileKernels()).plan;
    EXPECT_EQ(plan->kernel(), "amx 32x2");
    const ThreadedExecutor threads(3);
    const taccExecutor_t& executor = i % 2 == 0 ? *taccSerialExecutor() : threads.get();
    EXPECT_TRUE(test.isRight(test.run(*plan, executor), test.expected())) << test.text();
  }
}

struct Errors {
  double largest = 0, sum = 0;
  void add(double error, double scale) {
    largest = std::max(largest, std::abs(error) / scale);
    sum += error / scale;
  }
};

/// Of the results of one plan, in units of 2^-24 times the sum of the products' magnitudes.
Errors errorsOf(const Case& test, const char* algorithm) {
  Description forced = test.description();
  forced.algorithm = algorithm;
  const Floats result = test.run(*makePlan(forced, *splittingKernels()).plan, *taccSerialExecutor());
  Case magnitudes = test;
  for (Floats* floats : {&magnitudes.input, &magnitudes.weights, &magnitudes.outputGradient}) {
    for (std::size_t i = 0; i < floats->size(); ++i) floats->data()[i] = std::abs(floats->data()[i]);
  }
  const Floats right = test.expected(), scale = magnitudes.expected();
  Errors errors;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (scale.data()[i] == 0) continue;
    errors.add((double(result.data()[i]) - double(right.data()[i])) * 0x1p24, scale.data()[i]);
  }
  errors.sum /= static_cast<double>(result.size());
  return errors;
}

/// Every tensor becomes a sample of `next`.
template <class Next>
Case caseOf(const taccConvDesc_t& desc, const Next& next) {
  Case test(desc);
  for (Floats* floats : {&test.input, &test.weights, &test.outputGradient}) {
    for (std::size_t i = 0; i < floats->size(); ++i) floats->data()[i] = next();
  }
  return test;
}

class SplitErrors : public testing::TestWithParam<taccConvPass_t> {};

TEST_P(SplitErrors, AreThoseOfFloat32) {
  if (splittingKernels() == nullptr) GTEST_SKIP() << "this CPU has no AMX";
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-20, 20);
  const std::pair<const char*, std::function<float()>> samples[] = {
      {"normal", [&] { return normal(random); }},
      {"positive", [&] { return std::abs(normal(random)); }},
      {"of all magnitudes", [&] { return std::ldexp(normal(random), exponent(random)); }},
      {"with all bits", [&] { return 2 - 0x1p-23F * static_cast<float>(1 + exponent(random) % 7 + 7); }}};
  for (const auto& [name, next] : samples) {
    for (const taccConvDesc_t& desc :
         {convolution(GetParam(), 2, 64, 9, 9, 32, 3, 1, 1), convolution(GetParam(), 3, 256, 6, 6, 32, 1)}) {
      const Case test = caseOf(desc, next);
      const Errors split = errorsOf(test, "split"), plain = errorsOf(test, "direct");
      // Each product alone is within 4 units; sums round, of either kind.
      EXPECT_LT(split.largest, std::max(4.0, 1.5 * plain.largest)) << name << " " << test.text();
      EXPECT_LT(std::abs(split.sum), std::max(0.3, 1.5 * std::abs(plain.sum))) << name << ": biased, " << test.text();
      std::printf("%s, %s: split %.3f (mean %.4f), float32 %.3f (%.4f)\n", test.text().c_str(), name, split.largest,
                  split.sum, plain.largest, plain.sum);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Passes, SplitErrors, testing::ValuesIn(allPasses));

TEST(Split, KeepsWhatIsNotFiniteToItsOutputs) {
  const KernelSet* const kernels = splittingKernels();
  if (kernels == nullptr) GTEST_SKIP() << "this CPU has no AMX";
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::uint32_t bits = 0x7F800001;  // a signalling NaN whose upper half is infinity's
  float quiet = 0;
  std::memcpy(&quiet, &bits, sizeof(quiet));
  for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), quiet}) {
    Case test(convolution(taccConvForward, 1, 32, 8, 8, 32, 3, 1, 1));
    Description forced = test.description();
    forced.algorithm = "split";
    for (std::size_t i = 0; i < test.weights.size(); ++i) test.weights.data()[i] = 1.5F;
    const auto plan = makePlan(forced, *kernels).plan;
    const Floats good = test.run(*plan, *taccSerialExecutor());
    test.input.data()[(4 * 8 + 5) * blockLength + 3] = bad;
    const Floats result = test.run(*plan, *taccSerialExecutor());
    for (int block = 0; block < 2; ++block) {
      for (int y = 0; y < 8; ++y) {
        for (int x = 0; x < 8; ++x) {
          const std::ptrdiff_t at = ((block * 8 + y) * 8 + x) * blockLength + 7;
          const bool isTouched = std::abs(y - 4) <= 1 && std::abs(x - 5) <= 1;
          if (isTouched) {
            EXPECT_FALSE(std::isfinite(result[at])) << bad << " " << y << " " << x;
          } else {
            EXPECT_EQ(result[at], good[at]) << bad << " " << y << " " << x;
          }
        }
      }
    }
  }
}

TEST(Split, LargestAndSmallestNumbers) {
  const KernelSet* const kernels = splittingKernels();
  if (kernels == nullptr) GTEST_SKIP() << "this CPU has no AMX";
  // Large ones do not become infinite when they are split. Products below 2^-126 are taken for zero, and so are parts.
  for (const auto& [value, weight] :
       {std::pair{3.4e38F, 0x1p-3F}, {0x1.fffffep127F, 0x1.5p-4F}, {0x1.234566p-100F, 1.0F}}) {
    Case test(convolution(taccConvForward, 1, 32, 4, 4, 16, 1));
    Description forced = test.description();
    forced.algorithm = "split";
    std::fill_n(test.input.data(), test.input.size(), 0.0F);
    std::fill_n(test.weights.data(), test.weights.size(), weight);
    for (int pixel = 0; pixel < 16; ++pixel) test.input[pixel * blockLength] = value;
    const Floats result = test.run(*makePlan(forced, *kernels).plan, *taccSerialExecutor());
    const float right = value * weight;
    for (std::size_t i = 0; i < result.size(); ++i) EXPECT_NEAR(result.data()[i], right, right * 0x1p-22F) << value;
  }
}

}  // namespace
}  // namespace tacc::conv::test

// What no kernel of this kind can beat: as many multiply-adds as the layer has, with nothing else, or its tensors read
// and written once, whichever takes longer. Measured in turn with those that compute, so it follows the clock and what
// others do to the core.
#include "compute/bound_conv.hpp"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <vector>

#include "compute/conv_problem.hpp"

// The widest vectors that the CPU has: with shorter ones a read would be bound by its instructions.
#if defined(__x86_64__)
#define TACC_BENCH_WIDEST [[gnu::target_clones("default", "avx2", "avx512f"), gnu::optimize("O3")]]
#else
#define TACC_BENCH_WIDEST
#endif

namespace tacc::bench {
namespace {

/// For each measurement of multiply-adds; a rate that other programs disturb is measured again with the next turn.
constexpr double secondsOfRate = 40e-6;

/// So many sums that none waits for the one before.
constexpr std::size_t lanes = 128;

TACC_BENCH_WIDEST std::uint32_t readAll(const std::uint32_t* data, std::size_t count) {
  std::uint32_t sums[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::size_t l = 0; l < lanes; ++l) sums[l] |= data[i + l];
  }
  std::uint32_t all = 0;
  for (; i < count; ++i) all |= data[i];
  for (const std::uint32_t sum : sums) all |= sum;
  return all;
}

TACC_BENCH_WIDEST void writeAll(float* data, std::size_t count, float value) {
  for (std::size_t i = 0; i < count; ++i) data[i] = value;
}

double secondsOf(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class BoundContestant final : public ConvContestant {
 public:
  explicit BoundContestant(const ConvProblem& problem)
      : operations_(leastOperations(problem.layer) * problem.batch),
        read_(tensorsOf(problem).read),
        written_(tensorsOf(problem).written) {
    std::fill_n(read_.data(), read_.size(), 1.0F);  // or the kernel has one page of zeros for all
  }

  void run() override {
    const double multiplied = operations_ / taccMeasurePeak(secondsOfRate);
    const double wall = secondsOf(CLOCK_MONOTONIC), processor = secondsOf(CLOCK_THREAD_CPUTIME_ID);
    const std::uint32_t seen = readAll(reinterpret_cast<const std::uint32_t*>(read_.data()), read_.size());
    writeAll(written_.data(), written_.size(), static_cast<float>(seen));
    const double moved = secondsOf(CLOCK_MONOTONIC) - wall;
    isMemory_ = moved > multiplied;
    time_ = {std::max(multiplied, moved), std::max(multiplied, secondsOf(CLOCK_THREAD_CPUTIME_ID) - processor)};
  }
  RunTime ownTime() const override { return time_; }
  std::string implementation() const override { return isMemory_ ? "tensors" : "multiply-adds"; }
  std::vector<float> result() override { return {}; }

 private:
  double operations_;
  tools::AlignedFloats read_, written_;
  RunTime time_;
  bool isMemory_ = false;
};

}  // namespace

InsideCount insideOf(const OneDimension& d) {
  InsideCount count{0, 0};
  std::vector<bool> isTouched(static_cast<std::size_t>(d.size));
  for (int tap = 0; tap < d.taps; ++tap) {
    for (int result = 0; result < d.results; ++result) {
      const int at = result * d.stride - d.pad + tap * d.dilation;
      if (at < 0 || at >= d.size) continue;
      ++count.pairs;
      isTouched[static_cast<std::size_t>(at)] = true;
    }
  }
  count.touched = static_cast<int>(std::count(isTouched.begin(), isTouched.end(), true));
  return count;
}

namespace {

InsideCount linesOf(const tools::Layer& l) {
  return insideOf({l.height, l.outHeight(), l.kernel.height, l.stride.height, l.pad.height, l.dilation.height});
}
InsideCount columnsOf(const tools::Layer& l) {
  return insideOf({l.width, l.outWidth(), l.kernel.width, l.stride.width, l.pad.width, l.dilation.width});
}

}  // namespace

double leastOperations(const tools::Layer& l) {
  return 2.0 * l.outChannels * l.inChannels / l.groups * double(linesOf(l).pairs) * double(columnsOf(l).pairs);
}

Tensors tensorsOf(const ConvProblem& problem) {
  const tools::Layer& l = problem.layer;
  const auto images = static_cast<std::size_t>(problem.batch);
  const auto floats = [](int channels, int height, int width) {
    return static_cast<std::size_t>(channels) * static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  };
  // In NCHW pixels that no tap reads lie in the same line of the cache as those that one does.
  const bool skipsPixels = !problem.isPlain || problem.plainLayout == taccLayoutNhwc;
  const std::size_t used =
      floats(l.inChannels, linesOf(l).touched, skipsPixels ? columnsOf(l).touched : l.width) * images;
  const std::size_t input = floats(l.inChannels, l.height, l.width) * images;
  const std::size_t output = floats(l.outChannels, l.outHeight(), l.outWidth()) * images;
  const std::size_t weights = floats(l.outChannels * (l.inChannels / l.groups), l.kernel.height, l.kernel.width);
  if (problem.pass == taccConvForward) return {used + weights, output};
  if (problem.pass == taccConvBackwardData) return {output + weights, input};
  return {used + output, weights};
}

Contestants makeBoundContestants(const ConvProblem& problem, int threads, bool winograd) {
  Contestants contestants;
  if (threads == 1 && !winograd) contestants.push_back(std::make_unique<BoundContestant>(problem));
  return contestants;
}

}  // namespace tacc::bench

#include "compute/conv_problem.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace tacc::bench {

ConvProblem::ConvProblem(const tools::Layer& theLayer, taccConvPass_t thePass, int theBatch)
    : layer(theLayer),
      pass(thePass),
      batch(theBatch),
      input(taccTensorBytes(taccLayoutNchw, batch, layer.inChannels, layer.height, layer.width) / sizeof(float)),
      weights(taccWeightBytes(taccWeightsKcrs, layer.outChannels, layer.inChannels, layer.kernel.height,
                              layer.kernel.width, layer.groups) /
              sizeof(float)),
      outputGradient(taccTensorBytes(taccLayoutNchw, batch, layer.outChannels, layer.outHeight(), layer.outWidth()) /
                     sizeof(float)) {
  tools::fillWithSmallIntegers(input, 1);
  tools::fillWithSmallIntegers(weights, 2);
  tools::fillWithSmallIntegers(outputGradient, 3);
}

double ConvContestant::reorderSeconds() {
  if (!reorders()) return 0;
  const auto start = std::chrono::steady_clock::now();
  fillActivations();
  result();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::size_t ConvProblem::resultSize() const {
  return pass == taccConvForward ? outputGradient.size() : pass == taccConvBackwardData ? input.size() : weights.size();
}

std::size_t ConvProblem::countWrong(const float* result, double tolerance) const {
  constexpr std::size_t samples = 200;
  const std::size_t size = resultSize();
  std::vector<double> errors;
  double largest = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    // Both ends and a walk over the middle.
    const std::size_t near = std::min(i / 2, size - 1);
    const std::size_t index = i >= 16 ? i * 2654435761U % size : i % 2 == 0 ? near : size - 1 - near;
    const double right = expected(index);
    errors.push_back(std::abs(result[index] - right));
    largest = std::max(largest, std::abs(right));
  }
  const double allowed = tolerance * largest;
  return static_cast<std::size_t>(
      std::count_if(errors.begin(), errors.end(), [&](double e) { return !(e <= allowed); }));
}

double ConvProblem::expected(std::size_t index) const {
  const tools::Layer& l = layer;
  const int outHeight = l.outHeight();
  const int outWidth = l.outWidth();
  const int ins = l.inChannels / l.groups;
  const int outs = l.outChannels / l.groups;
  const auto at = [](const tools::AlignedFloats& t, int channels, int height, int width, int n, int c, int y,
                     int x) -> double {
    return t.data()[((static_cast<std::size_t>(n) * static_cast<std::size_t>(channels) + static_cast<std::size_t>(c)) *
                         static_cast<std::size_t>(height) +
                     static_cast<std::size_t>(y)) *
                        static_cast<std::size_t>(width) +
                    static_cast<std::size_t>(x)];
  };
  /// Coordinates of `index` in a tensor of these sizes.
  const auto take = [&index](int size) {
    const int coordinate = static_cast<int>(index % static_cast<std::size_t>(size));
    index /= static_cast<std::size_t>(size);
    return coordinate;
  };
  double sum = 0;
  if (pass == taccConvBackwardWeights) {
    const int s = take(l.kernel.width);
    const int r = take(l.kernel.height);
    const int c = take(ins);
    const int k = take(l.outChannels);
    for (int n = 0; n < batch; ++n) {
      for (int y = 0; y < outHeight; ++y) {
        const int line = y * l.stride.height - l.pad.height + r * l.dilation.height;
        for (int x = 0; x < outWidth; ++x) {
          const int column = x * l.stride.width - l.pad.width + s * l.dilation.width;
          if (line < 0 || line >= l.height || column < 0 || column >= l.width) continue;
          sum += at(outputGradient, l.outChannels, outHeight, outWidth, n, k, y, x) *
                 at(input, l.inChannels, l.height, l.width, n, k / outs * ins + c, line, column);
        }
      }
    }
    return sum;
  }
  const bool isForward = pass == taccConvForward;
  const int x = take(isForward ? outWidth : l.width);
  const int y = take(isForward ? outHeight : l.height);
  const int channel = take(isForward ? l.outChannels : l.inChannels);
  const int n = take(batch);
  for (int other = 0; other < (isForward ? ins : outs); ++other) {
    for (int r = 0; r < l.kernel.height; ++r) {
      for (int s = 0; s < l.kernel.width; ++s) {
        if (isForward) {
          const int line = y * l.stride.height - l.pad.height + r * l.dilation.height;
          const int column = x * l.stride.width - l.pad.width + s * l.dilation.width;
          if (line < 0 || line >= l.height || column < 0 || column >= l.width) continue;
          sum += at(input, l.inChannels, l.height, l.width, n, channel / outs * ins + other, line, column) *
                 at(weights, ins, l.kernel.height, l.kernel.width, channel, other, r, s);
        } else {
          const int line = y + l.pad.height - r * l.dilation.height;
          const int column = x + l.pad.width - s * l.dilation.width;
          if (line < 0 || line % l.stride.height != 0 || line / l.stride.height >= outHeight || column < 0 ||
              column % l.stride.width != 0 || column / l.stride.width >= outWidth) {
            continue;
          }
          const int out = channel / ins * outs + other;
          sum += at(outputGradient, l.outChannels, outHeight, outWidth, n, out, line / l.stride.height,
                    column / l.stride.width) *
                 at(weights, ins, l.kernel.height, l.kernel.width, out, channel % ins, r, s);
        }
      }
    }
  }
  return sum;
}

const std::vector<ConvPeer>& convPeers() {
  static const std::vector<ConvPeer> peers = {
#ifdef TACC_BENCH_ONEDNN
      {"onednn", makeOnednnContestants},
#endif
#ifdef TACC_BENCH_OPENBLAS
      {"openblas", makeOpenblasContestants},
#endif
#ifdef TACC_BENCH_LIBXSMM
      {"libxsmm", makeLibxsmmContestants},
#endif
      {"pytorch", makePytorchContestants, true, isPytorchThere},
      {"tacc", makeTaccContestants},
      {.name = "bound", .make = makeBoundContestants, .takesItsTime = true, .computes = false},
  };
  return peers;
}

}  // namespace tacc::bench

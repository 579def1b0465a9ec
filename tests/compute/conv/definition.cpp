#include "definition.hpp"

#include <algorithm>
#include <cstddef>

namespace tacc::conv::test {
namespace {

/// Of the outputs x with 0 <= x * stride + first < width: those from `begin` to `end`.
struct Inside {
  Inside(int outWidth, int width, int stride, int first)
      : begin(first < 0 ? (-first + stride - 1) / stride : 0),
        end(first < width ? std::min(outWidth, (width - 1 - first) / stride + 1) : 0) {}
  int begin, end;
};

/// A line of outputs, and the inputs that a weight joins them with: every `step`th.
void addLine(taccConvPass_t pass, int count, double* output, double* input, int step, double& weight) {
  double sum = 0;
  switch (pass) {
    case taccConvForward:
      for (int x = 0; x < count; ++x) output[x] += weight * input[std::ptrdiff_t{x} * step];
      break;
    case taccConvBackwardData:
      for (int x = 0; x < count; ++x) input[std::ptrdiff_t{x} * step] += weight * output[x];
      break;
    case taccConvBackwardWeights:
      for (int x = 0; x < count; ++x) sum += output[x] * input[std::ptrdiff_t{x} * step];
      weight += sum;
      break;
  }
}

void addPlane(const Shape& s, taccConvPass_t pass, double* output, double* input, double* weights) {
  for (int r = 0; r < s.kernelHeight; ++r) {
    for (int t = 0; t < s.kernelWidth; ++t) {
      const int first = t * s.dilationWidth - s.padWidth;
      const Inside inside(s.outWidth, s.width, s.strideWidth, first);
      if (inside.end <= inside.begin) continue;
      for (int y = 0; y < s.outHeight; ++y) {
        const int line = y * s.strideHeight - s.padHeight + r * s.dilationHeight;
        if (line < 0 || line >= s.height) continue;
        addLine(pass, inside.end - inside.begin, output + std::ptrdiff_t{y} * s.outWidth + inside.begin,
                input + std::ptrdiff_t{line} * s.width + inside.begin * s.strideWidth + first, s.strideWidth,
                weights[r * s.kernelWidth + t]);
      }
    }
  }
}

}  // namespace

void addByDefinition(const Shape& s, taccConvPass_t pass, PlainTensors& tensors) {
  const std::ptrdiff_t inPlane = std::ptrdiff_t{s.height} * s.width,
                       outPlane = std::ptrdiff_t{s.outHeight} * s.outWidth;
  const std::ptrdiff_t taps = std::ptrdiff_t{s.kernelHeight} * s.kernelWidth;
  for (std::ptrdiff_t n = 0; n < s.batch; ++n) {
    for (std::ptrdiff_t k = 0; k < s.outChannels; ++k) {
      for (std::ptrdiff_t c = 0; c < s.inPerGroup(); ++c) {
        const std::ptrdiff_t in = k / s.outPerGroup() * s.inPerGroup() + c;
        addPlane(s, pass, tensors.output.data() + (n * s.outChannels + k) * outPlane,
                 tensors.input.data() + (n * s.inChannels + in) * inPlane,
                 tensors.weights.data() + (k * s.inPerGroup() + c) * taps);
      }
    }
  }
}

}  // namespace tacc::conv::test

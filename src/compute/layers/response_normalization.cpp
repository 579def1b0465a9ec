#include <algorithm>
#include <cmath>

#include "compute/conv/shape.hpp"
#include "compute/layers/layers.hpp"
#include "core/error.hpp"

namespace tacc::layers {
namespace {

using conv::blockLength;

/// Kernels look at the blocks before and after.
constexpr int largestWindow = 2 * blockLength + 1;

/// Pixels of a task.
constexpr std::ptrdiff_t pixelsAtOnce = 256;

/// Calls run(call for a part of an image) for every part, on the executor's threads.
template <class Run>
void forEachPart(const taccLrnDesc_t& d, const float* input, const float* outputGradient, float* result,
                 const conv::TaskExecutor& executor, const Run& run) {
  const std::ptrdiff_t pixels = std::ptrdiff_t{d.height} * d.width;
  const int blocks = conv::ceilDivide(d.channels, blockLength);
  const std::ptrdiff_t parts = (pixels + pixelsAtOnce - 1) / pixelsAtOnce;
  executor.forEach(static_cast<std::size_t>(d.batch * parts), [&](std::size_t index, int) {
    const auto task = static_cast<std::ptrdiff_t>(index);
    const std::ptrdiff_t from = task % parts * pixelsAtOnce;
    const std::ptrdiff_t at = (task / parts * blocks * pixels + from) * blockLength;
    run(ResponseCall{input + at, outputGradient != nullptr ? outputGradient + at : nullptr, result + at,
                     pixels * blockLength, blocks, std::min(pixelsAtOnce, pixels - from), d.window / 2, d.base,
                     d.alpha / static_cast<float>(d.window), d.beta});
  });
}

}  // namespace

void check(const taccLrnDesc_t& d) {
  if (d.size != sizeof(taccLrnDesc_t)) {
    fail(taccInvalidArgument, "the description's size is {} and not {}; start from TACC_LRN_INITIALIZER", d.size,
         sizeof(taccLrnDesc_t));
  }
  for (const auto& [name, value] :
       {std::pair("batch", d.batch), {"channels", d.channels}, {"height", d.height}, {"width", d.width}}) {
    if (value <= 0) fail(taccInvalidArgument, "{} is {}; it has to be 1 or more", name, value);
  }
  if (d.window < 1 || d.window > largestWindow || d.window % 2 == 0) {
    fail(taccInvalidArgument, "window is {}; it has to be odd, from 1 to {}", d.window, largestWindow);
  }
  if (!(d.base > 0) || !(d.alpha >= 0) || !std::isfinite(d.base) || !std::isfinite(d.alpha)) {
    fail(taccInvalidArgument, "base is {} and alpha is {}; base has to be positive, alpha 0 or more", d.base, d.alpha);
  }
  if (!std::isfinite(d.beta)) fail(taccInvalidArgument, "beta is {}; it has to be finite, 0.75 is usual", d.beta);
  if (conv::tensorFloats(taccLayoutNchw16c, d.batch, d.channels, d.height, d.width) == 0) {
    fail(taccInvalidArgument, "the input is larger than the address space");
  }
}

void lrnForward(const taccLrnDesc_t& desc, const float* input, float* output, const LayerKernels& kernels,
                const conv::TaskExecutor& executor) {
  forEachPart(desc, input, nullptr, output, executor, [&](const ResponseCall& call) { kernels.response(call); });
}

void lrnBackward(const taccLrnDesc_t& desc, const float* input, const float* outputGradient, float* inputGradient,
                 const LayerKernels& kernels, const conv::TaskExecutor& executor) {
  forEachPart(desc, input, outputGradient, inputGradient, executor,
              [&](const ResponseCall& call) { kernels.responseGradient(call); });
}

}  // namespace tacc::layers

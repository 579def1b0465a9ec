// Activations in plain layouts, NCHW and NHWC: some images at a time are reordered into the workspace, run through a
// plan of any algorithm for blocks of channels, and reordered back. As many as fit into the L2 cache, so that
// memory sees each tensor once, as with layouts that need no reordering.
#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/batch_parts.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/layout.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::conv {
namespace {

/// Of the copies of both tensors, where images are that small. It is no matter of the CPU at hand, nor of the workers:
/// the gradient of the weights is summed over images in this order.
constexpr std::size_t copyBytesAtOnce = 1 << 20;

/// A tensor of activations, and how the inner plan wants it.
struct Tensor {
  taccLayout_t outer, inner;
  int channels, height, width;

  bool isCopied() const { return outer != inner; }
  std::size_t outerFloats(int images) const { return tensorFloats(outer, images, channels, height, width); }
  std::size_t innerFloats(int images) const { return tensorFloats(inner, images, channels, height, width); }
  /// Of the copy; a multiple of 64.
  std::size_t copiedBytes(int images) const {
    return isCopied() ? (innerFloats(images) * sizeof(float) + 63) / 64 * 64 : 0;
  }
};

/// For one image of so many at a time.
double reorderCycles(const Tensor& t, int images) {
  // Of a pixel: sixteen are transposed at once, and those of NHWC are copied one by one, to as many places at a time as
  // there are blocks, which takes far longer where a copy leaves the L2 cache.
  const double left =
      std::clamp(2.0 * static_cast<double>(t.copiedBytes(images)) / static_cast<double>(l2CacheBytes()) - 1, 0.0, 1.0);
  const double cyclesOfBlock = t.outer == taccLayoutNhwc ? 12 + (hasFarCaches() ? 40 : 12) * left : 8;
  return t.isCopied() ? cyclesOfBlock * ceilDivide(t.channels, blockLength) * t.height * t.width : 0;
}

/// The largest divisor of the batch whose copies stay within copyBytesAtOnce.
int imagesAtOnce(int batch, const Tensor& in, const Tensor& out) {
  const std::size_t image = in.copiedBytes(1) + out.copiedBytes(1);
  return imagesOfPart(batch, image, copyBytesAtOnce);
}

std::string kernelName(const ConvPlan& inner, const Tensor& in, const Tensor& out) {
  return inner.kernel() + " reorders " + (in.isCopied() ? "input" : "") +
         (in.isCopied() && out.isCopied() ? ", " : "") + (out.isCopied() ? "output" : "");
}

class PlainPlan final : public ConvPlan {
 public:
  PlainPlan(const Description& description, const Tensor& in, const Tensor& out, int images,
            std::unique_ptr<ConvPlan> first, std::unique_ptr<ConvPlan> next, const layers::LayerKernels& kernels)
      : ConvPlan(kernelName(*first, in, out)),
        description_(description),
        in_(in),
        out_(out),
        images_(images),
        first_(std::move(first)),
        next_(std::move(next)),
        kernels_(kernels) {}

  std::size_t workspaceBytes() const override {
    return innerBytes() + in_.copiedBytes(images_) + out_.copiedBytes(images_);
  }
  std::size_t packedFloats() const override { return first_->packedFloats(); }
  void pack(const float* weights, float* packed) const override { first_->pack(weights, packed); }
  double reorderSeconds() const override {
    const double in =
        reorderCycles(in_, images_) * (description_.accumulate && description_.pass == taccConvBackwardData ? 2 : 1);
    const double out = reorderCycles(out_, images_) * (description_.residual ? 2 : 1);
    return (in + out) * images_ * parts() / assumedHertz;
  }
  double predictedSeconds() const override {
    // Of parts of the batch the inner plan believes that they are in the caches.
    constexpr double bytesOfMemory = 9;
    const int batch = description_.shape.batch;
    const auto bytes = static_cast<double>((in_.outerFloats(batch) + out_.outerFloats(batch)) * sizeof(float));
    const double moved = parts() > 1 ? transferCycles(bytes, bytesOfMemory) / assumedHertz : 0;
    return std::max(first_->predictedSeconds() * parts(), moved) + reorderSeconds();
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    auto* const bytes = static_cast<std::byte*>(buffers.workspace);
    auto* const in = reinterpret_cast<float*>(bytes + innerBytes());
    auto* const out = reinterpret_cast<float*>(bytes + innerBytes() + in_.copiedBytes(images_));
    const bool isForward = description_.pass == taccConvForward;
    const bool isData = description_.pass == taccConvBackwardData;
    for (int part = 0; part < parts(); ++part) {
      const std::size_t inAt = in_.outerFloats(images_) * static_cast<std::size_t>(part);
      const std::size_t outAt = out_.outerFloats(images_) * static_cast<std::size_t>(part);
      Buffers inner = buffers;
      inner.workspaceBytes = innerBytes();
      if (!isData) inner.input = fetched(in_, buffers.input + inAt, in, executor);
      if (!isForward) inner.outputGradient = fetched(out_, buffers.outputGradient + outAt, out, executor);
      // The residual's copy is where the result goes, as the interface allows.
      if (description_.residual) inner.residual = fetched(out_, buffers.residual + outAt, out, executor);
      if (isForward) inner.result = out_.isCopied() ? out : buffers.result + outAt;
      if (isData) {
        inner.result = in_.isCopied() ? in : buffers.result + inAt;
        if (description_.accumulate) fetched(in_, buffers.result + inAt, in, executor);
      }
      (part == 0 || next_ == nullptr ? first_ : next_)->run(inner, executor);
      if (isForward) deliver(out_, out, buffers.result + outAt, executor);
      if (isData) deliver(in_, in, buffers.result + inAt, executor);
    }
  }

 private:
  int parts() const { return description_.shape.batch / images_; }
  std::size_t innerBytes() const {
    return std::max(first_->workspaceBytes(), next_ != nullptr ? next_->workspaceBytes() : 0);
  }

  /// The images at `from` for the inner plan: as they are, or reordered to `copy`.
  const float* fetched(const Tensor& t, const float* from, float* copy, const TaskExecutor& executor) const {
    if (!t.isCopied()) return from;
    reorderImages(t, t.outer, from, t.inner, copy, false, executor);
    return copy;
  }
  void deliver(const Tensor& t, const float* copy, float* to, const TaskExecutor& executor) const {
    if (!t.isCopied()) return;
    const bool isNonTemporal = layers::isTooLargeForCaches(t.outerFloats(description_.shape.batch) * sizeof(float));
    reorderImages(t, t.inner, copy, t.outer, to, isNonTemporal, executor);
  }
  void reorderImages(const Tensor& t, taccLayout_t fromLayout, const float* from, taccLayout_t toLayout, float* to,
                     bool isNonTemporal, const TaskExecutor& executor) const {
    const ImageSize size{t.channels, t.height, t.width};
    if (t.outer == taccLayoutNhwc) {
      constexpr std::size_t pixelsOfTask = 64;
      const auto pixels = static_cast<std::size_t>(t.height) * static_cast<std::size_t>(t.width);
      const std::size_t parts = (pixels + pixelsOfTask - 1) / pixelsOfTask;
      executor.forEach(static_cast<std::size_t>(images_) * parts, [&](std::size_t index, int) {
        const std::size_t first = index % parts * pixelsOfTask;
        reorderPixels(fromLayout, from, toLayout, to, size, static_cast<int>(index / parts),
                      static_cast<std::ptrdiff_t>(first),
                      static_cast<std::ptrdiff_t>(std::min(pixels, first + pixelsOfTask)));
      });
      return;
    }
    const auto blocks = static_cast<std::size_t>(ceilDivide(t.channels, blockLength));
    executor.forEach(static_cast<std::size_t>(images_) * blocks, [&](std::size_t index, int) {
      reorderBlock(fromLayout, from, toLayout, to, size, static_cast<int>(index / blocks),
                   static_cast<int>(index % blocks), isNonTemporal, kernels_);
    });
  }

  Description description_;
  Tensor in_, out_;
  int images_;  // at a time
  std::unique_ptr<ConvPlan> first_;
  std::unique_ptr<ConvPlan> next_;  // of the weights' gradient: adds to what the first one gave
  const layers::LayerKernels& kernels_;
};

/// The plan with an inner one that has these layouts.
ChosenPlan makeReordering(const Description& description, taccLayout_t inputLayout, taccLayout_t outputLayout,
                          const KernelSet& kernels) {
  const Shape& s = description.shape;
  Description inner = description;
  inner.inputLayout = inputLayout;
  inner.outputLayout = outputLayout;
  const Tensor in{description.inputLayout, inner.inputLayout, s.inChannels, s.height, s.width};
  const Tensor out{description.outputLayout, inner.outputLayout, s.outChannels, s.outHeight, s.outWidth};
  inner.shape.batch = imagesAtOnce(s.batch, in, out);
  const bool isResultCopied = (description.pass == taccConvForward ? out : in).isCopied();
  inner.isOfLargeResult = !isResultCopied && isNonTemporalResult(description);
  ChosenPlan first = cheapestServing(inner, kernels);
  if (first.plan == nullptr) return {};
  std::unique_ptr<ConvPlan> next = makeNextPart(inner, first, kernels, cheapestServing);
  return {first.algorithm, std::make_unique<PlainPlan>(description, in, out, inner.shape.batch, std::move(first.plan),
                                                       std::move(next), layers::kernelTable(kernels.vectors))};
}

}  // namespace

ChosenPlan makePlainPlan(const Description& description, const KernelSet& kernels) {
  // Some algorithms read or write a plain tensor as it is, where the other one is in blocks.
  const bool isInPlain = description.inputLayout != taccLayoutNchw16c;
  const bool isOutPlain = description.outputLayout != taccLayoutNchw16c;
  ChosenPlan best = makeReordering(description, taccLayoutNchw16c, taccLayoutNchw16c, kernels);
  if (isInPlain && isOutPlain) {
    takeCheaper(best, makeReordering(description, description.inputLayout, taccLayoutNchw16c, kernels));
    takeCheaper(best, makeReordering(description, taccLayoutNchw16c, description.outputLayout, kernels));
  }
  return best;
}

}  // namespace tacc::conv

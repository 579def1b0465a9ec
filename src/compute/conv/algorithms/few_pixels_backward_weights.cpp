// Gradient of the weights of few pixels and many channels. Tiles of sums would begin and end with nearly every
// multiply-add; here the pixels' gradients stay in registers, and each row of the result, which is most of what moves,
// is computed and written at once, in order.
#include <algorithm>
#include <array>
#include <vector>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/kernels/few_pixels_kernels.hpp"
#include "compute/conv/layout.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::conv {
namespace {

class FewPixels final : public ConvPlan {
 public:
  FewPixels(const Description& d, const KernelSet& kernels)
      : ConvPlan(std::string(kernels.vectors)),
        description_(d),
        lanes_(kernels.fmaLanes),
        kernels_(fewPixelsKernels(kernels)),
        in_(blockSteps(d.inputLayout, d.shape.inChannels, d.shape.height, d.shape.width)),
        out_(blockSteps(d.outputLayout, d.shape.outChannels, d.shape.outHeight, d.shape.outWidth)) {
    const Shape& s = shape();
    for (int r = 0; r < s.kernelHeight; ++r) {
      for (int t = 0; t < s.kernelWidth; ++t) taps_.push_back(pixelsOf(r, t));
    }
    const auto outside = std::count_if(taps_.begin(), taps_.end(), [](const Tap& tap) { return tap.count == 0; });
    mostAreOutside_ = 2 * outside > taps();
    // Weights that are brought to KCRS are those of whole blocks of outputs.
    inParts_ = isBlocked()
                   ? balancedCut({static_cast<std::size_t>(s.outBlocks()), static_cast<std::size_t>(s.inBlocks())},
                                 static_cast<std::size_t>(d.maxWorkers))
                         .rowParts
                   : 1;
  }

  std::size_t workspaceBytes() const override {
    return isBlocked() ? 0 : static_cast<std::size_t>(description_.maxWorkers) * blockFloats() * sizeof(float);
  }
  double predictedSeconds() const override {
    const Shape& s = shape();
    double cycles = 0;
    for (const Tap& tap : taps_) cycles += tapCycles(tap.count);
    constexpr double ofDelivered = 0.4, bytesOfMemory = 12;
    const double delivered = isBlocked() ? 0 : ofDelivered * static_cast<double>(blockFloats());
    const double resultBytes = double(blockFloats()) * s.outBlocks() * sizeof(float);
    // Zeros that leave the caches before other taps are written between them, a cycle.
    constexpr double bytesOfZeros = 8;
    const bool leave = mostAreOutside_ && layers::isTooLargeForCaches(static_cast<std::size_t>(resultBytes));
    const double moved = transferCycles(resultBytes, bytesOfMemory) + (leave ? resultBytes / bytesOfZeros : 0);
    return (s.outBlocks() * (cycles + delivered) + moved) / assumedHertz;
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const auto blocks = static_cast<std::size_t>(shape().outBlocks());
    executor.forEach(blocks * inParts_, [&](std::size_t index, int worker) {
      const auto block = static_cast<std::ptrdiff_t>(index / inParts_);
      const TaskPart ins = partOf(static_cast<std::size_t>(shape().inBlocks()), inParts_, index % inParts_);
      if (isBlocked()) {
        float* const result = buffers.result + block * static_cast<std::ptrdiff_t>(blockFloats());
        sumBlock(buffers, block, ins, description_.accumulate, result);
        return;
      }
      float* const result = static_cast<float*>(buffers.workspace) + static_cast<std::size_t>(worker) * blockFloats();
      sumBlock(buffers, block, ins, false, result);
      deliver(result, block, buffers.result);
    });
  }

 private:
  const Shape& shape() const { return description_.shape; }
  bool isBlocked() const { return description_.weightLayout == taccWeightsBlocked; }
  int taps() const { return shape().kernelHeight * shape().kernelWidth; }
  /// Of a block of outputs.
  std::size_t blockFloats() const {
    return static_cast<std::size_t>(shape().inChannels) * static_cast<std::size_t>(taps()) * blockLength;
  }

  /// Where the pixels of all images are that a tap finds inside: from the first one of the input, and of the output's
  /// gradient.
  struct Tap {
    int count = 0;
    std::array<std::ptrdiff_t, mostFewPixels> inputs{}, gradients{};
  };
  Tap pixelsOf(int r, int t) const {
    const Shape& s = shape();
    const int dy = r * s.dilationHeight - s.padHeight, dx = t * s.dilationWidth - s.padWidth;
    const int endLine = std::min(s.outHeight, endInside(dy, s.strideHeight, s.height));
    const int endColumn = std::min(s.outWidth, endInside(dx, s.strideWidth, s.width));
    Tap tap;
    for (int image = 0; image < s.batch; ++image) {
      for (int y = firstInside(dy, s.strideHeight); y < endLine; ++y) {
        for (int x = firstInside(dx, s.strideWidth); x < endColumn; ++x) {
          const auto at = static_cast<std::size_t>(tap.count++);
          const std::ptrdiff_t read = (std::ptrdiff_t{y} * s.strideHeight + dy) * s.width + x * s.strideWidth + dx;
          tap.inputs[at] = image * in_.image + read * in_.pixel;
          tap.gradients[at] = image * out_.image + (std::ptrdiff_t{y} * s.outWidth + x) * out_.pixel;
        }
      }
    }
    return tap;
  }

  /// Of a tap of a block of outputs: a row is multiply-adds and loads of few pixels, and stores, whichever takes
  /// longer.
  double tapCycles(int pixels) const {
    constexpr double ofCall = 60, ofPixelOfCall = 4, ofStores = 4.4, ofPair = 1.2, ofSingle = 2.2;
    constexpr int mostOfPairs = 6;
    constexpr double ofZeros = 2.2, ofZeroCall = 30;
    if (pixels == 0) return (mostAreOutside_ ? 0 : ofZeroCall * shape().inBlocks()) + ofZeros * shape().inChannels;
    const bool isHalf = shape().outChannels <= lanes_;
    const double vectors = isHalf ? 1 : double(blockLength) / lanes_;
    const double row =
        pixels <= mostOfPairs && !isHalf ? ofPair + vectors * 0.5 * pixels : vectors * (ofSingle + 0.5 * pixels);
    return ofCall + pixels * ofPixelOfCall + shape().inChannels * std::max(ofStores, row);
  }

  /// Of some blocks of inputs, to the block of outputs' part of the result in blocks.
  void sumBlock(const Buffers& buffers, std::ptrdiff_t block, TaskPart ins, bool accumulates, float* result) const {
    const Shape& s = shape();
    const float* const input = buffers.input + static_cast<std::ptrdiff_t>(ins.from) * in_.block;
    const float* const gradient = buffers.outputGradient + block * out_.block;
    const int from = static_cast<int>(ins.from) * blockLength;
    const int rows = std::min(s.inChannels, static_cast<int>(ins.to) * blockLength) - from;
    // Of the last block, if it is not whole, taps are closer.
    const int rest = taps_.size() > 1 ? rows % blockLength : 0;
    float* const to = result + std::ptrdiff_t{from} * taps() * blockLength;
    FewPixelsCall call{};
    call.inputBlock = in_.block;
    call.outputBlock = std::ptrdiff_t{taps()} * blockLength * blockLength;
    call.channels = std::min(s.outChannels - static_cast<int>(block) * blockLength, blockLength);
    call.accumulate = accumulates;
    // Where most taps are outside of a small image, their zeros are written in one go, to caches.
    const bool isCleared = mostAreOutside_ && !accumulates;
    if (isCleared) std::fill_n(to, std::ptrdiff_t{rows} * taps() * blockLength, 0.0F);
    const std::size_t bytes = blockFloats() * static_cast<std::size_t>(s.outBlocks()) * sizeof(float);
    call.isNonTemporal =
        isBlocked() && !accumulates && !isCleared && isAligned(result) && layers::isTooLargeForCaches(bytes);
    std::ptrdiff_t place = 0;  // of the tap
    for (const Tap& tap : taps_) {
      if (tap.count == 0 && isCleared) {
        ++place;
        continue;
      }
      call.rows = rows - rest;
      call.output = to + place * blockLength * blockLength;
      sumRows(call, tap, input, gradient);
      call.rows = rest;
      call.output = to + (std::ptrdiff_t{rows - rest} * taps() + place * rest) * blockLength;
      sumRows(call, tap, input + (rows - rest) / blockLength * in_.block, gradient);
      ++place;
    }
  }

  void sumRows(FewPixelsCall& call, const Tap& tap, const float* input, const float* gradient) const {
    if (call.rows == 0) return;
    if (tap.count == 0) {
      for (int row = 0; row < call.rows && !call.accumulate; row += blockLength) {
        std::fill_n(call.output + row / blockLength * call.outputBlock,
                    std::min(blockLength, call.rows - row) * blockLength, 0.0F);
      }
      return;
    }
    const auto count = static_cast<std::size_t>(tap.count);
    const float *inputs[mostFewPixels], *gradients[mostFewPixels];
    for (std::size_t p = 0; p < count; ++p) {
      inputs[p] = input + tap.inputs[p];
      gradients[p] = gradient + tap.gradients[p];
    }
    call.inputs = inputs;
    call.gradients = gradients;
    kernels_.sum[count](call);
  }

  void deliver(const float* blocked, std::ptrdiff_t block, float* kcrs) const {
    Shape some = shape();
    some.outChannels = std::min(blockLength, some.outChannels - static_cast<int>(block) * blockLength);
    float* const to = kcrs + block * blockLength * some.inChannels * taps();
    deliverGradient(blocked, to, some, description_.accumulate, TaskExecutor(serialExecutor()));
  }

  Description description_;
  int lanes_;
  const FewPixelsKernels& kernels_;
  BlockSteps in_, out_;
  std::vector<Tap> taps_;  // line by line of the kernel
  bool mostAreOutside_ = false;
  std::size_t inParts_ = 1;
};

}  // namespace

bool servesFewPixels(const Description& d) {
  const Shape& s = d.shape;
  const bool areFew = double(s.batch) * s.outHeight * s.outWidth <= mostFewPixels;
  // Its prices have been measured of vectors of half a block where caches are near; others have it by its name.
  const bool isOffered = areNearHalves(d.vectorLanes) || !d.algorithm.empty();
  return d.pass == taccConvBackwardWeights && s.groups == 1 && areFew && isOffered && d.vectorLanes < blockLength &&
         !d.pairs.areRead && hasBlockSteps(d.inputLayout) && hasWholeBlocks(d.outputLayout, s.outChannels);
}

std::unique_ptr<ConvPlan> makeFewPixels(const Description& d, const KernelSet& kernels) {
  return std::make_unique<FewPixels>(d, kernels);
}

}  // namespace tacc::conv

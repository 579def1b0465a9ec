// Channel-wise convolutions in NCHW, before and behind: vectors of pixels of a line, each channel by itself, with
// nothing reordered. A line of the input is read where it lies, once for every column of the kernel.
#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/core_model.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/kernels/depthwise_planes_kernels.hpp"
#include "compute/conv/task_balance.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// What beginning a plane and a vector of a tile cost beside the products, in cycles.
constexpr double cyclesOfPlane = 8, cyclesOfTile = 13;
/// A cycle, from behind the caches.
constexpr double bytesOfPlanes = 9;

/// What both kinds of plans know.
class DepthwisePlanesPlan : public ConvPlan {
 protected:
  DepthwisePlanesPlan(const Description& d, const KernelSet& kernels)
      : ConvPlan(std::string(kernels.vectors) + " planes"), description_(d), kernels_(depthwisePlaneKernels(kernels)) {}

  const Shape& shape() const { return description_.shape; }
  std::ptrdiff_t inPlane() const { return std::ptrdiff_t{shape().height} * shape().width; }
  std::ptrdiff_t outPlane() const { return std::ptrdiff_t{shape().outHeight} * shape().outWidth; }
  int taps() const { return shape().kernelHeight * shape().kernelWidth; }
  std::size_t planes() const {
    return static_cast<std::size_t>(shape().batch) * static_cast<std::size_t>(shape().groups);
  }
  /// So many that the planes of a part stay in the L1 cache: small ones go together, as what a tile is made of is found
  /// once for all of a part.
  std::size_t leastChannelParts() const {
    constexpr std::ptrdiff_t floatsAtOnce = 3072;
    const std::ptrdiff_t channels = shape().groups;
    return static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(channels * std::max(inPlane(), outPlane()) / floatsAtOnce, 1, channels));
  }
  double bytes() const {
    return double(planes()) * static_cast<double>(inPlane() + outPlane()) * static_cast<double>(sizeof(float));
  }
  /// Whether the kernels fetch the lines below: where vectors of half a block go through what does not stay in the L2
  /// cache.
  bool fetchesBelow() const { return areNearHalves(kernels_.lanes) && !staysInL2(static_cast<std::size_t>(bytes())); }
  std::ptrdiff_t placeOf(int channel, int r, int t) const {
    return weightBlock(shape(), description_.weightLayout, channel, 0, 0, r, t).base;
  }

  /// For `lines` of a plane with so many vectors each, through so many lines and columns of a kernel.
  double cyclesOf(int lines, double vectors, int stride, double tapLines, double tapColumns) const {
    constexpr int linesOfTile = 7;
    const double tiles = ceilDivide(lines, linesOfTile);
    const double products = lines * tapLines * tapColumns / 2;
    // A vector that begins anywhere lies in two lines of the cache, nearly always where it is as long as one.
    const double ofRead = kernels_.lanes == blockLength ? 1.0 : 0.75;
    const double reads = (lines * stride + tiles * (tapLines - stride)) * tapColumns * ofRead * (stride == 1 ? 1 : 1.5);
    // Taps in a loop, and lines that a stride takes apart.
    const double ofLoop = tapLines > 3 && kernels_.lanes == blockLength ? 1.3 : 1;
    const double ofStride = stride == 1 ? 1 : kernels_.lanes == blockLength ? 1.2 : 1.5;
    const double ofTaps = ofLoop * ofStride * (std::max(products, reads) + 0.2 * std::min(products, reads));
    return vectors * (ofTaps + tiles * cyclesOfTile + lines) + cyclesOfPlane;
  }
  double secondsOf(double cyclesOfPlanes) const {
    return overlappedCycles(double(planes()) * cyclesOfPlanes, transferCycles(bytes(), bytesOfPlanes)) / assumedHertz;
  }

  Description description_;
  const DepthwisePlaneKernels& kernels_;
};

/// Forward and backward to the data: the second is a correlation with the gradient of the output, whose stride, if
/// there is one, parts the result into lines and columns that see different taps.
class DepthwisePlaneProducts final : public DepthwisePlanesPlan {
 public:
  DepthwisePlaneProducts(const Description& d, const KernelSet& kernels) : DepthwisePlanesPlan(d, kernels) {
    const Shape& s = shape();
    if (d.pass == taccConvForward) {
      addForward();
    } else {
      for (int phase = 0; phase < s.strideHeight; ++phase) addBackward(phase);
    }
    const auto lines = static_cast<std::size_t>(ceilDivide(isForward() ? s.outHeight : s.height, lineStep()));
    const auto channels = static_cast<std::size_t>(s.groups);
    const TaskCut cut = balancedCut({static_cast<std::size_t>(s.batch), channels, lines, leastChannelParts()},
                                    static_cast<std::size_t>(d.maxWorkers));
    channelParts_ = cut.rowParts;
    lineParts_ = cut.columnParts;
  }

  std::size_t packedFloats() const override {
    return static_cast<std::size_t>(shape().groups) * static_cast<std::size_t>(taps());
  }
  void pack(const float* weights, float* packed) const override {
    for (int channel = 0; channel < shape().groups; ++channel) {
      for (const Tap& tap : order_) *packed++ = weights[placeOf(channel, tap.line, tap.column)];
    }
  }

  double predictedSeconds() const override {
    const Shape& s = shape();
    const double ofSpills = spillFactor();
    if (isForward()) {
      return secondsOf(ofSpills * cyclesOf(s.outHeight, ceilDivide(s.outWidth, kernels_.lanes), s.strideHeight,
                                           s.kernelHeight, s.kernelWidth));
    }
    const double step = lineStep();
    const double vectors = ceilDivide(ceilDivide(s.width, lineStep()), kernels_.lanes);
    return secondsOf(
        ofSpills * step *
        cyclesOf(ceilDivide(s.height, lineStep()), vectors, 1, s.kernelHeight / step, s.kernelWidth + (step - 1) * 2));
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const std::size_t ofImage = channelParts_ * lineParts_;
    executor.forEach(static_cast<std::size_t>(shape().batch) * ofImage, [&](std::size_t index, int) {
      const std::size_t part = index % ofImage;
      const auto image = static_cast<std::ptrdiff_t>(index / ofImage);
      const TaskPart channels = partOf(static_cast<std::size_t>(shape().groups), channelParts_, part / lineParts_);
      for (const Phase& phase : phases_) runPhase(phase, buffers, image, channels, part % lineParts_);
    });
  }

 private:
  /// With short vectors there are fewer registers than a tile's lines and the taps of a column, or of two; less is felt
  /// of it while the L1 cache keeps a plane.
  double spillFactor() const {
    constexpr std::ptrdiff_t bytesOfPlane = 16 * 1024;
    if (kernels_.lanes == blockLength) return 1;
    const bool isStrided = shape().strideHeight != 1;
    if (!areNearHalves(kernels_.lanes)) return isStrided ? 2.2 : 1.6;
    const bool isThreeHigh = shape().kernelHeight <= 3;
    if (isStrided) return isThreeHigh && isForward() ? 2.05 : 2.2;
    const bool isKept = (inPlane() + outPlane()) * std::ptrdiff_t{sizeof(float)} <= bytesOfPlane;
    return shape().kernelHeight > 5 ? 1.6 : !isThreeHigh ? 1.3 : isKept ? 1.1 : 1.4;
  }
  struct Tap {
    int line, column;
  };
  /// Lines of the result that see the same taps.
  struct Phase {
    void (*kernel)(const DepthwisePlaneCall&);
    DepthwisePlaneCall call;
    std::ptrdiff_t packed;  // where their weights begin
    int firstLine, lines;
  };

  bool isForward() const { return description_.pass == taccConvForward; }
  int lineStep() const { return isForward() ? 1 : shape().strideHeight; }

  void addForward() {
    const Shape& s = shape();
    Phase phase{kernels_.lines[s.strideHeight - 1][s.kernelHeight], {}, 0, 0, s.outHeight};
    phase.call.firstTapLine = -s.padHeight;
    for (int t = 0; t < s.kernelWidth; ++t) {
      addColumn(phase.call.columns[0], t - s.padWidth);
      for (int r = 0; r < s.kernelHeight; ++r) order_.push_back({r, t});
    }
    finish(phase, s.height, s.width, s.outWidth);
  }

  /// Lines `first`, first + stride, ...: of these, pixel x of line y sees the taps r and t whose y + pad - r and
  /// x + pad - t the stride divides. From line to line of the result taps reach back, so the last one comes first.
  void addBackward(int first) {
    const Shape& s = shape();
    const int stride = s.strideHeight;
    const int firstTap = (first + s.padHeight) % stride;
    const int tapLines = ceilDivide(s.kernelHeight - firstTap, stride);
    const int lastTap = firstTap + (tapLines - 1) * stride;
    Phase phase{stride == 1 ? kernels_.lines[0][tapLines] : kernels_.phases[tapLines],
                {},
                static_cast<std::ptrdiff_t>(order_.size()),
                first,
                ceilDivide(s.height - first, stride)};
    phase.call.firstTapLine = (first + s.padHeight - lastTap) / stride;
    for (int x = 0; x < stride; ++x) {
      for (int t = (x + s.padWidth) % stride; t < s.kernelWidth; t += stride) {
        addColumn(phase.call.columns[x], (x + s.padWidth - t) / stride);
        for (int r = lastTap; r >= 0; r -= stride) order_.push_back({r, t});
      }
    }
    finish(phase, s.outHeight, s.outWidth, s.width);
  }

  static void addColumn(PlaneTapColumns& columns, int at) { columns.at[columns.count++] = at; }

  void finish(Phase& phase, int height, int width, int pixels) {
    phase.call.height = height;
    phase.call.width = width;
    phase.call.pixels = pixels;
    phase.call.inputPlane = isForward() ? inPlane() : outPlane();
    phase.call.outputPlane = isForward() ? outPlane() : inPlane();
    phase.call.weightPlane = taps();
    phase.call.outputLine = std::ptrdiff_t{pixels} * lineStep();
    phase.call.activation = description_.activation;
    phase.call.fetchesBelow = fetchesBelow();
    phases_.push_back(phase);
  }

  void runPhase(const Phase& phase, const Buffers& buffers, std::ptrdiff_t image, const TaskPart& channels,
                std::size_t linePart) const {
    const float* const addend = description_.residual     ? buffers.residual
                                : description_.accumulate ? buffers.result
                                                          : nullptr;
    const auto channel = static_cast<std::ptrdiff_t>(channels.from);
    const std::ptrdiff_t plane = image * shape().groups + channel;
    DepthwisePlaneCall call = phase.call;
    const std::ptrdiff_t at = plane * call.outputPlane + phase.firstLine * std::ptrdiff_t{call.pixels};
    call.planes = static_cast<int>(channels.to - channels.from);
    call.input = (isForward() ? buffers.input : buffers.outputGradient) + plane * call.inputPlane;
    call.weights = buffers.packedWeights + channel * call.weightPlane + phase.packed;
    call.bias = description_.bias ? buffers.bias + channel : nullptr;
    call.addend = addend != nullptr ? addend + at : nullptr;
    call.output = buffers.result + at;
    const TaskPart lines = partOf(static_cast<std::size_t>(phase.lines), lineParts_, linePart);
    call.firstLine = static_cast<int>(lines.from);
    call.endLine = static_cast<int>(lines.to);
    phase.kernel(call);
  }

  std::vector<Phase> phases_;
  std::vector<Tap> order_;                        // of a channel's packed weights
  std::size_t channelParts_ = 1, lineParts_ = 1;  // of an image
};

/// The gradient of the weights: a vector of sums for every tap, over all images.
class DepthwisePlaneGradients final : public DepthwisePlanesPlan {
 public:
  DepthwisePlaneGradients(const Description& d, const KernelSet& kernels) : DepthwisePlanesPlan(d, kernels) {
    const Shape& s = shape();
    parts_ = balancedCut({1, static_cast<std::size_t>(s.groups), 1, leastChannelParts()},
                         static_cast<std::size_t>(d.maxWorkers))
                 .rowParts;
    call_.inputPlane = inPlane();
    call_.gradientPlane = outPlane();
    call_.sumPlane = taps() * planeTapFloats;
    call_.height = s.height;
    call_.width = s.width;
    call_.lines = s.outHeight;
    call_.pixels = s.outWidth;
    call_.firstTapLine = -s.padHeight;
    call_.fetchesBelow = fetchesBelow();
    for (int t = 0; t < s.kernelWidth; ++t) {
      call_.columns.at[call_.columns.count++] = t - s.padWidth;
      for (int r = 0; r < s.kernelHeight; ++r) places_.push_back(placeOf(0, r, t) - placeOf(0, 0, 0));
    }
  }

  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(description_.maxWorkers) * sumFloats() * sizeof(float);
  }
  double predictedSeconds() const override {
    const Shape& s = shape();
    const double vectors = ceilDivide(s.outWidth, kernels_.lanes);
    const double ofSums = 2.0 * taps() * vectors * ceilDivide(s.outHeight, 7);
    const double delivered = 3.5 * taps() / s.batch;
    // Of short vectors, beside products and loads; what comes from memory is waited for anyway.
    const bool areShort = areNearHalves(kernels_.lanes) && bytes() <= coreModel().lastCacheBytes / 2;
    // Images that follow each other bring small planes for each other.
    constexpr std::ptrdiff_t pixelsOfSmall = 64;
    const bool isSmall = outPlane() <= pixelsOfSmall && s.batch > 1;
    const bool areStrided = s.strideHeight != 1 && bytes() <= coreModel().lastCacheBytes / 3;
    const double ofThreeHigh = isSmall ? 0.95 : 1.05;
    const double waiting = !areShort             ? 1
                           : areStrided          ? 1.7
                           : s.strideHeight != 1 ? 1
                           : s.kernelHeight <= 3 ? ofThreeHigh
                                                 : 1;
    return secondsOf(waiting * cyclesOf(s.outHeight, vectors, s.strideHeight, s.kernelHeight, s.kernelWidth) + ofSums +
                     delivered);
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const Shape& s = shape();
    clearGradient(buffers.result, description_.weightLayout, s, description_.accumulate);
    executor.forEach(parts_, [&](std::size_t index, int worker) {
      const TaskPart channels = partOf(static_cast<std::size_t>(s.groups), parts_, index);
      const auto first = static_cast<std::ptrdiff_t>(channels.from);
      DepthwisePlaneGradientCall call = call_;
      call.planes = static_cast<int>(channels.to - channels.from);
      call.sums = static_cast<float*>(buffers.workspace) + static_cast<std::size_t>(worker) * sumFloats();
      std::fill_n(call.sums, call.planes * call.sumPlane, 0.0F);
      for (std::ptrdiff_t image = 0; image < s.batch; ++image) {
        const std::ptrdiff_t plane = image * s.groups + first;
        call.input = buffers.input + plane * inPlane();
        call.gradient = buffers.outputGradient + plane * outPlane();
        kernels_.gradient[s.strideHeight - 1][s.kernelHeight](call);
      }
      float* const totals = call.sums + call.planes * call.sumPlane;
      kernels_.total(call.sums, call.planes * taps(), totals);
      for (int c = 0; c < call.planes; ++c)
        deliver(totals + c * taps(), buffers.result + placeOf(static_cast<int>(first) + c, 0, 0));
    });
  }

 private:
  /// Of the channels of a part, and their totals.
  std::size_t sumFloats() const {
    const std::size_t channels = (static_cast<std::size_t>(shape().groups) + parts_ - 1) / parts_;
    return channels * static_cast<std::size_t>(taps() + call_.sumPlane + blockLength) / blockLength * blockLength;
  }

  void deliver(const float* totals, float* result) const {
    for (const std::ptrdiff_t place : places_) {
      result[place] = description_.accumulate ? result[place] + *totals : *totals;
      ++totals;
    }
  }

  std::size_t parts_ = 1;               // of the channels
  DepthwisePlaneGradientCall call_{};   // without what it is of
  std::vector<std::ptrdiff_t> places_;  // of each tap's weight, from the first one's
};

}  // namespace

bool servesDepthwisePlanes(const Description& d) {
  const Shape& s = d.shape;
  const auto isServed = [](int size) { return size == 3 || size == 5 || size == 7; };
  return s.isDepthwise() && s.padHeight < s.kernelHeight && s.padWidth < s.kernelWidth &&
         d.inputLayout == taccLayoutNchw && d.outputLayout == taccLayoutNchw && isServed(s.kernelHeight) &&
         s.kernelWidth >= 2 && s.kernelWidth <= mostPlaneTapColumns && s.strideHeight == s.strideWidth &&
         s.strideHeight <= 2 && s.dilationHeight == 1 && s.dilationWidth == 1;
}

std::unique_ptr<ConvPlan> makeDepthwisePlanes(const Description& d, const KernelSet& kernels) {
  if (d.pass == taccConvBackwardWeights) return std::make_unique<DepthwisePlaneGradients>(d, kernels);
  return std::make_unique<DepthwisePlaneProducts>(d, kernels);
}

}  // namespace tacc::conv

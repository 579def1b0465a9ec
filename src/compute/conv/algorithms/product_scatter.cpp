// Results of few channels, forward and backward to the data: products first, taps afterwards. A tile of the direct
// convolution has 16 lanes for the channels of a pixel of the result, of which two or eight would be of use. Here they
// are full: every pixel of the source is multiplied by the weights of all taps and channels of the result together, and
// these columns are added to where their taps belong.
//
// What the columns hold is kept for as many lines of the source as a line of the result sees. Groups backward to the
// data are each a convolution of its own, whose few channels are lanes of a block that others write the rest of.
#include <algorithm>
#include <numeric>
#include <type_traits>
#include <vector>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/core_model.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// More channels of a result fill tiles of their own well enough.
constexpr int mostTargets = 8;

/// Forward from the input to the output, backward from the output's gradient to the input's: source pixel p belongs, by
/// tap t, to target pixel p * stride + offset(t).
struct Directions {
  explicit Directions(const Description& d) : isForward(d.pass == taccConvForward), shape(d.shape) {
    const Shape& s = shape;
    sourceChannels = isForward ? s.inPerGroup() : s.outPerGroup();
    sourceHeight = isForward ? s.height : s.outHeight;
    sourceWidth = isForward ? s.width : s.outWidth;
    targetChannels = isForward ? s.outPerGroup() : s.inPerGroup();
    targetHeight = isForward ? s.outHeight : s.height;
    targetWidth = isForward ? s.outWidth : s.width;
  }
  int lineOffset(int r) const { return offset(r * shape.dilationHeight - shape.padHeight); }
  int columnOffset(int t) const { return offset(t * shape.dilationWidth - shape.padWidth); }

  bool isForward;
  Shape shape;
  // Channels of a group.
  int sourceChannels, sourceHeight, sourceWidth;
  int targetChannels, targetHeight, targetWidth;

 private:
  int offset(int backward) const { return isForward ? -backward : backward; }
};

/// Channels of a tap's columns: a number with which no tap lies in two blocks.
int lanesOf(int channels) { return channels <= 2 ? channels : channels <= 4 ? 4 : 8; }

/// Groups of `channels` channels begin at multiples of this in their blocks.
int firstChannelStep(int channels) { return std::gcd(channels, blockLength); }

/// Lines of the source that are one line of the product: as many as make it long, a divisor of all.
int linesOfProduct(const Directions& d) {
  constexpr int pixelsWanted = 112;
  int lines = std::clamp(pixelsWanted / d.sourceWidth, 1, d.sourceHeight);
  while (d.sourceHeight % lines != 0) --lines;
  return lines;
}

/// Products of lines of the source with all columns; they go to a ring of lines. The source's channels begin in the
/// middle of a block.
DirectShape productShape(const Directions& d, int firstChannel, int lines, int columns, int ringLines) {
  DirectShape c{};
  c.firstValue = firstChannel;
  for (int from = 0; from < d.sourceChannels; from += c.inCounts.back()) {
    const int ofBlock = from == 0 ? blockLength - firstChannel : blockLength;
    c.inCounts.push_back(std::min(d.sourceChannels - from, ofBlock));
  }
  c.inHeight = c.outHeight = d.sourceHeight / lines;
  c.inWidth = c.outWidth = d.sourceWidth * lines;
  c.inPixel = c.outPixel = blockLength;
  c.inLine = c.outLine = std::ptrdiff_t{c.inWidth} * blockLength;
  c.inPlane = std::ptrdiff_t{d.sourceHeight} * d.sourceWidth * blockLength;
  c.outBlocks = ceilDivide(columns, blockLength);
  c.outPlane = ringLines * c.outLine;
  c.strideHeight = c.strideWidth = 1;
  c.taps = {{0, 0}};
  return c;
}

/// Adds a tap's columns of source pixels [from, to) to a line of the result.
template <int kLanes>
void addColumns(const float* __restrict columns, float* __restrict sums, int from, int to, int stride, int offset) {
  for (int x = from; x < to; ++x) {
    const float* const source = columns + std::ptrdiff_t{x} * blockLength;
    float* const target = sums + (std::ptrdiff_t{x} * stride + offset) * kLanes;
    for (int c = 0; c < kLanes; ++c) target[c] += source[c];
  }
}

/// A line of the result from its sums, with zeros for the other channels of the block. What fills up the lanes is zero,
/// in `bias` and `addend` too.
template <int kLanes>
void deliver(const float* __restrict sums, const float* bias, const float* addend, float* result, int pixels) {
  float start[kLanes] = {};
  if (bias != nullptr) std::copy_n(bias, kLanes, start);
  for (int x = 0; x < pixels; ++x) {
    float pixel[blockLength] = {};
    for (int c = 0; c < kLanes; ++c) pixel[c] = sums[x * kLanes + c] + start[c];
    if (addend != nullptr) {
      for (int c = 0; c < kLanes; ++c) pixel[c] += addend[std::ptrdiff_t{x} * blockLength + c];
    }
    std::copy_n(pixel, blockLength, result + std::ptrdiff_t{x} * blockLength);
  }
}

/// The same of one channel among others of its block: adds it to what is there, or replaces it.
void deliverLane(const float* sums, int lanes, bool accumulates, float* result, int pixels) {
  for (int x = 0; x < pixels; ++x) {
    float& to = result[std::ptrdiff_t{x} * blockLength];
    to = accumulates ? to + sums[x * lanes] : sums[x * lanes];
  }
}

class ProductScatter final : public ConvPlan {
 public:
  /// `drivers`: for every place in a block where a group begins.
  ProductScatter(const Description& d, const KernelSet& kernels, const Directions& directions, int lines, int ringLines,
                 std::vector<DirectDriver> drivers)
      : ConvPlan(std::string(kernels.vectors) + " " + drivers.front().tileName()),
        description_(d),
        directions_(directions),
        lanes_(lanesOf(directions.targetChannels)),
        lines_(lines),
        ringLines_(ringLines),
        drivers_(std::move(drivers)),
        activate_(kernels.activate),
        fetchesInput_(comesFromMemory(drivers_.front(), d.shape)) {
    const auto batch = static_cast<std::size_t>(shape().batch) * static_cast<std::size_t>(shape().groups);
    const auto workers = static_cast<std::size_t>(d.maxWorkers);
    // Where parts meet, products are made twice.
    if (batch < 2 * workers && workers > 1) {
      parts_ = std::min(static_cast<std::size_t>(directions_.targetHeight), (2 * workers + batch - 1) / batch);
    }
  }

  std::size_t workspaceBytes() const override {
    return biasWorkspaceBytes(description_) +
           static_cast<std::size_t>(description_.maxWorkers) * scratchFloats() * sizeof(float);
  }
  std::size_t packedFloats() const override {
    return drivers_.front().packedFloats() * static_cast<std::size_t>(shape().groups);
  }

  double predictedSeconds() const override {
    const double pixels = double(directions_.sourceHeight) * directions_.sourceWidth;
    const double added =
        taps() * (pixels * (lanes_ > 4 ? 2.5 : 1.6) + coreModel().shortLoop * directions_.sourceHeight);
    const double delivered =
        (isGrouped() ? 2.0 * directions_.targetChannels : 10.0) * directions_.targetHeight * directions_.targetWidth;
    const double column = pixels * taps() * lanes_ * sizeof(float);
    const double moved = staysInL2(scratchFloats() * sizeof(float)) ? 0 : 2 * column / 16;
    const double ofGroup = drivers_.front().cycles() + added + delivered + moved;
    const double floats = shape().batch * (double(shape().inBlocks()) * static_cast<double>(shape().inPlane()) +
                                           double(shape().outBlocks()) * static_cast<double>(shape().outPlane()));
    // What comes from far caches is not hidden.
    return (ofGroup * shape().batch * shape().groups + farTransferCycles(floats * sizeof(float), 9)) / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    for (int group = 0; group < shape().groups; ++group) {
      const int first = group * directions_.sourceChannels % blockLength;
      driverOf(group).pack(packedOf(packed, group), [&](float* to, int columnBlock, int block, int, int value) {
        const int source = block == 0 ? value : block * blockLength - first + value;
        for (int k = 0; k < blockLength; ++k) {
          const int column = columnBlock * blockLength + k;
          const int tap = column / lanes_;
          const int target = column % lanes_;
          to[k] = 0;
          if (tap >= taps() || target >= directions_.targetChannels) continue;
          to[k] = weights[weightAt(group, source, target, tap / shape().kernelWidth, tap % shape().kernelWidth)];
        }
      });
    }
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const float* const bias = paddedBias(description_, buffers);
    float* const scratch = static_cast<float*>(buffers.workspace) + biasWorkspaceBytes(description_) / sizeof(float);
    const auto groups = static_cast<std::size_t>(shape().groups);
    executor.forEach(static_cast<std::size_t>(shape().batch) * groups * parts_, [&](std::size_t index, int worker) {
      const TaskPart lines = partOf(static_cast<std::size_t>(directions_.targetHeight), parts_, index % parts_);
      const std::size_t image = index / parts_ / groups;
      runLines(buffers, bias, static_cast<std::ptrdiff_t>(image), static_cast<int>(index / parts_ % groups),
               static_cast<int>(lines.from), static_cast<int>(lines.to),
               scratch + static_cast<std::size_t>(worker) * scratchFloats());
    });
  }

 private:
  const Shape& shape() const { return description_.shape; }
  int taps() const { return shape().kernelHeight * shape().kernelWidth; }
  int stride() const { return directions_.isForward ? 1 : shape().strideHeight; }
  std::ptrdiff_t lineFloats() const { return std::ptrdiff_t{lines_} * directions_.sourceWidth * blockLength; }
  std::ptrdiff_t ringPlane() const { return ringLines_ * lineFloats(); }
  std::ptrdiff_t columnFloats() const { return ceilDivide(taps() * lanes_, blockLength) * ringPlane(); }
  std::size_t scratchFloats() const {
    return static_cast<std::size_t>(columnFloats() + roundUp(directions_.targetWidth * lanes_, blockLength));
  }

  bool isGrouped() const { return shape().groups > 1; }
  const DirectDriver& driverOf(int group) const {
    const int first = group * directions_.sourceChannels % blockLength;
    return drivers_[static_cast<std::size_t>(first / firstChannelStep(directions_.sourceChannels))];
  }
  template <class Float>
  Float* packedOf(Float* packed, int group) const {
    return packed + static_cast<std::ptrdiff_t>(drivers_.front().packedFloats()) * group;
  }

  std::ptrdiff_t weightAt(int group, int source, int target, int r, int t) const {
    const bool isForward = directions_.isForward;
    const int sourceBlock = source / blockLength;
    const int value = source % blockLength;
    const WeightBlock block = weightBlock(shape(), description_.weightLayout, group, isForward ? 0 : sourceBlock,
                                          isForward ? sourceBlock : 0, r, t);
    return block.base + value * (isForward ? block.inStep : block.outStep) +
           target * (isForward ? block.outStep : block.inStep);
  }

  /// The line of the source that tap line `r` adds to line `y` of the result; -1 if there is none.
  int sourceLine(int y, int r) const {
    const int at = y - directions_.lineOffset(r);
    if (at < 0 || at % stride() != 0 || at / stride() >= directions_.sourceHeight) return -1;
    return at / stride();
  }

  /// Lines of the source before it add to none of the lines of the result from `y` on.
  int firstSource(int y) const {
    const int furthest = std::max(directions_.lineOffset(0), directions_.lineOffset(shape().kernelHeight - 1));
    return std::clamp((y - furthest) / stride(), 0, directions_.sourceHeight - 1);
  }

  void runLines(const Buffers& buffers, const float* bias, std::ptrdiff_t image, int group, int from, int to,
                float* scratch) const {
    const Directions& d = directions_;
    const std::ptrdiff_t sourcePlane = std::ptrdiff_t{d.sourceHeight} * d.sourceWidth * blockLength;
    const std::ptrdiff_t sourceBlock =
        image * ceilDivide(d.sourceChannels * shape().groups, blockLength) + group * d.sourceChannels / blockLength;
    const std::ptrdiff_t targetLine = std::ptrdiff_t{d.targetWidth} * blockLength;
    const float* const source = (d.isForward ? buffers.input : buffers.outputGradient) + sourceBlock * sourcePlane;
    const float* const packed = packedOf(buffers.packedWeights, group);
    const float* const addend =
        description_.residual ? buffers.residual : (description_.accumulate ? buffers.result : nullptr);
    float* const sums = scratch + columnFloats();
    // Lines of products up to this one have been made, from the first one that any of these lines may see.
    int computed = firstSource(from) / lines_ - 1;
    for (int y = from; y < to; ++y) {
      std::fill_n(sums, d.targetWidth * lanes_, 0.0F);
      for (int r = 0; r < shape().kernelHeight; ++r) {
        // In ascending order of what is read.
        const int tapLine = d.isForward ? r : shape().kernelHeight - 1 - r;
        const int line = sourceLine(y, tapLine);
        if (line < 0) continue;
        const int product = line / lines_;
        while (computed < product) multiplyLine(driverOf(group), packed, source, ++computed, scratch);
        addLine(
            scratch + product % ringLines_ * lineFloats() + std::ptrdiff_t{line % lines_} * d.sourceWidth * blockLength,
            tapLine, sums);
      }
      if (isGrouped()) {
        deliverGroup(sums, buffers.result, image, group, y);
        continue;
      }
      const std::ptrdiff_t at = (image * d.targetHeight + y) * targetLine;
      forLanes([&](auto lanes) {
        deliver<lanes.value>(sums, bias, addend != nullptr ? addend + at : nullptr, buffers.result + at, d.targetWidth);
      });
      activate_(description_.activation, buffers.result + at, d.targetWidth);
    }
  }

  /// Line `y` of the channels of a group, and of the zeros behind the last one.
  void deliverGroup(const float* sums, float* result, std::ptrdiff_t image, int group, int y) const {
    const Directions& d = directions_;
    const auto lineOf = [&](int channel) {
      const std::ptrdiff_t block = image * shape().inBlocks() + channel / blockLength;
      return result + (block * d.targetHeight + y) * d.targetWidth * std::ptrdiff_t{blockLength} +
             channel % blockLength;
    };
    const int first = group * d.targetChannels;
    for (int c = 0; c < d.targetChannels; ++c) {
      deliverLane(sums + c, lanes_, description_.accumulate, lineOf(first + c), d.targetWidth);
    }
    if (group + 1 < shape().groups) return;
    for (int channel = shape().inChannels; channel % blockLength != 0; ++channel) {
      float* const to = lineOf(channel);
      for (int x = 0; x < d.targetWidth; ++x) to[std::ptrdiff_t{x} * blockLength] = 0;
    }
  }

  void multiplyLine(const DirectDriver& driver, const float* packed, const float* source, int line, float* ring) const {
    const auto tiles = driver.tilesOfLine();
    const auto first = static_cast<std::size_t>(line) * tiles;
    driver.run({.input = source,
                .packed = packed,
                .bias = nullptr,
                .addend = nullptr,
                .output = ring + (line % ringLines_ - line) * lineFloats(),
                .images = 1,
                .inImage = 0,
                .outImage = 0,
                .firstTile = first,
                .endTile = first + tiles,
                .firstGroup = 0,
                .endGroup = driver.groups().size(),
                .activation = taccActivationNone,
                .fetchesInput = fetchesInput_});
  }

  /// The columns of a line of the source and of the kernel.
  void addLine(const float* columns, int r, float* sums) const {
    const Directions& d = directions_;
    const int along = d.isForward ? 1 : shape().strideWidth;
    for (int t = 0; t < shape().kernelWidth; ++t) {
      const int column = (r * shape().kernelWidth + t) * lanes_;
      const float* const from = columns + column / blockLength * ringPlane() + column % blockLength;
      const int offset = d.columnOffset(t);
      const int first = firstInside(offset, along);
      const int end = std::min(d.sourceWidth, endInside(offset, along, d.targetWidth));
      forLanes([&](auto lanes) { addColumns<lanes.value>(from, sums, first, end, along, offset); });
    }
  }

  /// Calls visit with the number of lanes as a type.
  template <class Visit>
  void forLanes(const Visit& visit) const {
    switch (lanes_) {
      case 1:
        return visit(std::integral_constant<int, 1>{});
      case 2:
        return visit(std::integral_constant<int, 2>{});
      case 4:
        return visit(std::integral_constant<int, 4>{});
      default:
        return visit(std::integral_constant<int, 8>{});
    }
  }

  Description description_;
  Directions directions_;
  int lanes_;      // of the columns of a tap
  int lines_;      // of the source, in a line of products
  int ringLines_;  // of products that are kept
  std::vector<DirectDriver> drivers_;
  decltype(KernelSet::activate) activate_;
  std::size_t parts_ = 1;  // of an image
  bool fetchesInput_;
};

}  // namespace

bool servesProductScatter(const Description& d) {
  const Shape& s = d.shape;
  const bool isServed = d.pass == taccConvForward
                            ? s.strideHeight == 1 && s.strideWidth == 1 && s.outChannels <= mostTargets
                            : d.pass == taccConvBackwardData && s.inPerGroup() <= mostTargets;
  return isServed && (s.groups == 1 || d.pass == taccConvBackwardData) && s.kernelHeight * s.kernelWidth > 1 &&
         d.inputLayout == taccLayoutNchw16c;
}

std::unique_ptr<ConvPlan> makeProductScatter(const Description& d, const KernelSet& kernels) {
  const Directions directions(d);
  const int lines = linesOfProduct(directions);
  const int seen =
      (d.shape.kernelHeight - 1) * d.shape.dilationHeight / (directions.isForward ? 1 : d.shape.strideHeight) + 1;
  const int ringLines = std::min(directions.sourceHeight / lines, (seen - 1) / lines + 2);
  const int columns = d.shape.kernelHeight * d.shape.kernelWidth * lanesOf(directions.targetChannels);
  std::vector<DirectDriver> drivers;
  const int kinds = d.shape.groups == 1 ? 1 : blockLength / firstChannelStep(directions.sourceChannels);
  for (int kind = 0; kind < kinds; ++kind) {
    const int first = kind * firstChannelStep(directions.sourceChannels);
    drivers.emplace_back(productShape(directions, first, lines, columns, ringLines), kernels);
  }
  return std::make_unique<ProductScatter>(d, kernels, directions, lines, ringLines, std::move(drivers));
}

}  // namespace tacc::conv

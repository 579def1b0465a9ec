// Forward convolution of an image with few channels.
#include <algorithm>
#include <optional>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/few_channels.hpp"
#include "compute/conv/algorithms/few_channels_inside.hpp"
#include "compute/conv/core_model.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/layout.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

BlockSteps outSteps(const Description& d) {
  return blockSteps(d.outputLayout, d.shape.outChannels, d.shape.outHeight, d.shape.outWidth);
}

DirectShape shapeOf(const Description& d, const FewChannelsImage& image) {
  const Shape& s = d.shape;
  const BlockSteps out = outSteps(d);
  DirectShape c{};
  c.inCounts.assign(static_cast<std::size_t>(image.blocks()), image.values());
  c.inHeight = (s.outHeight - 1) * s.strideHeight + (s.kernelHeight - 1) * s.dilationHeight + 1;
  c.inWidth = s.width + 2 * s.padWidth;
  c.inPixel = image.pixel();
  c.inLine = image.line();
  c.inPlane = image.plane();
  c.outBlocks = s.outBlocks();
  c.lastOuts = s.outChannels - (c.outBlocks - 1) * blockLength;
  c.isCut = !hasWholeBlocks(d.outputLayout, s.outChannels);
  c.images = s.batch * ceilDivide(s.outHeight, image.linesAtOnce());
  c.outHeight = image.linesAtOnce();
  c.outWidth = s.outWidth;
  c.outPixel = out.pixel;
  c.outLine = s.outWidth * out.pixel;
  c.outPlane = out.block;
  c.strideHeight = s.strideHeight;
  c.strideWidth = s.strideWidth;
  c.isScattered = true;
  for (int r = 0; r < s.kernelHeight; ++r) {
    for (int t = 0; t < s.kernelWidth; t += image.tapsOfRun()) {
      c.taps.push_back({r * s.dilationHeight, t * s.dilationWidth});
    }
  }
  if (s.isProduct()) {  // one long line
    c.inWidth *= c.inHeight;
    c.outWidth *= c.outHeight;
    c.outLine *= c.outHeight;
    c.inHeight = c.outHeight = 1;
  }
  return c;
}

/// The pixels inside, of which the image is read where it is.
DirectShape insideShape(const Description& d, const FewChannelsImage& image, const FewChannelsInside& inside) {
  const Shape& s = d.shape;
  DirectShape c = shapeOf(d, image);
  c.inLine = s.width * image.pixel();
  c.inPlane = c.inLine * s.height;
  c.outHeight = inside.lines.size();
  c.outWidth = inside.columns.size();
  c.inHeight = (c.outHeight - 1) * s.strideHeight + (s.kernelHeight - 1) * s.dilationHeight + 1;
  c.inWidth = (c.outWidth - 1) * s.strideWidth + s.kernelWidth;
  return c;
}

/// A column as a line: what are pixels of a line elsewhere are lines here, and the kernel's lines its columns.
DirectShape edgeShape(const DirectShape& inside, const Shape& s, const FewChannelsInside::Edge& edge) {
  DirectShape c = inside;
  c.inCounts.assign(inside.inCounts.size(), static_cast<int>(edge.taps.size() * inside.inPixel));
  c.inPixel = inside.inLine;
  c.inWidth = inside.inHeight;
  c.inHeight = c.outHeight = c.strideHeight = 1;
  c.outWidth = inside.outHeight;
  c.outPixel = inside.outLine;
  c.strideWidth = s.strideHeight;
  for (Tap& tap : c.taps) tap = {0, tap.dy};
  return c;
}

/// Whether dilation lies between what a tile reads, or a stride where it comes from behind the L2 cache. The next one
/// then begins no sooner.
bool readsApart(const Shape& s) {
  const double bytes = double(s.batch) * s.inChannels * s.height * s.width * sizeof(float);
  const bool skipsPixels = s.kernelWidth == 1 && s.strideWidth > 1;
  return s.dilationWidth > 1 || (skipsPixels && !staysInL2(static_cast<std::size_t>(bytes)));
}

/// A driver with its weights, and where it begins.
struct PlacedDriver {
  DirectDriver driver;
  int firstTap;           // of a line of the kernel
  std::ptrdiff_t packed;  // its weights among all of the plan, in floats
  std::ptrdiff_t input, output;
};

class FewChannelsForward final : public ConvPlan {
 public:
  FewChannelsForward(const Description& d, const KernelSet& kernels, const FewChannelsImage& image, DirectDriver driver)
      : ConvPlan(std::string(kernels.vectors) + " " + driver.tileName()),
        description_(d),
        image_(image),
        inside_(d.shape),
        isNonTemporal_(isNonTemporalProduct(d)),
        partTaken_(hidesEnds(d, kernels) ? 0.8 : 1) {
    place(std::move(driver), 0, 0, 0);
    if (!canReadInside()) return;
    placeInside(kernels);
    if (insideCycles() < copyingCycles()) return;
    while (readsInside()) drivers_.pop_back();
  }

  std::size_t workspaceBytes() const override {
    const std::size_t scratch =
        image_.scratchFloats() * sizeof(float) * static_cast<std::size_t>(description_.maxWorkers);
    return biasWorkspaceBytes(description_) + scratch;
  }
  std::size_t packedFloats() const override { return endOfPacked(); }
  double predictedSeconds() const override {
    const double cycles =
        partTaken_ * scatteredNhwc() * (readsInside() ? insideCycles() : copyingCycles()) * shape().batch;
    const double bytes = double(shape().batch) * double(shape().outBlocks() * shape().outPlane()) * sizeof(float);
    // Some blocks of a pixel at a time, of NHWC, come to memory in less order.
    const double bytesOfMemory = description_.outputLayout == taccLayoutNhwc ? 9 : 12;
    const double moved =
        hasFarCaches() ? farTransferCycles(bytes, 12) : transferCycles(touchedBytes(description_), bytesOfMemory);
    // Scattered values leave more time for it than runs do.
    constexpr double hidesMore = 1.5;
    const double beside =
        nearMemoryCycles(description_, hidesMore * cycles) - (shape().isProduct() ? nearSingleCycles(description_) : 0);
    return std::max(cycles + beside + lateCycles(moved), moved) / assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    const bool isNhwc = description_.inputLayout == taccLayoutNhwc;
    for (const PlacedDriver& placed : drivers_) {
      placed.driver.pack(packed + placed.packed, [&](float* to, int outBlock, int inBlock, int run, int value) {
        const int channel = isNhwc ? value % shape().inChannels : inBlock;
        const int r = run / runsOfLine(), firstTap = placed.firstTap + run % runsOfLine() * image_.tapsOfRun();
        const int column = firstTap + (isNhwc ? value / shape().inChannels : value);
        const WeightBlock block = weightBlock(shape(), description_.weightLayout, 0, outBlock, 0, r, column);
        const float* const from = weights + block.base + channel * block.inStep;
        for (int k = 0; k < blockLength; ++k) to[k] = k < block.outs ? from[k * block.outStep] : 0.0F;
      });
    }
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const float* const bias = paddedBias(description_, buffers);
    if (!readsInside()) {
      runParts(buffers, bias, {0, shape().outHeight}, executor);
      return;
    }
    runInside(buffers, bias, executor);
    runParts(buffers, bias, {0, inside_.lines.from}, executor);
    runParts(buffers, bias, {inside_.lines.to, shape().outHeight}, executor);
  }

 private:
  /// Of `moved` cycles what products of short vectors do not hide: line by line they write several blocks of a result,
  /// which memory is asked for in less order than block by block.
  double lateCycles(double moved) const {
    constexpr double notHidden = 0.4;
    const bool isLate = shape().isProduct() && areNearHalves(description_.vectorLanes) &&
                        description_.outputLayout == taccLayoutNchw16c && shape().outBlocks() > 1 &&
                        touchedBytes(description_) > coreModel().lastCacheBytes;
    return isLate ? notHidden * moved : 0;
  }
  const Shape& shape() const { return description_.shape; }
  std::ptrdiff_t inImage() const { return std::ptrdiff_t{shape().inChannels} * shape().height * shape().width; }
  std::ptrdiff_t outLine() const { return shape().outWidth * outSteps(description_).pixel; }
  std::size_t endOfPacked() const {
    const PlacedDriver& last = drivers_.back();
    return static_cast<std::size_t>(last.packed) + last.driver.packedFloats();
  }

  // The first driver reads copied lines. Behind it, if the image is read where it is, are that for the pixels inside
  // and one for each column at the edges.
  bool readsInside() const { return drivers_.size() > 1; }
  /// How much longer a step of half vectors takes where pixels are any distance apart: each value has an address of its
  /// own, some ten instructions beside 20. A core alone hides them, one that is shared does not: there short sums of
  /// lines of many values take 0.69 to 0.86 of the time, and as long alone. Of more channels that is not so.
  double scatteredNhwc() const {
    constexpr double ofShared = 1.1;
    constexpr int mostChannels = 4, leastValues = 16;
    const Shape& s = shape();
    const bool isMany = s.inChannels <= mostChannels && s.kernelWidth * s.inChannels >= leastValues;
    const bool isNhwc = description_.inputLayout == taccLayoutNhwc && areNearHalves(description_.vectorLanes);
    return isNhwc && isMany ? ofShared : 1;
  }
  /// Whether two wide units begin the next tile of one block before this one has ended. Where caches are near, on a
  /// Zen 5, they do so in products alone: other tiles took 1.15 to 1.3 times as long as if they did.
  static bool hidesEnds(const Description& d, const KernelSet& kernels) {
    return hasTwoWideUnits(kernels) && d.shape.outBlocks() == 1 && !readsApart(d.shape) &&
           (hasFarCaches() || d.shape.isProduct());
  }
  bool canReadInside() const {
    return image_.copiesWholeLines() && !inside_.isEmpty() && !inside_.hasEmptyColumns && runsOfLine() == 1;
  }
  /// Runs of values of a line of the kernel, in a channel or in all.
  int runsOfLine() const { return shape().kernelWidth / image_.tapsOfRun(); }
  void place(DirectDriver driver, int firstTap, std::ptrdiff_t input, std::ptrdiff_t output) {
    const std::ptrdiff_t packed = drivers_.empty() ? 0 : static_cast<std::ptrdiff_t>(endOfPacked());
    drivers_.push_back({std::move(driver), firstTap, packed, input, output});
  }
  void placeInside(const KernelSet& kernels) {
    const Shape& s = shape();
    const DirectShape all = insideShape(description_, image_, inside_);
    const auto inputOf = [&](int column) { return inside_.placeOf(s, all.inPixel, column); };
    const auto outputOf = [&](int column) { return inside_.lines.from * outLine() + column * all.outPixel; };
    const int first = inside_.columns.from;
    place(DirectDriver(all, kernels), 0, inputOf(first), outputOf(first));
    for (const FewChannelsInside::Edge& edge : inside_.edges) {
      place(DirectDriver(edgeShape(all, s, edge), kernels), edge.taps.from,
            inputOf(edge.column) + edge.taps.from * all.inPixel, outputOf(edge.column));
    }
  }

  /// What lines that are copied, or a column at an edge, cost beside their tiles. Where caches are far, tiles' own
  /// prices have it.
  static double besideCycles() { return hasFarCaches() ? 0 : 600; }
  /// For an image.
  double copyingCycles() const {
    const double parts = shape().isProduct() ? 1 : double(shape().outHeight) / image_.linesAtOnce();
    const DirectDriver& driver = drivers_.front().driver;
    const double ofPart = shape().isProduct() ? 0 : besideCycles();
    return std::max(driver.cycles() * image_.insidePart(), driver.storingCycles()) * parts + image_.copyCycles() +
           ofPart * parts;
  }
  double insideCycles() const {
    double cycles = copyingCycles() * (shape().outHeight - inside_.lines.size()) / shape().outHeight;
    for (std::size_t i = 1; i < drivers_.size(); ++i) {
      const DirectDriver& driver = drivers_[i].driver;
      cycles += callCycles + (i == 1 ? 0 : besideCycles()) +
                (i == 1 ? std::max(driver.cycles(), driver.storingCycles()) : driver.cycles());
    }
    return cycles;
  }

  /// Lines of the output from copied lines of the image.
  void runParts(const Buffers& buffers, const float* bias, PixelRange lines, const TaskExecutor& executor) const {
    if (lines.size() == 0) return;
    float* const scratch = static_cast<float*>(buffers.workspace) + biasWorkspaceBytes(description_) / sizeof(float);
    const BlockSteps out = outSteps(description_);
    const auto parts = static_cast<std::size_t>(ceilDivide(lines.size(), image_.linesAtOnce()));
    const PlacedDriver& placed = drivers_.front();
    executor.forEach(parts * static_cast<std::size_t>(shape().batch), [&](std::size_t index, int worker) {
      const auto image = static_cast<std::ptrdiff_t>(index / parts);
      const int from = lines.from + static_cast<int>(index % parts) * image_.linesAtOnce();
      const int to = std::min(lines.to, from + image_.linesAtOnce());
      const float* const input = image_.lines(buffers.input + image * inImage(), from, to,
                                              scratch + static_cast<std::size_t>(worker) * image_.scratchFloats());
      if (shape().isProduct()) {
        runTiles(placed, buffers, bias, input, image * out.image, {0, placed.driver.tiles()}, {0, 0, 0});
        return;
      }
      const std::size_t tilesOfLine = placed.driver.tilesOfLine();
      for (int line = from; line < to;) {
        const FewChannelsImage::Inside inside = image_.insideFrom(line, to);
        runTiles(placed, buffers, bias, input, image * out.image + from * outLine(),
                 {tilesOfLine * static_cast<std::size_t>(line - from),
                  tilesOfLine * static_cast<std::size_t>(line - from + inside.lines)},
                 inside);
        line += inside.lines;
      }
    });
  }

  /// The pixels inside, some lines in a task, and the columns at the edges, each in one.
  void runInside(const Buffers& buffers, const float* bias, const TaskExecutor& executor) const {
    const auto batch = static_cast<std::size_t>(shape().batch), lines = static_cast<std::size_t>(inside_.lines.size());
    const std::size_t edges = drivers_.size() - 2;
    const std::size_t parts = balancedCut({batch, lines}, static_cast<std::size_t>(description_.maxWorkers)).rowParts;
    const BlockSteps out = outSteps(description_);
    executor.forEach(batch * (parts + edges), [&](std::size_t index, int) {
      const auto image = static_cast<std::ptrdiff_t>(index / (parts + edges));
      const std::size_t part = index % (parts + edges);
      const PlacedDriver& placed = drivers_[part < parts ? 1 : part - parts + 2];
      TaskPart tiles{0, placed.driver.tiles()};
      if (part < parts) {
        const TaskPart some = partOf(lines, parts, part);
        tiles = {some.from * placed.driver.tilesOfLine(), some.to * placed.driver.tilesOfLine()};
      }
      runTiles(placed, buffers, bias, buffers.input + image * inImage() + placed.input,
               image * out.image + placed.output, tiles, {0, 0, 0});
    });
  }

  /// Tiles of the lines that `input` and `out`, where the output begins, are for.
  void runTiles(const PlacedDriver& placed, const Buffers& buffers, const float* bias, const float* input,
                std::ptrdiff_t out, TaskPart all, FewChannelsImage::Inside inside) const {
    const std::size_t most = placed.driver.tilesInOrder();
    for (std::size_t first = all.from; first < all.to; first += most)
      runInOrder(placed, buffers, bias, input, out, {first, std::min(all.to, first + most)}, inside);
  }
  void runInOrder(const PlacedDriver& placed, const Buffers& buffers, const float* bias, const float* input,
                  std::ptrdiff_t out, TaskPart tiles, FewChannelsImage::Inside inside) const {
    placed.driver.run({.input = input,
                       .packed = buffers.packedWeights + placed.packed,
                       .bias = bias,
                       .addend = description_.residual ? buffers.residual + out : nullptr,
                       .output = buffers.result + out,
                       .images = 1,
                       .inImage = 0,
                       .outImage = 0,
                       .firstTile = tiles.from,
                       .endTile = tiles.to,
                       .firstGroup = 0,
                       .endGroup = placed.driver.groups().size(),
                       .activation = description_.activation,
                       .isNonTemporal = isNonTemporal_ && isAligned(buffers.result),
                       .firstTap = static_cast<std::size_t>(inside.first * runsOfLine()),
                       .endTap = static_cast<std::size_t>(inside.end * runsOfLine())});
  }

  Description description_;
  FewChannelsImage image_;
  FewChannelsInside inside_;
  std::vector<PlacedDriver> drivers_;
  bool isNonTemporal_;
  double partTaken_;  // of the cycles, where the next tile begins before this one has ended
};

}  // namespace

bool servesFewChannelsForward(const Description& d) {
  Description sideBySide = d;
  sideBySide.shape.dilationWidth = 1;  // where taps are apart is as good
  return d.pass == taccConvForward && isFewChannels(sideBySide) && hasBlockSteps(d.outputLayout);
}

std::unique_ptr<ConvPlan> makeFewChannelsForward(const Description& d, const KernelSet& kernels) {
  const FewChannelsImage image(d, true);
  return std::make_unique<FewChannelsForward>(d, kernels, image, DirectDriver(shapeOf(d, image), kernels));
}

}  // namespace tacc::conv

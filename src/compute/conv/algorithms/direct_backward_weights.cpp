// The direct convolution, backward to the weights. For each tap and each pair of blocks of channels the gradient kernel
// keeps a part of the result in registers while the pixels go by; pixels whose tap is outside the image are skipped as
// lines and columns. A task owns its part of the result and adds up all images in order. Of a single pixel nothing is
// summed: there it is an outer product. Kernels load whole blocks of the output's gradient: where the tensor ends
// behind fewer channels, its last line is copied.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/direct_shapes.hpp"
#include "compute/conv/algorithms/tap_fit.hpp"
#include "compute/conv/algorithms/weight_pieces.hpp"
#include "compute/conv/algorithms/weight_tiles.hpp"
#include "compute/conv/core_model.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/layout.hpp"
#include "compute/conv/task_balance.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"
#include "compute/layers/kernels.hpp"

namespace tacc::conv {
namespace {

class DirectBackwardWeights final : public ConvPlan {
 public:
  DirectBackwardWeights(const Description& d, const KernelSet& kernels, const WeightTiles& tiles)
      : ConvPlan(fmt::format("{} {}x{}", kernels.vectors, mostRows(tiles), blocksOf(tiles))),
        description_(d),
        kernels_(kernels),
        layers_(layers::kernelTable(kernels.vectors)),
        tiles_(tiles),
        in_(stepsOf(d, d.inputLayout, d.shape.inChannels, d.shape.height, d.shape.width)),
        out_(stepsOf(d, d.outputLayout, d.shape.outChannels, d.shape.outHeight, d.shape.outWidth)),
        readsFromMemory_(goesByLines() ? touchedBytes(d) > bytesLeftToHardware() : readsFromMemory(d)) {
    for (const WeightTiles::Part& blocks : tiles_.blockParts) outParts_.push_back({2 * blocks.from, 2 * blocks.to});
    int half = tiles_.blockParts.empty() ? 0 : 2 * tiles_.blockParts.back().to;
    for (int i = 0; i < tiles_.halfTiles; ++i, half += tiles_.halvesOfTile)
      outParts_.push_back({half, half + tiles_.halvesOfTile});
    pieces_ = goesByLines() ? cutWeightLines(d.shape) : cutWeightPieces(d, blocksOf(tiles_), outParts_.size(), isCut());
    chooseTasks();
  }

  std::size_t workspaceBytes() const override { return (lastLineFloats() + resultFloats()) * sizeof(float); }
  double predictedSeconds() const override {
    const Shape& s = shape();
    const double lines =
        insidePairs(s.outHeight, s.kernelHeight, s.strideHeight, s.dilationHeight, s.padHeight, s.height);
    if (isOfOnePixel()) {
      constexpr double storeCycles = 2, blockCycles = 10;
      return (double(blockedFloats()) / blockLength * storeCycles + double(s.groups) * outBlocks() * blockCycles +
              deliveryCycles()) /
             assumedHertz;
    }
    double tiles = 0, ofLine = 0;
    for (const OutPart& part : outParts_) {
      const auto& rows = rowPartsOf(part, false);
      const double here = static_cast<double>(rows.size()) * inBlocks();
      tiles += here;
      ofLine += here * gradientLineCycles(kernels_, (part.to - part.from) / 2.0, rows.front().size());
    }
    const double calls = static_cast<double>(pieces_.size()) * s.kernelHeight * s.kernelWidth;
    const double beside = tiles * calls * callCycles + (isOneLine() ? 0 : s.batch * lines * s.kernelWidth * ofLine);
    // A line of the gradient for each tile, from the L2 cache where it is not in the L1 cache still. Where it is one
    // vector little else is done meanwhile.
    constexpr double cyclesOfLine = 4.5;
    constexpr std::ptrdiff_t pixelsOfCache = 256;
    const bool isHidden = std::ptrdiff_t{s.outHeight} * s.outWidth <= pixelsOfCache || kernels_.fmaLanes < blockLength;
    const double ofLines = isHidden ? 0 : tiles * blocksOf(tiles_) * cyclesOfLine;
    const double ofPixel = std::max(tiles_.cyclesOfPixel, ofLines) + tiles * lostCycles();
    const double steps =
        isOneLine() ? std::ceil(double(s.outHeight) * s.outWidth / kernels_.pixelsOfStep) : lines * stepsOfLine();
    // Hardware that looks ahead gets one block of outputs behind the other half as fast as several at a time; half as
    // fast are products of shorter vectors, too.
    const double times = s.outBlocks() == 1 && kernels_.fmaLanes == blockLength ? 2 : 1;
    // Taps of one block of outputs find little of what they read in the L1 cache where pixels are far apart.
    const double again = areFarApart() && !isProduct() && s.outBlocks() == 1 && hasTwoWideUnits(kernels_) ? 1.35 : 1;
    // Of so few rows loading takes longer than products, where vectors are short; more so from behind the L2 cache, but
    // for wide kernels with a stride, whose taps find lines that others have read.
    constexpr int fewRows = 3, wide = 7;
    const bool isFar = (s.kernelWidth < wide || s.strideWidth == 1) &&
                       static_cast<std::size_t>(s.inPlane()) * sizeof(float) > l2CacheBytes();
    const double ofFew = s.inPerGroup() <= fewRows && areNearHalves(kernels_.fmaLanes) ? isFar ? 1.4 : 1.2 : 1;
    const double cycles = s.groups * (again * ofFew * s.batch * steps * ofPixel + beside) + deliveryCycles() +
                          cutGroupCycles(description_) + skippedCycles();
    return std::max(cycles, farTransferCycles(times * touchedBytes(description_), 12)) / assumedHertz;
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const bool isBlocked = description_.weightLayout == taccWeightsBlocked;
    auto* const workspace = static_cast<float*>(buffers.workspace);
    float* const blocked = isBlocked ? buffers.result : workspace + lastLineFloats();
    if (isCut()) copyLastLine(buffers.outputGradient, workspace);
    const bool accumulates = isBlocked && description_.accumulate;
    executor.forEach(tasks(), [&](std::size_t index, int worker) {
      float* const own = blocked + (deliversByPart() ? static_cast<std::size_t>(worker) * partFloats() : 0);
      runTask(buffers, index, own, accumulates);
    });
    if (isBlocked && isCut()) clearNoChannels(blocked);
    if (!isBlocked && !deliversByPart())
      deliverGradient(blocked, buffers.result, shape(), description_.accumulate, executor);
  }

 private:
  const Shape& shape() const { return description_.shape; }
  static BlockSteps stepsOf(const Description& d, taccLayout_t layout, int channels, int height, int width) {
    return (d.pairs.areCompact ? pairSteps : blockSteps)(layout, channels, height, width);
  }
  std::size_t blockedFloats() const {
    const Shape& s = shape();
    return weightFloats(taccWeightsBlocked, s.outChannels, s.inChannels, s.kernelHeight, s.kernelWidth, s.groups);
  }
  /// Its channels follow each other. With padding and a stride the one output may read what is outside.
  bool isOfOnePixel() const {
    const Shape& s = shape();
    return s.batch * s.height * s.width == 1 && s.kernelHeight * s.kernelWidth == 1 && s.padHeight + s.padWidth == 0;
  }
  bool isProduct() const { return shape().kernelHeight * shape().kernelWidth == 1; }
  /// Whether the lines that a product reads follow each other without a gap.
  bool isOneLine() const {
    const Shape& s = shape();
    return isProduct() && s.outWidth * s.strideWidth == s.strideHeight * s.width;
  }
  /// Of all taps of a line of the kernel.
  int stepsOfLine() const {
    const Shape& s = shape();
    int steps = 0;
    for (int t = 0; t < s.kernelWidth; ++t) {
      const int dx = t * s.dilationWidth - s.padWidth;
      const int pixels = std::min(s.outWidth, endInside(dx, s.strideWidth, s.width)) - firstInside(dx, s.strideWidth);
      steps += ceilDivide(std::max(0, pixels), kernels_.pixelsOfStep);
    }
    return steps;
  }
  /// Of a product, for pixels between others that its stride leaves out: they fall on a part of the L2 cache's sets,
  /// and for those that do not stay there each tile of outputs waits.
  double skippedCycles() const {
    constexpr double ofLine = 9;
    const Shape& s = shape();
    if (areNearHalves(kernels_.fmaLanes)) return nearSkippedCycles(description_);
    if (!hasFarCaches() || !isProduct() || s.strideWidth == 1 || in_.pixel != blockLength) return 0;
    const double lines = double(s.batch) * s.groups * inBlocks() * s.outHeight * s.outWidth;
    const double bytes = lines * blockLength * sizeof(float);
    if (staysInL2(static_cast<std::size_t>(bytes * s.strideWidth))) return 0;
    return ofLine * lines * static_cast<double>(outParts_.size());
  }
  /// Of bringing the result to KCRS.
  double deliveryCycles() const {
    constexpr double ofFloat = 0.4;
    return description_.weightLayout == taccWeightsBlocked ? 0 : ofFloat * static_cast<double>(blockedFloats());
  }
  /// For a pixel of a tile: lines that the L1 cache would have for the tiles of the same block of channels that follow,
  /// had not pixels that are far apart driven them out. Tiles of all rows of a block are not followed by any.
  double lostCycles() const {
    constexpr double ofLine = 4;
    constexpr std::ptrdiff_t pixelsOfCache = 1024, floatsOfPage = 1024;
    const std::ptrdiff_t pixels = std::ptrdiff_t{shape().outHeight} * shape().outWidth;
    // Parts of few pixels. Short vectors have twice as many tiles, for which lines of a small image are read again, and
    // those of pixels pages apart in any part. Groups that cut blocks have few channels, and few tiles.
    const bool isOfParts = pixels >= pixelsOfPart || kernels_.fmaLanes == blockLength;
    const std::ptrdiff_t inPixel = in_.pixel * shape().strideWidth;
    const bool arePages =
        areNearHalves(kernels_.fmaLanes) && (inPixel % floatsOfPage == 0 || out_.pixel % floatsOfPage == 0);
    if ((isOneLine() && areFarApart() && isOfParts && !arePages) || groupsCutNhwc(description_)) return 0;
    const bool isStridedProduct = areFarApart() && isProduct();
    const bool isReadOnce =
        rowPartsOf(outParts_.front(), false).size() == 1 && (isProduct() || !hasTwoWideUnits(kernels_));
    if (isReadOnce || (pixels > pixelsOfCache && !isStridedProduct)) return 0;
    // Cores with two units, and short vectors, have an L2 cache that brings them in time, but where all pixels fall on
    // each other, and of NHWC with a stride, whose lines no hardware looks ahead over.
    const bool hasTime = hasTwoWideUnits(kernels_) || areNearHalves(kernels_.fmaLanes);
    const auto lost = [&](std::ptrdiff_t floats) {
      const bool areInTime = hasTime && floats % floatsOfPage != 0 && !isStridedProduct;
      return pixels > linesKept(floats) && !areInTime ? ofLine : 0;
    };
    return lost(inPixel) + lost(out_.pixel);
  }
  /// Whether each part of the output channels is complete before the next one begins: then it is brought to KCRS from
  /// the L2 cache, and only what is wanted is written to memory.
  bool deliversByPart() const {
    return description_.weightLayout == taccWeightsKcrs && shape().groups == 1 && inTasks_ == 1 && !isOfOnePixel() &&
           pieces_.size() == 1;
  }
  /// Of the workspace, where the result goes before it is brought to KCRS.
  std::size_t resultFloats() const {
    if (description_.weightLayout == taccWeightsBlocked) return 0;
    return deliversByPart() ? static_cast<std::size_t>(description_.maxWorkers) * partFloats() : blockedFloats();
  }

  /// Whether another pixel begins behind the last channel of the output's gradient.
  bool isCut() const { return !hasWholeBlocks(description_.outputLayout, shape().outPerGroup()); }
  /// The last group may end a block behind the others.
  std::ptrdiff_t pixelOfCopy() const {
    return std::ptrdiff_t{shape().outBlocks() + (shape().groups > 1 ? 1 : 0)} * blockLength;
  }
  /// Of the workspace, before the result.
  std::size_t lastLineFloats() const {
    return isCut() ? static_cast<std::size_t>(shape().outWidth * pixelOfCopy()) : 0;
  }
  /// The last line of the last image, in whole blocks.
  void copyLastLine(const float* gradient, float* copy) const {
    const Shape& s = shape();
    const float* from = gradient + s.batch * out_.image - s.outWidth * out_.pixel;
    std::fill_n(copy, lastLineFloats(), 0.0F);
    for (int x = 0; x < s.outWidth; ++x, from += out_.pixel, copy += pixelOfCopy()) {
      std::copy_n(from, s.outChannels, copy);
    }
  }
  std::size_t partFloats() const {
    // The two tiles that share a block are three.
    const int most = tiles_.halfTiles > 1 ? 3 : outParts_.front().endBlock();
    return static_cast<std::size_t>(std::max(most, outParts_.back().endBlock() - outParts_.back().firstBlock())) *
           blockedFloats() / static_cast<std::size_t>(outBlocks());
  }
  void deliverPart(const float* blocked, WeightTiles::Part blocks, float* kcrs) const {
    Shape some = shape();
    some.outChannels = std::min(blocks.size() * blockLength, some.outChannels - blocks.from * blockLength);
    const std::ptrdiff_t at =
        std::ptrdiff_t{blocks.from} * blockLength * some.inPerGroup() * some.kernelHeight * some.kernelWidth;
    deliverGradient(blocked, kcrs + at, some, description_.accumulate, TaskExecutor(serialExecutor()));
  }
  int outBlocks() const { return ceilDivide(shape().outPerGroup(), blockLength); }
  int inBlocks() const { return ceilDivide(shape().inPerGroup(), blockLength); }

  /// Output channels that a tile has together, in halves of blocks.
  struct OutPart {
    int from, to;
    int firstBlock() const { return from / 2; }
    int endBlock() const { return (to + 1) / 2; }
    bool beginsWithin() const { return from % 2 != 0; }
    bool hasHalf() const { return (to - from) % 2 != 0; }
  };
  /// The rows of its tiles, in full blocks of input channels or the last one.
  const std::vector<WeightTiles::Part>& rowPartsOf(const OutPart& part, bool isLast) const {
    if (part.hasHalf()) return isLast ? tiles_.lastHalfRowParts : tiles_.halfRowParts;
    return isLast ? tiles_.lastRowParts : tiles_.rowParts;
  }
  static int mostRows(const WeightTiles& tiles) {
    return (tiles.halfTiles > 0 ? tiles.halfRowParts : tiles.rowParts).front().size();
  }
  static double blocksOf(const WeightTiles& tiles) {
    return tiles.halfTiles > 0 ? tiles.halvesOfTile / 2.0 : tiles.blockParts.front().size();
  }

  /// Lanes of each group's last block that stand for no channel, where what is behind the others was summed.
  void clearNoChannels(float* blocked) const {
    const int channels = shape().outPerGroup() % blockLength;
    const std::size_t ofGroup = blockedFloats() / static_cast<std::size_t>(shape().groups);
    for (int group = 0; group < shape().groups; ++group) {
      float* const end = blocked += ofGroup;
      for (float* row = end - ofGroup / static_cast<std::size_t>(outBlocks()); row < end; row += blockLength)
        std::fill(row + channels, row + blockLength, 0.0F);
    }
  }

  void chooseTasks() {
    const auto groups = static_cast<std::size_t>(shape().groups);
    const TaskCut cut = balancedCut({groups, static_cast<std::size_t>(inBlocks()), outParts_.size()},
                                    static_cast<std::size_t>(description_.maxWorkers));
    outTasks_ = cut.columnParts;
    inTasks_ = cut.rowParts;
  }
  /// Those of a task: tiles that share a block stay together.
  TaskPart outPartsOf(std::size_t task) const {
    TaskPart parts = partOf(outParts_.size(), outTasks_, task);
    for (std::size_t* end : {&parts.from, &parts.to}) {
      if (*end < outParts_.size() && outParts_[*end].beginsWithin()) ++*end;
    }
    return parts;
  }
  std::size_t tasks() const { return static_cast<std::size_t>(shape().groups) * outTasks_ * inTasks_; }

  void runTask(const Buffers& buffers, std::size_t index, float* result, bool accumulates) const {
    const Shape& s = shape();
    const TaskPart ins = partOf(static_cast<std::size_t>(inBlocks()), inTasks_, index % inTasks_);
    index /= inTasks_;
    const std::size_t outTask = index % outTasks_;
    const auto group = static_cast<std::ptrdiff_t>(index / outTasks_);
    const std::ptrdiff_t firstOut = group * groupStep(out_, description_.outputLayout, s.outPerGroup());
    const float* const input = buffers.input + group * groupStep(in_, description_.inputLayout, s.inPerGroup());
    const float* const gradient = buffers.outputGradient + firstOut;
    const float* const lastLine = static_cast<const float*>(buffers.workspace) + firstOut;
    GradientCall call{};
    call.inputPixel = s.strideWidth * in_.pixel;
    call.inputLine = std::ptrdiff_t{s.strideHeight} * s.width * in_.pixel;
    call.inputImage = in_.image;
    call.inputBlock = in_.block;
    call.gradientImage = out_.image;
    call.gradientBlock = out_.block;
    call.outputRow = blockLength;
    call.outputBlock = std::ptrdiff_t{s.inPerGroup()} * s.kernelHeight * s.kernelWidth * blockLength;
    // A result that is written once and not read again soon.
    const bool isWrittenOnce = pieces_.size() == 1 && !accumulates;
    call.isNonTemporal = isWrittenOnce && !deliversByPart() &&
                         layers::isTooLargeForCaches(blockedFloats() * sizeof(float)) && isAligned(result) &&
                         kernels_.fmaLanes == blockLength;
    if (isOfOnePixel() && !call.isNonTemporal) {
      const auto first = static_cast<std::ptrdiff_t>(ins.from) * blockLength;
      const std::ptrdiff_t rows = std::min<std::ptrdiff_t>(ins.to * blockLength, s.inPerGroup()) - first;
      const TaskPart blocks = partOf(static_cast<std::size_t>(outBlocks()), outTasks_, outTask);
      for (auto block = static_cast<std::ptrdiff_t>(blocks.from); block < static_cast<std::ptrdiff_t>(blocks.to);
           ++block) {
        float* const to = result + (group * outBlocks() + block) * call.outputBlock + first * blockLength;
        const float* const values = (isCut() ? lastLine : gradient) + block * out_.block;
        layers_.outerProduct(input + first, rows, values, to, accumulates);
      }
      return;
    }
    const TaskPart outs = outPartsOf(outTask);
    if (outs.isEmpty()) return;
    const int firstBlock = outParts_[outs.from].firstBlock(), endBlock = outParts_[outs.to - 1].endBlock();
    // Where most taps are outside of a small image, their zeros are written in one go.
    const bool isCleared = mostTapsAreOutside(s) && !accumulates && inTasks_ == 1;
    if (isCleared && !deliversByPart()) {
      const std::ptrdiff_t blocksBefore = group * outBlocks();
      std::fill(result + (blocksBefore + firstBlock) * call.outputBlock,
                result + (blocksBefore + endBlock) * call.outputBlock, 0.0F);
    }
    // Tiles that share a block write halves of its lines of the cache, which are to be in the L1 cache for the second.
    constexpr int blocksOfShared = 4;
    for (const WeightPiece& piece : pieces_) {
      call.images = piece.images;
      call.accumulate = accumulates || &piece != &pieces_.front();
      call.gradientPixel = piece.isCopied ? pixelOfCopy() : out_.pixel;
      call.gradientLine = piece.isCopied ? 0 : s.outWidth * out_.pixel;
      const float* const ofPiece = piece.isCopied ? lastLine : gradient + piece.image * out_.image;
      for (std::size_t first = outs.from, end; first < outs.to; first = end) {
        end = first + (first + 1 < outs.to && outParts_[first + 1].beginsWithin() ? 2 : 1);
        const WeightTiles::Part blocks = {outParts_[first].firstBlock(), outParts_[end - 1].endBlock()};
        float* const ofPart = result + (deliversByPart() ? 0 : (group * outBlocks() + blocks.from) * call.outputBlock);
        if (isCleared && deliversByPart()) std::fill_n(ofPart, blocks.size() * call.outputBlock, 0.0F);
        for (std::size_t in = ins.from; in < ins.to; in += static_cast<std::size_t>(call.inputBlocks)) {
          const int most = end - first > 1 ? blocksOfShared : inBlocks();
          call.inputBlocks =
              std::min(most, inputBlocksAtOnce(outParts_[first], static_cast<int>(in), static_cast<int>(ins.to)));
          for (std::size_t out = first; out < end; ++out) {
            const OutPart& part = outParts_[out];
            const FirstRead isFirst = {out == outs.from, in == ins.from};
            runPair(call, {piece.fromLine, piece.toLine}, part, static_cast<int>(in), isFirst, isCleared,
                    input + piece.image * in_.image + static_cast<std::ptrdiff_t>(in) * in_.block,
                    ofPiece + part.firstBlock() * out_.block,
                    ofPart + (part.firstBlock() - blocks.from) * call.outputBlock);
          }
        }
        if (deliversByPart()) deliverPart(ofPart, blocks, buffers.result);
      }
    }
    if (call.isNonTemporal) endNonTemporal();
  }

  /// In how many parts pixels are gone through, each by all tiles of a block, so that the L1 cache keeps it for them:
  /// tiles of short vectors read more, for what they multiply, than the L2 cache gives. Many pixels hide how it begins.
  /// Of pixels of NHWC, lines of the cache apart, it keeps few, and no hardware looks ahead over them.
  int partsOfPixels(const GradientCall& call, const OutPart& outs) const {
    constexpr int bytesOfPart = 24 * 1024;
    // What is stored past the caches is not added to, and of pairs none is cut.
    if (!isProduct() || call.isNonTemporal || kernels_.pixelsOfStep > 1) return 1;
    if (areFarApart()) return ceilDivide(call.pixels, pixelsOfPart);
    if (kernels_.fmaLanes == blockLength || call.pixels > fewPixels) return 1;
    const int bytesOfPixel = (1 + outs.endBlock() - outs.firstBlock()) * blockLength * static_cast<int>(sizeof(float));
    return ceilDivide(call.pixels * bytesOfPixel, bytesOfPart);
  }
  static constexpr int fewPixels = 400, fewOutputs = 24;
  /// Whether what a tile sees of an image may leave the L2 cache: short vectors read more than the last one gives.
  bool goesByLines() const {
    return areNearHalves(kernels_.fmaLanes) && isOneLine() && !areFarApart() && !isCut() &&
           shape().outHeight * shape().outWidth > fewPixels;
  }
  /// Of what the last cache keeps, how much hardware brings in time: less of few outputs, with few products meanwhile.
  double bytesLeftToHardware() const {
    return coreModel().lastCacheBytes / (shape().outPerGroup() <= fewOutputs ? 2 : 1);
  }
  static constexpr int pixelsOfPart = 128;
  /// Whether pixels of a block of channels do not follow each other.
  bool areFarApart() const { return in_.pixel > blockLength || out_.pixel > blockLength; }

  /// Whether a pair of blocks is the first to read its pixels. What comes from memory is then fetched by its first
  /// tile: the next part of the pixels, or what is some pixels ahead.
  struct FirstRead {
    bool input, gradient;
  };

  struct Lines {
    int from, to;
  };
  /// With one tap, the gradients of whole blocks follow each other, and so may their tiles.
  int inputBlocksAtOnce(const OutPart& part, int from, int to) const {
    const int wholeBlocks = shape().inPerGroup() / blockLength;
    const bool follow = isProduct() && areEqual(rowPartsOf(part, false));
    return follow && from < wholeBlocks ? std::min(to, wholeBlocks) - from : 1;
  }

  /// All taps of one block of input channels, or of as many as the call says, and one part of the output channels, for
  /// some lines. `isCleared`: the result is zero where no tap is inside. The call is no copy, which could not begin
  /// before what was just stored in it is in the L1 cache: a third of the time of a tile of few pixels.
  void runPair(GradientCall& call, Lines lines, const OutPart& outs, int inBlock, FirstRead isFirst, bool isCleared,
               const float* input, const float* gradient, float* result) const {
    const Shape& s = shape();
    const int rows = std::min(blockLength, s.inPerGroup() - inBlock * blockLength);
    const int images = call.images;
    const bool accumulates = call.accumulate;
    call.beginsWithin = outs.beginsWithin();
    call.endsWithin = outs.to % 2 != 0 && outs.endBlock() == outBlocks();
    const GradientKernel* const kernels =
        (outs.hasHalf() ? kernels_.gradientHalf : kernels_.gradient)[outs.endBlock() - outs.firstBlock()];
    const int half = outs.beginsWithin() ? blockLength / 2 : 0;
    float* tapResult = result + std::ptrdiff_t{inBlock} * blockLength * s.kernelHeight * s.kernelWidth * blockLength;
    for (int r = 0; r < s.kernelHeight; ++r) {
      const int dy = r * s.dilationHeight - s.padHeight;
      const int from = std::max(lines.from, firstInside(dy, s.strideHeight));
      const int to = std::min(lines.to, endInside(dy, s.strideHeight, s.height));
      for (int t = 0; t < s.kernelWidth; ++t, tapResult += rows * blockLength) {
        const int dx = t * s.dilationWidth - s.padWidth;
        const int left = firstInside(dx, s.strideWidth);
        const int right = std::min(s.outWidth, endInside(dx, s.strideWidth, s.width));
        if (from >= to || left >= right) {
          // Whole blocks: another tile of one finds nothing inside either.
          for (int b = 0; b < outs.endBlock() - outs.firstBlock() && !call.accumulate && !isCleared; ++b) {
            std::fill_n(tapResult + b * call.outputBlock, call.inputBlocks * rows * blockLength, 0.0F);
          }
          continue;
        }
        call.lines = to - from;
        call.pixels = right - left;
        const float* const tapInput =
            input + from * call.inputLine + dy * (s.width * in_.pixel) + left * call.inputPixel + dx * in_.pixel;
        call.gradient = gradient + from * call.gradientLine + left * call.gradientPixel + half;
        if (call.pixels * call.inputPixel == call.inputLine && call.pixels == s.outWidth) {
          call.pixels *= call.lines;  // the lines follow each other without a gap
          call.lines = 1;
        }
        if (isProduct() && call.lines == 1 && call.pixels * call.inputPixel == call.inputImage &&
            call.pixels * call.gradientPixel == call.gradientImage) {
          call.pixels *= call.images;  // nor is there one between images of NHWC
          call.images = 1;
        }
        const std::vector<WeightTiles::Part>& parts = rowPartsOf(outs, rows < blockLength);
        call.parts = areEqual(parts) ? static_cast<int>(parts.size()) : 1;
        const int pixels = call.pixels, chunks = call.lines == 1 ? partsOfPixels(call, outs) : 1;
        const auto ahead = [&](std::ptrdiff_t pixel, std::ptrdiff_t line, std::ptrdiff_t image) {
          return chunks > 1 ? call.pixels * pixel : fetchDistance(call, pixel, line, image);
        };
        const bool isInputNew = readsFromMemory_ && isFirst.input && r < s.strideHeight && t < s.strideWidth;
        const bool isGradientNew = readsFromMemory_ && isFirst.gradient && r + t == 0;
        const float* const tapGradient = call.gradient;
        for (int chunk = 0, first = 0; chunk < chunks; ++chunk, first += call.pixels) {
          call.pixels = partSize(pixels, chunks, chunk);
          call.gradient = tapGradient + first * call.gradientPixel;
          call.accumulate = accumulates || first > 0;
          for (std::size_t p = 0; p < parts.size(); p += static_cast<std::size_t>(call.parts)) {
            const WeightTiles::Part& part = parts[p];
            call.input = tapInput + first * call.inputPixel + part.from;
            call.output = tapResult + part.from * blockLength + half;
            call.inputAhead = isInputNew && p == 0 ? ahead(call.inputPixel, call.inputLine, call.inputImage) : 0;
            call.gradientAhead =
                isGradientNew && p == 0 ? ahead(call.gradientPixel, call.gradientLine, call.gradientImage) : 0;
            kernels[part.size()](call);
          }
        }
        call.accumulate = accumulates;
        call.images = images;
      }
    }
  }

  Description description_;
  const KernelSet& kernels_;
  const layers::LayerKernels& layers_;
  WeightTiles tiles_;
  std::vector<OutPart> outParts_;
  BlockSteps in_, out_;
  bool readsFromMemory_;
  std::vector<WeightPiece> pieces_;
  std::size_t outTasks_ = 1, inTasks_ = 1;
};

}  // namespace

bool servesDirectBackwardWeights(const Description& d) {
  // Behind the last channel of a line that is not copied a block is read on, which is to end within the last line.
  const bool isLineEnough =
      d.shape.batch * d.shape.outHeight == 1 || std::ptrdiff_t{d.shape.outWidth} * d.shape.outChannels >= blockLength;
  return d.pass == taccConvBackwardWeights && hasBlockSteps(d.inputLayout) &&
         (hasWholeBlocks(d.outputLayout, d.shape.outPerGroup()) ||
          (hasBlockSteps(d.outputLayout) && !d.pairs.areRead && isLineEnough)) &&
         findsGroups(d);
}

std::unique_ptr<ConvPlan> makeDirectBackwardWeights(const Description& d, const KernelSet& kernels) {
  const int ins = d.shape.inPerGroup();
  const double pixels = std::min(400.0, double(d.shape.batch) * d.shape.outHeight * d.shape.outWidth);
  const bool isProduct = d.shape.kernelHeight * d.shape.kernelWidth == 1;
  return std::make_unique<DirectBackwardWeights>(
      d, kernels, chooseHalfTiles(kernels, d.shape.outPerGroup(), ins, pixels, isProduct));
}

}  // namespace tacc::conv

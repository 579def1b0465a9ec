// Gradient of the weights for an image with few channels.
#include <fmt/format.h>

#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/algorithms/few_channels.hpp"
#include "compute/conv/algorithms/few_channels_inside.hpp"
#include "compute/conv/algorithms/joined_lines.hpp"
#include "compute/conv/algorithms/last_line.hpp"
#include "compute/conv/algorithms/weight_tiles.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/layout.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// Lines of an image as they are read, copied or where they are.
struct LinesRead {
  const float* at;             // what the first value of the kernel multiplies, of the first line and column
  std::ptrdiff_t line, plane;  // from line to line, block to block
  PixelRange columns;          // of the output
};

class FewChannelsBackwardWeights final : public ConvPlan {
 public:
  FewChannelsBackwardWeights(const Description& d, const KernelSet& kernels, const FewChannelsImage& image,
                             const WeightTiles& tiles, const std::optional<JoinedTiles>& joined)
      : ConvPlan(fmt::format("{} {}x{}", kernels.vectors,
                             joined ? joined->lines * image.values() : tiles.rowParts.front().size(),
                             tiles.halfTiles > 0 ? 0.5 : tiles.blockParts.front().size())),
        description_(d),
        kernels_(kernels),
        image_(image),
        inside_(d.shape),
        tiles_(tiles),
        joined_(joined),
        lastLine_(d.outputLayout, d.shape),
        readsFromMemory_(readsFromMemory(d)),
        linesInTurn_(chooseLinesInTurn()),
        imagesTogether_(chooseImagesTogether()) {
    readsInside_ = imagesTogether_ == 1 && image_.copiesWholeLines() && tapsApart() == 1 && !inside_.isEmpty() &&
                   edgeCycles() < savedCycles();
    if (d.maxWorkers <= 1) return;
    const int vectors = joined_ ? blockLength : blockLength / kernels.fmaLanes;  // joined, each is a sum of its own
    dealOut(tiles_, static_cast<std::size_t>(d.maxWorkers), vectors);
    tasks_ = tiles_.blockParts.size();
  }

  std::size_t workspaceBytes() const override {
    const std::size_t scratch = scratchFloats() * static_cast<std::size_t>(description_.maxWorkers);
    return (scratch + lastLine_.floats() + (isBlocked() ? 0 : blockedFloats())) * sizeof(float);
  }
  double predictedSeconds() const override {
    const double lines = double(shape().batch) * shape().outHeight;
    const double parts = ceilDivide(shape().outHeight, image_.linesAtOnce());
    const double runs = parts * ceilDivide(shape().batch, imagesTogether_);
    const double tiles = static_cast<double>(tiles_.rowParts.size() * tiles_.blockParts.size());
    const double beside = kernelLines() * tiles * image_.phases() * (lines * lineCycles + runs * callCycles);
    // Every part of some images but the first adds to all sums.
    constexpr double bytesOfL1 = 24 * 1024;
    const double sumBytes = static_cast<double>(blockedFloats() * sizeof(float));
    const double bytesOfCycle = sumBytes > bytesOfL1 ? 20 : 64;
    const double added = (runs - 1) * 2 * sumBytes / bytesOfCycle;
    const double summed =
        joined_ ? joinedCycles(lines, runs)
                : lines * image_.insidePart() * shape().outWidth * kernelLines() * tiles_.cyclesOfPixel + beside;
    const double cycles = summed + added + apartCycles(lines) +
                          shape().batch * (image_.copyCycles() + (readsInside_ ? edgeCycles() - savedCycles() : 0));
    const double linesOfCache = double(shape().batch) * double(shape().outBlocks() * shape().outPlane()) / blockLength;
    constexpr double cyclesOfApart = 45;  // a line of the cache by itself
    const double apart = isApart() && hasFarCaches() ? cyclesOfApart * linesOfCache : 0;
    const double bytes = linesOfCache * blockLength * sizeof(float);
    return std::max({cycles, apart, farTransferCycles(bytes, 12)}) / assumedHertz;
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    auto* const scratch = static_cast<float*>(buffers.workspace);
    float* const lastLine = scratch + scratchFloats() * static_cast<std::size_t>(description_.maxWorkers);
    float* const blocked = isBlocked() ? buffers.result : lastLine + lastLine_.floats();
    if (lastLine_.isCut()) lastLine_.copy(buffers.outputGradient, lastLine);
    executor.forEach(tasks_, [&](std::size_t index, int worker) {
      runTask(buffers, partOf(tiles_.blockParts.size(), tasks_, index),
              scratch + static_cast<std::size_t>(worker) * scratchFloats(), lastLine, blocked);
    });
    if (isBlocked() && lastLine_.isCut()) clearNoChannels(blocked);
    if (!isBlocked()) deliverGradient(blocked, buffers.result, shape(), description_.accumulate, executor);
  }

 private:
  const Shape& shape() const { return description_.shape; }
  /// Taps of a line of the kernel that are apart in a line that is copied whole.
  int tapsApart() const { return shape().kernelWidth / image_.tapsOfRun(); }
  /// Lines of the kernel, of all channels that are not side by side; or taps, where these are apart.
  int kernelLines() const { return shape().kernelHeight * image_.blocks() * tapsApart(); }
  /// Joined, for all lines of the output.
  double joinedCycles(double lines, double runs) const {
    const double turns = ceilDivide(shape().outHeight, linesInTurn_);
    return lines * (shape().outWidth * joined_->cyclesOfPixel + joined_->cyclesOfLine) +
           runs * turns * joined_->cyclesOfCall;
  }
  /// For lines of an output in NHWC: hardware does not look ahead over pixels, of which tiles read a few blocks, and
  /// vectors that begin anywhere are parts of two lines of the cache. Fitted to layers of 3 to 8 channels.
  double apartCycles(double lines) const {
    const Shape& s = shape();
    if (blockSteps(description_.outputLayout, s.outChannels, s.outHeight, s.outWidth).pixel == blockLength) return 0;
    const bool areShort = kernels_.fmaLanes < blockLength;
    const double ofVector = areShort ? 1.5 : 2.7, ofCut = areShort ? 0.5 : 1.5;
    // Whole pixels are in the L1 cache for all lines of the kernel but one.
    const double lineParts = joined_ ? double(joined_->lineParts.size()) : kernelLines();
    const double reads =
        (joined_ ? 1 : double(tiles_.rowParts.size())) * (tiles_.blockParts.size() > 1 ? lineParts : 1);
    return lines * s.outWidth * s.outBlocks() * reads * (ofVector + (lastLine_.isCut() ? ofCut : 0));
  }
  /// Of a worker.
  std::size_t scratchFloats() const { return image_.scratchFloats() * static_cast<std::size_t>(imagesTogether_); }
  /// Whether tiles have half a block of outputs, and there is no other half.
  bool isHalf() const { return tiles_.halfTiles > 0; }
  bool isBlocked() const { return description_.weightLayout == taccWeightsBlocked; }
  std::size_t blockedFloats() const {
    const Shape& s = shape();
    return weightFloats(taccWeightsBlocked, s.outChannels, s.inChannels, s.kernelHeight, s.kernelWidth, 1);
  }

  /// Lanes of the last block that stand for no channel, where what is behind the others was summed.
  void clearNoChannels(float* blocked) const {
    const float* const end = blocked + blockedFloats();
    float* row = blocked + blockedFloats() / static_cast<std::size_t>(shape().outBlocks()) *
                               static_cast<std::size_t>(shape().outBlocks() - 1);
    for (; row < end; row += blockLength) std::fill(row + shape().outChannels % blockLength, row + blockLength, 0.0F);
  }

  /// The output's gradient of an image, and the copy of its last line, if there is one.
  struct Gradient {
    const float* image;
    const float* lastLine;
  };

  void runTask(const Buffers& buffers, TaskPart outs, float* scratch, const float* lastLine, float* result) const {
    const Shape& s = shape();
    const std::ptrdiff_t rowFloats = std::ptrdiff_t{s.inChannels} * blockLength;  // of one tap
    const std::ptrdiff_t inImage = std::ptrdiff_t{s.inChannels} * s.height * s.width;
    GradientCall call{};
    call.inputPixel = image_.pixel() * s.strideWidth;
    const BlockSteps out = blockSteps(description_.outputLayout, s.outChannels, s.outHeight, s.outWidth);
    call.gradientPixel = out.pixel * image_.phases();
    call.gradientLine = s.outWidth * out.pixel;
    call.gradientBlock = out.block;
    call.images = 1;
    call.endsWithin = isHalf();
    call.gradientImage = out.image;
    call.outputRow = outputRow();
    call.outputBlock = rowFloats * s.kernelHeight * s.kernelWidth;
    bool accumulates = isBlocked() && description_.accumulate;
    const bool isCopied = image_.scratchFloats() > 0;
    call.inputImage = isCopied ? static_cast<std::ptrdiff_t>(image_.scratchFloats()) : inImage;
    for (int image = 0; image < s.batch; image += call.images) {
      const float* const input = buffers.input + image * inImage;
      call.images = std::min(imagesTogether_, s.batch - image);
      const Gradient gradient{buffers.outputGradient + image * out.image,
                              lastLine_.isCut() && image + call.images == s.batch ? lastLine : nullptr};
      const auto copied = [&](PixelRange some) {
        for (int from = some.from; from < some.to; from += image_.linesAtOnce()) {
          const int to = std::min(some.to, from + image_.linesAtOnce());
          const LinesRead read{image_.lines(input, from, to, scratch), image_.line(), image_.plane(), {0, s.outWidth}};
          for (int other = 1; isCopied && other < call.images; ++other) {
            image_.lines(input + other * inImage, from, to, scratch + other * call.inputImage);
          }
          sumParts(call, outs, {from, to}, read, gradient, result, accumulates);
        }
      };
      if (!readsInside_) {
        copied({0, s.outHeight});
        continue;
      }
      const std::ptrdiff_t line = s.width * image_.pixel();
      const LinesRead inside{input + inside_.placeOf(s, image_.pixel(), inside_.columns.from), line, line * s.height,
                             inside_.columns};
      sumParts(call, outs, inside_.lines, inside, gradient, result, accumulates);
      for (const FewChannelsInside::Edge& edge : inside_.edges) sumEdge(call, outs, edge, input, gradient, result);
      copied({0, inside_.lines.from});
      copied({inside_.lines.to, s.outHeight});
    }
  }

  /// Cycles for an image that columns at the edges cost as lines of their own, whose tiles have few sums.
  double edgeCycles() const {
    double cycles = 0;
    for (const FewChannelsInside::Edge& edge : inside_.edges) {
      const double values = double(edge.taps.size()) * double(image_.pixel()) / image_.values();
      for (const WeightTiles::Part& blocks : tiles_.blockParts) {
        const double ofPixel = std::max(2.0, values * tiles_.cyclesOfPixel * blocks.size() / shape().outBlocks());
        cycles += shape().kernelHeight * image_.blocks() * (callCycles + inside_.lines.size() * ofPixel);
      }
    }
    return cycles;
  }
  /// And those that copying the lines inside would.
  double savedCycles() const { return image_.copyCycles() * inside_.lines.size() / shape().outHeight; }

  /// Lines of the output for all blocks of `outs`. `accumulates`: something is in the result.
  void sumParts(GradientCall& call, TaskPart outs, PixelRange some, const LinesRead& read, const Gradient& gradient,
                float* result, bool& accumulates) const {
    if (some.size() == 0) return;
    call.inputLine = read.line * shape().strideHeight;
    const int last = shape().outHeight - 1;
    if (gradient.lastLine == nullptr || some.to <= last) {
      sumBlocks(call, outs, some, read, gradient.image, result, accumulates);
      return;
    }
    if (some.from < last) sumBlocks(call, outs, {some.from, last}, read, gradient.image, result, accumulates);
    LinesRead behind = read;
    behind.at += (last - some.from) * call.inputLine;
    sumBlocks(call, outs, {last, last + 1}, behind, gradient.lastLine - last * call.gradientLine, result, accumulates);
  }
  void sumBlocks(GradientCall& call, TaskPart outs, PixelRange some, const LinesRead& read, const float* gradient,
                 float* result, bool& accumulates) const {
    const std::ptrdiff_t outBlock = call.gradientBlock;
    for (std::size_t part = outs.from; part < outs.to; ++part) {
      const WeightTiles::Part blocks = tiles_.blockParts[part];
      // What all lines of the kernel read of the gradient is in the L1 cache still.
      for (int first = some.from; first < some.to; first += linesInTurn_) {
        call.accumulate = accumulates || first > some.from;
        LinesRead turn = read;
        turn.at += (first - some.from) * call.inputLine;
        sumLines(call, blocks, {first, std::min(some.to, first + linesInTurn_)}, turn,
                 gradient + blocks.from * outBlock, result);
      }
    }
    accumulates = true;
  }

  /// Whether blocks of a pixel follow each other in a gradient that leaves the L2 cache, and tiles read some of them:
  /// hardware does not look ahead over those.
  bool isApart() const {
    const Shape& s = shape();
    const BlockSteps out = blockSteps(description_.outputLayout, s.outChannels, s.outHeight, s.outWidth);
    return out.pixel > blockLength && out.block == blockLength && tiles_.blockParts.size() > 1 &&
           !staysInL2(static_cast<std::size_t>(s.batch * out.image) * sizeof(float));
  }
  /// Lines of the gradient of the largest tile's blocks that are gone through for all values.
  int chooseLinesInTurn() const {
    constexpr int bytesInTurn = 24 * 1024, leastPixels = 96;  // of a call, or how it begins is felt
    const std::ptrdiff_t leastLines = ceilDivide(leastPixels * image_.phases(), shape().outWidth);
    const std::ptrdiff_t lineBytes =
        std::ptrdiff_t{shape().outWidth} * tiles_.blockParts.front().size() * blockLength * sizeof(float);
    const bool isOneTile = kernelLines() == 1 || (joined_ && kernelLines() <= joined_->lines);
    return isOneTile ? shape().outHeight
                     : static_cast<int>(std::max<std::ptrdiff_t>(leastLines, bytesInTurn / lineBytes));
  }

  /// Images of few pixels whose sums stay in registers, while what is read of all of them is in the L1 cache.
  int chooseImagesTogether() const {
    constexpr std::size_t bytesTogether = 24 * 1024;
    const Shape& s = shape();
    if (image_.linesAtOnce() < s.outHeight || lastLine_.isCut()) return 1;
    const std::size_t ofGradient = static_cast<std::size_t>(s.outHeight * s.outWidth) *
                                   static_cast<std::size_t>(tiles_.blockParts.front().size()) * blockLength;
    const std::size_t ofInput = static_cast<std::size_t>(s.inChannels * s.height * s.width);
    const std::size_t bytes = std::max({ofGradient, ofInput, image_.scratchFloats()}) * sizeof(float);
    return static_cast<int>(std::clamp<std::size_t>(bytesTogether / bytes, 1, static_cast<std::size_t>(s.batch)));
  }

  /// Some lines of the output, of which `read` is the first one.
  void sumLines(GradientCall& call, WeightTiles::Part blocks, PixelRange some, const LinesRead& read,
                const float* gradient, float* result) const {
    if (joined_) {
      sumJoined(call, blocks, some, read, gradient, result);
      return;
    }
    for (int i = 0; i < kernelLines(); ++i) {
      const KernelLine of = kernelLine(i);
      const PixelRange inside = linesInside(of.r, some);
      call.lines = inside.size();
      const float* const tapLines = read.at + placeOfRead(of, read) + (inside.from - some.from) * call.inputLine;
      const float* const tapGradient =
          gradient + inside.from * call.gradientLine + read.columns.from * (call.gradientPixel / image_.phases());
      const bool accumulates = call.accumulate;
      for (int phase = 0; phase < image_.phases() && phase < read.columns.size(); ++phase) {
        call.pixels = ceilDivide(read.columns.size() - phase, image_.phases());
        call.gradient = tapGradient + phase * (call.gradientPixel / image_.phases());
        call.accumulate = accumulates || phase > 0;
        for (const WeightTiles::Part& rows : tiles_.rowParts) {
          call.input = tapLines + phase * image_.phaseLine() + rows.from;
          call.output = result + blocks.from * call.outputBlock + placeOf(of.block, of.r, of.tap + rows.from);
          call.gradientAhead = readsFromMemory_ && i + rows.from == 0
                                   ? fetchDistance(call, call.gradientPixel, call.gradientLine, call.gradientImage)
                                   : 0;
          (isHalf() ? kernels_.gradientHalf : kernels_.gradient)[blocks.size()][rows.size()](call);
        }
      }
      call.accumulate = accumulates;
      call.gradientAhead = 0;
    }
  }

  /// A line of the kernel, of a run of channels; where its taps are apart, one of them.
  struct KernelLine {
    int block, r, tap;
  };
  KernelLine kernelLine(int index) const {
    const int line = index / tapsApart();
    return {line / shape().kernelHeight, line % shape().kernelHeight, index % tapsApart()};
  }
  /// What its first value reads, from what that of the first one does.
  std::ptrdiff_t placeOfRead(const KernelLine& of, const LinesRead& read) const {
    return of.block * read.plane + of.r * (read.line * shape().dilationHeight) +
           of.tap * shape().dilationWidth * image_.pixel();
  }

  /// The same of several lines of the kernel together. Those outside the image are zeros.
  void sumJoined(const GradientCall& given, WeightTiles::Part blocks, PixelRange some, const LinesRead& read,
                 const float* gradient, float* result) const {
    std::ptrdiff_t lines[mostJoinedLines], places[mostJoinedLines];
    GradientCall call = given;
    call.lines = some.size();
    call.pixels = read.columns.size();
    call.gradient = gradient + some.from * call.gradientLine + read.columns.from * call.gradientPixel;
    call.output = result + blocks.from * call.outputBlock;
    for (const WeightTiles::Part& part : joined_->lineParts) {
      for (int i = part.from; i < part.to; ++i) {
        const KernelLine of = kernelLine(i);
        lines[i - part.from] = placeOfRead(of, read);
        places[i - part.from] = placeOf(of.block, of.r, of.tap);
      }
      if (part.size() == 1) {  // with nothing to join it with
        sumAlone(call, blocks, read.at + lines[0], call.output + places[0], {0, image_.values()});
        continue;
      }
      const JoinedLinesCall joined{read.at,
                                   lines,
                                   call.inputPixel,
                                   call.inputLine,
                                   call.inputImage,
                                   call.gradient,
                                   call.gradientPixel,
                                   call.gradientLine,
                                   call.gradientImage,
                                   call.gradientBlock,
                                   call.images,
                                   call.lines,
                                   call.pixels,
                                   call.output,
                                   places,
                                   call.outputRow,
                                   call.outputBlock,
                                   call.accumulate};
      joinedLinesKernels(kernels_).sum[blocks.size()][part.size()][image_.values()](joined);
    }
  }
  /// Some values of a single line of the kernel, block by block: how many sums a kernel makes of each value depends on
  /// the blocks, and these on the number of workers.
  void sumAlone(GradientCall call, WeightTiles::Part blocks, const float* input, float* output,
                PixelRange values) const {
    const int most = isHalf() ? kernels_.halfRowLimit[1] : kernels_.rowLimit[1];
    const GradientKernel* const kernels = (isHalf() ? kernels_.gradientHalf : kernels_.gradient)[1];
    for (int block = 0; block < blocks.size(); ++block) {
      for (int from = values.from; from < values.to; from += most) {
        call.input = input + from;
        call.output = output + block * call.outputBlock + from * call.outputRow;
        kernels[std::min(most, values.to - from)](call);
      }
      call.gradient += call.gradientBlock;
    }
  }

  /// A column at an edge, for the lines inside: its pixels are in a line from top to bottom.
  void sumEdge(const GradientCall& given, TaskPart outs, const FewChannelsInside::Edge& edge, const float* input,
               const Gradient& gradient, float* result) const {
    const Shape& s = shape();
    const int last = s.outHeight - 1;
    if (gradient.lastLine == nullptr || inside_.lines.to <= last) {
      sumColumn(given, outs, edge, inside_.lines, input, gradient.image, result);
      return;
    }
    if (inside_.lines.from < last)
      sumColumn(given, outs, edge, {inside_.lines.from, last}, input, gradient.image, result);
    sumColumn(given, outs, edge, {last, last + 1}, input, gradient.lastLine - last * given.gradientLine, result);
  }
  void sumColumn(const GradientCall& given, TaskPart outs, const FewChannelsInside::Edge& edge, PixelRange lines,
                 const float* input, const float* gradient, float* result) const {
    const Shape& s = shape();
    const std::ptrdiff_t line = s.width * image_.pixel();
    const auto pixel = static_cast<int>(image_.pixel());
    const PixelRange values{edge.taps.from * pixel, edge.taps.to * pixel};
    GradientCall call = given;
    call.accumulate = true;
    call.inputPixel = line * s.strideHeight;
    call.gradientPixel = given.gradientLine;
    call.lines = 1;
    call.pixels = lines.size();
    for (std::size_t part = outs.from; part < outs.to; ++part) {
      const WeightTiles::Part blocks = tiles_.blockParts[part];
      float* const output = result + blocks.from * call.outputBlock;
      call.gradient = gradient + blocks.from * given.gradientBlock + lines.from * given.gradientLine +
                      edge.column * given.gradientPixel;
      for (int block = 0; block < image_.blocks(); ++block) {
        for (int r = 0; r < s.kernelHeight; ++r) {
          const float* const tap = input + inside_.placeOf(s, image_.pixel(), edge.column) + block * line * s.height +
                                   (r * s.dilationHeight + (lines.from - inside_.lines.from) * s.strideHeight) * line;
          sumAlone(call, blocks, tap, output + placeOf(block, r, 0), values);
        }
      }
    }
  }

  /// Floats of the result from the gradient of a value to that of the next.
  std::ptrdiff_t outputRow() const {
    const bool isPixelByPixel = image_.blocks() == 1 && image_.values() > shape().kernelWidth;
    return isPixelByPixel ? blockLength : std::ptrdiff_t{shape().inChannels} * blockLength;
  }
  /// Where a block of the result has the gradient of a value.
  std::ptrdiff_t placeOf(int block, int r, int value) const {
    const std::ptrdiff_t tapFloats = std::ptrdiff_t{shape().inChannels} * blockLength;
    return r * shape().kernelWidth * tapFloats + block * blockLength + value * outputRow();
  }

  /// Of some lines of the output those for which line `r` of the kernel is inside the image.
  PixelRange linesInside(int r, PixelRange some) const {
    const int offset = r * shape().dilationHeight - shape().padHeight;
    const int first = std::max(some.from, firstInside(offset, shape().strideHeight));
    return {first, std::max(first, std::min(some.to, endInside(offset, shape().strideHeight, shape().height)))};
  }

  Description description_;
  const KernelSet& kernels_;
  FewChannelsImage image_;
  FewChannelsInside inside_;
  WeightTiles tiles_;
  std::optional<JoinedTiles> joined_;  // whose blocks `tiles_` has
  LastLine lastLine_;
  bool readsInside_ = false, readsFromMemory_;
  int linesInTurn_;  // in which order sums are added, so for any number of workers
  int imagesTogether_;
  std::size_t tasks_ = 1;
};

/// `isWhole`: lines are copied whole where taps are apart too, and each tap is a line of its own.
std::unique_ptr<ConvPlan> makeOfLines(const Description& d, const KernelSet& kernels, bool isWhole) {
  const FewChannelsImage image(d, isWhole);
  const int lines = std::min(d.shape.outHeight, image.linesAtOnce());
  const auto tilesOf = [&](int rows) {
    return chooseWeightTiles(kernels, d.shape.outBlocks(), rows, double(lines) * d.shape.outWidth, rows,
                             callCycles + lines * lineCycles);
  };
  WeightTiles tiles = tilesOf(image.values());
  const int kernelLines = d.shape.kernelHeight * image.blocks() * (d.shape.kernelWidth / image.tapsOfRun());
  std::optional<JoinedTiles> joined;
  if (image.phases() == 1 && kernelLines > 1)
    joined = chooseJoinedTiles(kernels, d.shape.outBlocks(), kernelLines, image.values(), lines, d.shape.outWidth);
  const auto cyclesApart = [&](const WeightTiles& some) {
    return some.cyclesOfPixel * kernelLines + static_cast<double>(some.rowParts.size() * some.blockParts.size()) *
                                                  kernelLines * (lineCycles + callCycles / lines) / d.shape.outWidth;
  };
  const WeightTiles half = chooseHalfTile(kernels, d.shape.outChannels, image.values(), lines * d.shape.outWidth);
  if (half.halfTiles > 0 && cyclesApart(half) < cyclesApart(tiles)) tiles = half;
  if (joined) {
    const double apart = cyclesApart(tiles);
    const double together =
        joined->cyclesOfPixel + (joined->cyclesOfLine + joined->cyclesOfCall / lines) / d.shape.outWidth;
    if (together < image.insidePart() * apart) {
      tiles.halfTiles = 0;
      tiles.blockParts = joined->blockParts;
      tiles.rowParts = cutParts(image.values(), kernels.rowLimit[tiles.blockParts.front().size()]);
    } else {
      joined.reset();
    }
  }
  return std::make_unique<FewChannelsBackwardWeights>(d, kernels, image, tiles, joined);
}

}  // namespace

bool servesFewChannelsBackwardWeights(const Description& d) {
  // Behind the last channel of a line that is not copied a block is read on, which is to end within the last line.
  const bool isLineEnough =
      d.shape.batch * d.shape.outHeight == 1 || std::ptrdiff_t{d.shape.outWidth} * d.shape.outChannels >= blockLength;
  return d.pass == taccConvBackwardWeights && isFewChannels(d, true) &&
         (hasWholeBlocks(d.outputLayout, d.shape.outChannels) || (hasBlockSteps(d.outputLayout) && isLineEnough));
}

std::unique_ptr<ConvPlan> makeFewChannelsBackwardWeights(const Description& d, const KernelSet& kernels) {
  // Lines of every so many pixels are made for a stride of 1.
  bool isWhole = true;
  if (d.shape.dilationWidth > 1 && d.shape.strideWidth == 1) {
    Description alone = d;
    alone.maxWorkers = 1;  // what is chosen decides in which order sums are added
    isWhole =
        makeOfLines(alone, kernels, true)->predictedSeconds() <= makeOfLines(alone, kernels, false)->predictedSeconds();
  }
  return makeOfLines(d, kernels, isWhole);
}

}  // namespace tacc::conv

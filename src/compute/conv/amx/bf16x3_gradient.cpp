// The convolution backward to the weights as products of split numbers (bf16x3.hpp), or of bfloat16 as they are. What
// is summed over are positions of output pixels, so both operands are regrouped to pairs of positions: the output's
// gradient as it is, the input transposed, a line of positions for each channel, in which a tap is a distance.
//
// A part of the batch is split and regrouped, then multiplied for all pairs of channels and all taps; the results of
// the parts are added up in order.
#include <algorithm>
#include <cmath>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/caching.hpp"
#include "compute/conv/amx/bf16x3_jobs.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

constexpr int stepPositions = 2 * tileRows;

std::vector<Tap> tapsOf(const Shape& s) {
  std::vector<Tap> taps;
  for (int r = 0; r < s.kernelHeight; ++r) {
    for (int t = 0; t < s.kernelWidth; ++t) {
      taps.push_back({r * s.dilationHeight - s.padHeight, t * s.dilationWidth - s.padWidth});
    }
  }
  return taps;
}

// Blocks, and pairs of them, of one group of channels.
int inBlocksOf(const Shape& s) { return ceilDivide(s.inPerGroup(), blockLength); }
int outBlocksOf(const Shape& s) { return ceilDivide(s.outPerGroup(), blockLength); }
int inPairsOf(const Shape& s) { return ceilDivide(inBlocksOf(s), 2); }
int outPairsOf(const Shape& s) { return ceilDivide(outBlocksOf(s), 2); }

/// Pairs of positions begin at even ones; for taps at odd distances they are there once more, one position later.
int paritiesOf(const Shape& s) { return s.kernelHeight * s.kernelWidth == 1 ? 1 : 2; }

Bf16x3Image imageOf(const Shape& s, int numberParts) {
  Bf16x3Image image(2 * inPairsOf(s) * s.groups, numberParts, s.height, s.width, s.strideHeight, s.strideWidth,
                    s.outHeight, s.outWidth, tapsOf(s));
  // One side, the smaller one, is read over again for each pair of blocks of the other one.
  const std::size_t bytes = l2CacheBytes() / 2;
  const auto blocks = static_cast<std::size_t>(std::min(inBlocksOf(s) * paritiesOf(s), outBlocksOf(s)) * s.groups);
  image.choosePart(s.batch, bytes * static_cast<std::size_t>(s.inBlocks()) / blocks);
  return image;
}

/// The model: cycles on one worker.
double cyclesOf(const Shape& s, const Bf16x3Image& image, int numberParts) {
  const double taps = static_cast<double>(s.kernelHeight) * s.kernelWidth;
  const double tilePairs = double(s.groups) * 2 * inPairsOf(s) * outBlocksOf(s) * taps;
  const double bytes = sizeof(float) * double(s.batch) * static_cast<double>(s.inBlocks() * s.inPlane());
  const bool isSplit = numberParts == splitParts;
  const double regroupedRowCycles = isSplit ? splitRowCycles(bytes) + 16 : bfloat16RowCycles + 6;
  const double productCycles = isSplit ? 6 * tileProductCycles : bfloat16ProductCycles;
  double cycles = 0;
  for (int index = 0; index < image.parts(); ++index) {
    const double positions = image.positions(image.part(index), s.outHeight, s.outWidth);
    const double rows = double(image.rows()) * image.phases() * inPairsOf(s) + positions * outPairsOf(s);
    cycles += tilePairs * (std::ceil(positions / stepPositions) * productCycles + 2 * deliverTileCycles) +
              rows * s.groups * regroupedRowCycles;
  }
  return cycles;
}

class Bf16x3Gradient final : public ConvPlan {
 public:
  Bf16x3Gradient(const Description& d, const Bf16x3Kernels& kernels)
      : ConvPlan(d.pairs.areRead ? "amx 32x2 bf16 pairs" : "amx 32x2"),
        description_(d),
        kernels_(d.pairs.areRead ? *kernels.ofBfloat16Gradients : kernels),
        in_(d.inputLayout, d.shape.groups, d.shape.inPerGroup(), d.shape.height, d.shape.width),
        out_(d.outputLayout, d.shape.groups, d.shape.outPerGroup(), d.shape.outHeight, d.shape.outWidth),
        ofResult_(kernels),
        taps_(tapsOf(d.shape)),
        image_(imageOf(d.shape, kernels_.parts)) {
    const Shape& s = shape();
    image_.findRuns(in_.steps());
    for (int kind = 0; kind < image_.kinds(); ++kind) {
      const int part = image_.partOfKind(kind);
      gradientRuns_.push_back(part < 0 ? std::vector<Bf16x3Run>{} : image_.outputRuns(image_.part(part), out_.steps()));
    }
    const int most = image_.positions(image_.part(0), s.outHeight, s.outWidth);
    outTiles_ = ceilDivide(most, stepPositions);
    inTiles_ = (image_.rows() + stepPositions - 1) / stepPositions;
    for (std::ptrdiff_t step = 0; step < outTiles_; ++step) steps_.push_back(step * tileBytes);
    outputs_ = resultPlaces();
  }

  std::size_t workspaceBytes() const override {
    std::size_t most = 0;
    for (int workers = 1; workers <= description_.maxWorkers; ++workers) {
      most = std::max(most, static_cast<std::size_t>(workers) * workerBytes(cutFor(workers)));
    }
    return blockedBytes() + most;
  }
  double predictedSeconds() const override { return cyclesOf(shape(), image_, kernels_.parts) / assumedHertz; }
  void run(const Buffers& buffers, const TaskExecutor& executor) const override;

 private:
  // Of each worker: sums, twice those that are turned and delivered, and the rows that are regrouped.
  static constexpr std::size_t sumsBytes = 4 * static_cast<std::size_t>(tileBytes);
  static constexpr std::ptrdiff_t stagingRows = stepPositions + 1;
  std::size_t stagingBytes() const { return static_cast<std::size_t>(kernels_.parts * stagingRows * rowBytes); }

  /// A task is a range of pairs of blocks of the input, and one of the gradient, of one group: it regroups what it
  /// multiplies, so that tasks neither wait for each other nor share anything.
  struct Cut {
    int inParts, outParts;
    int tasks(const Shape& s) const { return s.groups * inParts * outParts; }
  };
  /// One task for each worker or more. The side that is cut first is the one that is regrouped once anyway.
  Cut cutFor(int workers) const {
    const Shape& s = shape();
    const int wanted = ceilDivide(workers, s.groups);
    const int firstParts = std::min(wanted, isInputOuter() ? inPairsOf(s) : outPairsOf(s));
    const int otherParts = std::min(ceilDivide(wanted, firstParts), isInputOuter() ? outPairsOf(s) : inPairsOf(s));
    return isInputOuter() ? Cut{firstParts, otherParts} : Cut{otherParts, firstParts};
  }
  /// Which of the sides is read once, while the other one is read over again from the L2 cache.
  bool isInputOuter() const { return inBlocksOf(shape()) * paritiesOf(shape()) > outBlocksOf(shape()); }

  const Shape& shape() const { return description_.shape; }
  bool isBlocked() const { return description_.weightLayout == taccWeightsBlocked; }
  std::size_t blockedFloats() const {
    const Shape& s = shape();
    return weightFloats(taccWeightsBlocked, s.outChannels, s.inChannels, s.kernelHeight, s.kernelWidth, s.groups);
  }
  std::size_t blockedBytes() const { return isBlocked() ? 0 : (blockedFloats() * sizeof(float) + 63) / 64 * 64; }
  std::ptrdiff_t bytesOf(std::ptrdiff_t numbers) const {
    return numbers * static_cast<std::ptrdiff_t>(kernels_.numberBytes);
  }
  // Of one part of the numbers, one block of channels, and for the input one parity of the positions.
  std::ptrdiff_t inPartBytes() const { return inTiles_ * tileBytes; }
  std::ptrdiff_t outPartBytes() const { return outTiles_ * tileBytes; }
  std::ptrdiff_t inBlockBytes() const { return kernels_.parts * inPartBytes() * paritiesOf(shape()); }
  std::ptrdiff_t outBlockBytes() const { return kernels_.parts * outPartBytes(); }
  // Of one task.
  std::ptrdiff_t inBytes(const Cut& cut) const {
    return 2 * ceilDivide(inPairsOf(shape()), cut.inParts) * image_.phases() * inBlockBytes();
  }
  std::ptrdiff_t outBytes(const Cut& cut) const {
    return 2 * ceilDivide(outPairsOf(shape()), cut.outParts) * outBlockBytes();
  }
  std::size_t workerBytes(const Cut& cut) const {
    return 3 * sumsBytes + stagingBytes() + static_cast<std::size_t>(inBytes(cut) + outBytes(cut));
  }

  std::vector<std::ptrdiff_t> resultPlaces() const;
  struct Task {
    int group;
    TaskPart ins, outs;  // pairs of blocks of the group
    std::byte *input, *gradient, *staging;
    float* sums;
    int inPairs() const { return static_cast<int>(ins.to - ins.from); }
    int outPairs() const { return static_cast<int>(outs.to - outs.from); }
  };
  Task taskOf(std::size_t index, const Cut& cut, std::byte* memory) const;
  void regroupInput(const Task& task, const std::byte* input, int part, int phase, int pair) const;
  void regroupGradient(const Task& task, const std::byte* gradient, int part, int pair) const;
  /// Two blocks of channels of a part, or the last one of a group alone.
  struct Blocks {
    const std::byte *even, *odd;
    std::ptrdiff_t step;  // numbers from one pixel that is read to the next
    bool isHalf;
    std::uint16_t lastMask;  // of the last of them
  };
  Blocks blocksOf(const SplitTensor& tensor, const std::byte* numbers, int part, int group, int pair, int blocks,
                  int stride) const;
  template <class Visit>
  void forEachTile(std::span<const Bf16x3Run> runs, const Blocks& blocks, std::byte* staging, std::ptrdiff_t tiles,
                   const Visit& visit) const;
  void multiply(const Task& task, int part, float* result, bool accumulates) const;

  Description description_;
  const Bf16x3Kernels& kernels_;  // of the numbers that are read
  SplitTensor in_, out_;
  const Bf16x3Kernels& ofResult_;  // which is float32
  std::vector<Tap> taps_;
  Bf16x3Image image_;
  std::ptrdiff_t inTiles_, outTiles_;                 // most of a part
  std::vector<std::vector<Bf16x3Run>> gradientRuns_;  // of each kind of part
  std::vector<std::ptrdiff_t> steps_, outputs_;
};

/// Where the rows of a pair of blocks of input channels are in a block of output channels, for each pair and tap.
std::vector<std::ptrdiff_t> Bf16x3Gradient::resultPlaces() const {
  std::vector<std::ptrdiff_t> places;
  for (int pair = 0; pair < inPairsOf(shape()); ++pair) {
    for (int tap = 0; tap < static_cast<int>(taps_.size()); ++tap) {
      for (int i = 0; i < 2 * tileRows; ++i) {
        const int block = 2 * pair + i / tileRows;
        std::ptrdiff_t place = -1;
        if (block < inBlocksOf(shape())) {
          const WeightBlock w = weightBlock(shape(), taccWeightsBlocked, 0, 0, block, tap / shape().kernelWidth,
                                            tap % shape().kernelWidth);
          if (i % tileRows < w.ins) place = w.base + i % tileRows * w.inStep;
        }
        places.push_back(place);
      }
    }
  }
  return places;
}

/// Splits the rows of a pair of blocks into the staging, 32 and one at a time, and calls visit(tile) for them. The
/// second block may be missing.
template <class Visit>
void Bf16x3Gradient::forEachTile(std::span<const Bf16x3Run> runs, const Blocks& blocks, std::byte* staging,
                                 std::ptrdiff_t tiles, const Visit& visit) const {
  alignas(64) static constexpr float zeros[blockLength] = {};
  Bf16x3Work work{.run = runs.data(),
                  .end = runs.data() + runs.size(),
                  .rows = tiles * stepPositions + 1,
                  .fetchRun = runs.data(),
                  .even = blocks.even,
                  .odd = blocks.isHalf ? reinterpret_cast<const std::byte*>(zeros) : blocks.odd,
                  .evenStep = blocks.step,
                  .oddStep = blocks.isHalf ? 0 : blocks.step,
                  .evenMask = blocks.isHalf ? blocks.lastMask : std::uint16_t{0xFFFF},
                  .oddMask = blocks.isHalf ? std::uint16_t{0xFFFF} : blocks.lastMask,
                  .output = staging,
                  .partStep = stagingRows * rowBytes};
  kernels_.split(work, 1);
  for (std::ptrdiff_t tile = 0; tile < tiles; ++tile) {
    kernels_.split(work, stepPositions);
    visit(tile);
    for (int p = 0; p < kernels_.parts; ++p) {
      std::byte* const first = staging + p * stagingRows * rowBytes;
      std::copy_n(first + stepPositions * rowBytes, rowBytes, first);
    }
    work.output -= stepPositions * rowBytes;
  }
}

Bf16x3Gradient::Blocks Bf16x3Gradient::blocksOf(const SplitTensor& tensor, const std::byte* numbers, int part,
                                                int group, int pair, int blocks, int stride) const {
  const std::ptrdiff_t at = image_.part(part).image * tensor.image + group * tensor.group + 2 * pair * tensor.block;
  const std::byte* const even = numbers + bytesOf(at);
  constexpr std::uint16_t all = 0xFFFF;
  return {even, even + bytesOf(tensor.block), stride * tensor.pixel, 2 * pair + 1 == blocks,
          2 * pair + 2 >= blocks ? tensor.lastMask : all};
}

void Bf16x3Gradient::regroupInput(const Task& task, const std::byte* input, int part, int phase, int pair) const {
  const Shape& s = shape();
  const Blocks blocks =
      blocksOf(in_, input, part, task.group, static_cast<int>(task.ins.from) + pair, inBlocksOf(s), s.strideWidth);
  std::byte* const tiles = task.input + std::ptrdiff_t{2} * (phase * task.inPairs() + pair) * inBlockBytes();
  forEachTile(image_.runs(part, phase), blocks, task.staging, inTiles_, [&](std::ptrdiff_t tile) {
    for (int parity = 0; parity < paritiesOf(s); ++parity) {
      std::byte* const at = tiles + parity * kernels_.parts * inPartBytes() + tile * tileBytes;
      kernels_.regroup({.rows = task.staging + parity * rowBytes,
                        .rowsPart = stagingRows * rowBytes,
                        .even = at,
                        .odd = blocks.isHalf ? nullptr : at + inBlockBytes(),
                        .outputPart = inPartBytes()});
    }
  });
}

void Bf16x3Gradient::regroupGradient(const Task& task, const std::byte* gradient, int part, int pair) const {
  const Blocks blocks =
      blocksOf(out_, gradient, part, task.group, static_cast<int>(task.outs.from) + pair, outBlocksOf(shape()), 1);
  std::byte* const tiles = task.gradient + std::ptrdiff_t{2} * pair * outBlockBytes();
  const std::span<const Bf16x3Run> runs = gradientRuns_[static_cast<std::size_t>(image_.kindOf(part))];
  forEachTile(runs, blocks, task.staging, outTiles_, [&](std::ptrdiff_t tile) {
    std::byte* const at = tiles + tile * tileBytes;
    kernels_.transpose({.rows = task.staging,
                        .rowsPart = stagingRows * rowBytes,
                        .even = at,
                        .odd = blocks.isHalf ? nullptr : at + outBlockBytes(),
                        .outputPart = outPartBytes()});
  });
}

void Bf16x3Gradient::multiply(const Task& task, int part, float* result, bool accumulates) const {
  const Shape& s = shape();
  const std::ptrdiff_t resultBlock = std::ptrdiff_t{s.inPerGroup()} * s.kernelHeight * s.kernelWidth * blockLength;
  DeliverWork deliver[2];
  int side = 0;
  ProductCall product{};
  product.aRow = rowBytes;
  product.aPart = outPartBytes();
  product.aTile = outBlockBytes();
  product.aSteps = steps_.data();
  product.bPart = inPartBytes();
  product.bTile = inBlockBytes();
  product.bStep = tileBytes;
  product.steps = ceilDivide(image_.positions(image_.part(part), s.outHeight, s.outWidth), stepPositions);
  product.sums = task.sums;
  kernels_.begin();
  for (int pair = 0; pair < task.inPairs() * task.outPairs(); ++pair) {
    const int in = isInputOuter() ? pair / task.outPairs() : pair % task.inPairs();
    const int out = isInputOuter() ? pair % task.outPairs() : pair / task.inPairs();
    const int inPair = static_cast<int>(task.ins.from) + in, outPair = static_cast<int>(task.outs.from) + out;
    const int rows = std::min(2, outBlocksOf(s) - 2 * outPair), columns = std::min(2, inBlocksOf(s) - 2 * inPair);
    product.a = task.gradient + std::ptrdiff_t{2} * out * outBlockBytes();
    float* const to = result + (std::ptrdiff_t{task.group} * outBlocksOf(s) + 2 * outPair) * resultBlock;
    for (std::size_t tap = 0; tap < taps_.size(); ++tap) {
      const std::ptrdiff_t distance = image_.distanceOf(taps_[tap]);
      product.b = task.input + std::ptrdiff_t{2} * (image_.phaseOf(taps_[tap]) * task.inPairs() + in) * inBlockBytes() +
                  distance % 2 * kernels_.parts * inPartBytes() + distance / 2 * rowBytes;
      float* const turned = task.sums + (1 + side) * 4 * tileFloats;
      // Kernels for bfloat16 would deliver that.
      if (&kernels_ != &ofResult_) ofResult_.deliver(deliver[1 - side]);
      kernels_.multiply[rows][columns](product, {&deliver[1 - side], false, nullptr, 0});
      if (kernels_.storeSums != nullptr && rows == 2 && columns == 2) kernels_.storeSums(task.sums);
      kernels_.turn(task.sums, rows, columns, turned);
      deliver[side] = {
          .sums = turned,
          .positions = columns * tileRows,
          .blocks = rows,
          .outputs = outputs_.data() + (static_cast<std::size_t>(inPair) * taps_.size() + tap) * 2 * tileRows,
          .addend = accumulates ? to : nullptr,
          .output = to,
          .outputBlock = resultBlock};
      side = 1 - side;
    }
  }
  ofResult_.deliver(deliver[1 - side]);
  kernels_.end();
}

Bf16x3Gradient::Task Bf16x3Gradient::taskOf(std::size_t index, const Cut& cut, std::byte* memory) const {
  const auto ins = static_cast<std::size_t>(cut.inParts), outs = static_cast<std::size_t>(cut.outParts);
  std::byte* const staging = memory + 3 * sumsBytes;
  std::byte* const input = staging + stagingBytes();
  return {static_cast<int>(index / (ins * outs)),
          partOf(static_cast<std::size_t>(inPairsOf(shape())), ins, index % ins),
          partOf(static_cast<std::size_t>(outPairsOf(shape())), outs, index / ins % outs),
          input,
          input + inBytes(cut),
          staging,
          reinterpret_cast<float*>(memory)};
}

void Bf16x3Gradient::run(const Buffers& buffers, const TaskExecutor& executor) const {
  auto* const workspace = static_cast<std::byte*>(buffers.workspace);
  float* const result = isBlocked() ? buffers.result : reinterpret_cast<float*>(workspace);
  const auto* const input = reinterpret_cast<const std::byte*>(buffers.input);
  const auto* const gradient = reinterpret_cast<const std::byte*>(buffers.outputGradient);
  const Cut cut = cutFor(executor.workers());
  executor.forEach(static_cast<std::size_t>(cut.tasks(shape())), [&](std::size_t index, int worker) {
    const Task task =
        taskOf(index, cut, workspace + blockedBytes() + static_cast<std::size_t>(worker) * workerBytes(cut));
    for (int part = 0; part < image_.parts(); ++part) {
      for (int phase = 0; phase < image_.phases(); ++phase) {
        for (int pair = 0; pair < task.inPairs(); ++pair) regroupInput(task, input, part, phase, pair);
      }
      for (int pair = 0; pair < task.outPairs(); ++pair) regroupGradient(task, gradient, part, pair);
      multiply(task, part, result, part > 0 || (isBlocked() && description_.accumulate));
    }
  });
  if (!isBlocked()) deliverGradient(result, buffers.result, shape(), description_.accumulate, executor);
}

}  // namespace

bool servesSplitGradient(const Description& d) {
  if (d.pass != taccConvBackwardWeights || !canSplit(d)) return false;
  constexpr double plainGradientProductsInCycle = 28;
  return d.algorithm == "split" || d.pairs.areRead ||
         cyclesOf(d.shape, imageOf(d.shape, splitParts), splitParts) <
             d.shape.operations() / 2 / plainGradientProductsInCycle;
}

std::unique_ptr<ConvPlan> makeSplitGradient(const Description& d, const KernelSet& kernels) {
  return std::make_unique<Bf16x3Gradient>(d, *kernels.split);
}

}  // namespace tacc::conv

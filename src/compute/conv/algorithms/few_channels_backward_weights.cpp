// Gradient of the weights for an image with few channels.
#include <fmt/format.h>

#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/few_channels.hpp"
#include "compute/conv/algorithms/weight_tiles.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/layout.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// Three lines of three values are nine rows of one tile: three alone would be few for what is read.
bool canJoinLines(const Shape& s, const FewChannelsImage& image, const WeightTiles& nine, const KernelSet& kernels) {
  return s.kernelHeight == 3 && image.values() == 3 && nine.rowParts.size() == 1 &&
         std::all_of(nine.blockParts.begin(), nine.blockParts.end(),
                     [&](const WeightTiles::Part& blocks) { return kernels.gradientLines[blocks.size()] != nullptr; });
}

/// Tiles of fewer blocks, until there are as many as workers: a lone tile would keep one of them busy alone.
void dealOut(WeightTiles& tiles, std::size_t workers) {
  std::vector<WeightTiles::Part>& parts = tiles.blockParts;
  while (parts.size() < workers) {
    const auto largest = std::max_element(parts.begin(), parts.end(),
                                          [](const auto& one, const auto& other) { return one.size() < other.size(); });
    if (largest->size() == 1) return;
    const int middle = (largest->from + largest->to + 1) / 2;
    const WeightTiles::Part behind{middle, largest->to};
    largest->to = middle;
    parts.insert(largest + 1, behind);
  }
}

class FewChannelsBackwardWeights final : public ConvPlan {
 public:
  FewChannelsBackwardWeights(const Description& d, const KernelSet& kernels, const FewChannelsImage& image,
                             const WeightTiles& tiles, bool joinsLines)
      : ConvPlan(
            fmt::format("{} {}x{}", kernels.vectors, tiles.rowParts.front().size(), tiles.blockParts.front().size())),
        description_(d),
        kernels_(kernels),
        image_(image),
        tiles_(tiles),
        joinsLines_(joinsLines),
        linesInTurn_(chooseLinesInTurn()) {
    if (d.maxWorkers <= 1) return;
    dealOut(tiles_, static_cast<std::size_t>(d.maxWorkers));
    tasks_ = tiles_.blockParts.size();
  }

  std::size_t workspaceBytes() const override {
    const std::size_t scratch = image_.scratchFloats() * static_cast<std::size_t>(description_.maxWorkers);
    return (scratch + (isBlocked() ? 0 : blockedFloats())) * sizeof(float);
  }
  double predictedSeconds() const override {
    const double lines = double(shape().batch) * shape().outHeight;
    const double sweeps = double(steps()) * image_.blocks();
    const double parts = ceilDivide(shape().outHeight, image_.linesAtOnce());
    const double tiles = static_cast<double>(tiles_.rowParts.size() * tiles_.blockParts.size());
    const double beside = sweeps * tiles * image_.phases() * (lines * lineCycles + shape().batch * parts * callCycles);
    // Every part of every image but the first adds to all sums.
    constexpr double bytesOfL1 = 24 * 1024;
    const double sumBytes = static_cast<double>(blockedFloats() * sizeof(float));
    const double bytesOfCycle = sumBytes > bytesOfL1 ? 20 : 64;
    const double added = (shape().batch * parts - 1) * 2 * sumBytes / bytesOfCycle;
    const double inside = joinsLines_ ? 1 : image_.insidePart();
    const double cycles = lines * inside * shape().outWidth * sweeps * tiles_.cyclesOfPixel + beside + added +
                          shape().batch * image_.copyCycles();
    const double bytes = double(shape().batch) * double(shape().outBlocks() * shape().outPlane()) * sizeof(float);
    return std::max(cycles, farTransferCycles(bytes, 12)) / assumedHertz;
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    auto* const scratch = static_cast<float*>(buffers.workspace);
    float* const blocked = isBlocked()
                               ? buffers.result
                               : scratch + image_.scratchFloats() * static_cast<std::size_t>(description_.maxWorkers);
    executor.forEach(tasks_, [&](std::size_t index, int worker) {
      runTask(buffers, partOf(tiles_.blockParts.size(), tasks_, index),
              scratch + static_cast<std::size_t>(worker) * image_.scratchFloats(), blocked);
    });
    if (!isBlocked()) deliverGradient(blocked, buffers.result, shape(), description_.accumulate, executor);
  }

 private:
  const Shape& shape() const { return description_.shape; }
  /// Of the kernel's lines, for each channel.
  int steps() const { return joinsLines_ ? 1 : shape().kernelHeight; }
  bool isBlocked() const { return description_.weightLayout == taccWeightsBlocked; }
  std::size_t blockedFloats() const {
    const Shape& s = shape();
    return weightFloats(taccWeightsBlocked, s.outChannels, s.inChannels, s.kernelHeight, s.kernelWidth, 1);
  }

  void runTask(const Buffers& buffers, TaskPart outs, float* scratch, float* result) const {
    const Shape& s = shape();
    const std::ptrdiff_t rowFloats = std::ptrdiff_t{s.inChannels} * blockLength;  // of one tap
    const std::ptrdiff_t inImage = std::ptrdiff_t{s.inChannels} * s.height * s.width;
    GradientCall call{};
    call.inputPixel = image_.pixel() * s.strideWidth;
    call.inputLine = image_.line() * s.strideHeight;
    call.inputRows = image_.line() * s.dilationHeight;
    const BlockSteps out = blockSteps(description_.outputLayout, s.outChannels, s.outHeight, s.outWidth);
    call.gradientPixel = out.pixel * image_.phases();
    call.gradientLine = s.outWidth * out.pixel;
    call.gradientBlock = out.block;
    call.images = 1;
    call.outputRow = image_.blocks() == 1 && image_.values() > s.kernelWidth ? blockLength : rowFloats;
    call.outputBlock = rowFloats * s.kernelHeight * s.kernelWidth;
    bool accumulates = isBlocked() && description_.accumulate;
    for (int image = 0; image < s.batch; ++image) {
      for (int from = 0; from < s.outHeight; from += image_.linesAtOnce()) {
        const int to = std::min(s.outHeight, from + image_.linesAtOnce());
        const float* const lines = image_.lines(buffers.input + image * inImage, from, to, scratch);
        for (std::size_t part = outs.from; part < outs.to; ++part) {
          const WeightTiles::Part blocks = tiles_.blockParts[part];
          const float* const gradient = buffers.outputGradient + image * out.image + blocks.from * out.block;
          // What all lines of the kernel read of the gradient is in the L1 cache still.
          const int turn = linesInTurn_;
          for (int first = from; first < to; first += turn) {
            call.accumulate = accumulates || first > from;
            sumLines(call, blocks,
                     {static_cast<std::size_t>(first), static_cast<std::size_t>(std::min(to, first + turn))},
                     lines + (first - from) * call.inputLine, gradient, result);
          }
        }
        accumulates = true;
      }
    }
  }

  /// Lines of the gradient of the largest tile's blocks that are gone through for all values.
  int chooseLinesInTurn() const {
    constexpr int bytesInTurn = 24 * 1024;
    const std::ptrdiff_t lineBytes =
        std::ptrdiff_t{shape().outWidth} * tiles_.blockParts.front().size() * blockLength * sizeof(float);
    return steps() * image_.blocks() == 1 ? shape().outHeight
                                          : static_cast<int>(std::max<std::ptrdiff_t>(1, bytesInTurn / lineBytes));
  }

  /// Some lines of the output; `lines` is where the first of them reads.
  void sumLines(GradientCall& call, WeightTiles::Part blocks, TaskPart some, const float* lines, const float* gradient,
                float* result) const {
    const Shape& s = shape();
    const std::ptrdiff_t rowFloats = std::ptrdiff_t{s.inChannels} * blockLength;
    for (int block = 0; block < image_.blocks(); ++block) {
      for (int r = 0; r < steps(); ++r) {
        const TaskPart inside = linesInside(r, static_cast<int>(some.from), static_cast<int>(some.to));
        call.lines = static_cast<int>(inside.to - inside.from);
        call.gradient = gradient + static_cast<std::ptrdiff_t>(inside.from) * call.gradientLine;
        const float* const tapLines = lines + block * image_.plane() + r * s.dilationHeight * image_.line() +
                                      static_cast<std::ptrdiff_t>(inside.from - some.from) * call.inputLine;
        const float* const tapGradient = call.gradient;
        const bool accumulates = call.accumulate;
        for (int phase = 0; phase < image_.phases() && phase < s.outWidth; ++phase) {
          call.pixels = ceilDivide(s.outWidth - phase, image_.phases());
          call.gradient = tapGradient + phase * (call.gradientPixel / image_.phases());
          call.accumulate = accumulates || phase > 0;
          for (const WeightTiles::Part& rows : tiles_.rowParts) {
            call.input = tapLines + phase * image_.phaseLine() + rows.from;
            call.output = result + blocks.from * call.outputBlock + r * s.kernelWidth * rowFloats +
                          block * blockLength + rows.from * call.outputRow;
            (joinsLines_ ? kernels_.gradientLines[blocks.size()] : kernels_.gradient[blocks.size()][rows.size()])(call);
          }
        }
        call.accumulate = accumulates;
      }
    }
  }

  /// Of lines [from, to) of the output those for which line `r` of the kernel is inside the image.
  TaskPart linesInside(int r, int from, int to) const {
    const auto part = [](int first, int end) {
      return TaskPart{static_cast<std::size_t>(first), static_cast<std::size_t>(std::max(first, end))};
    };
    if (joinsLines_) return part(from, to);
    const int offset = r * shape().dilationHeight - shape().padHeight;
    const int first = std::max(from, firstInside(offset, shape().strideHeight));
    return part(first, std::min(to, endInside(offset, shape().strideHeight, shape().height)));
  }

  Description description_;
  const KernelSet& kernels_;
  FewChannelsImage image_;
  WeightTiles tiles_;
  bool joinsLines_;
  int linesInTurn_;  // in which order sums are added, so for any number of workers
  std::size_t tasks_ = 1;
};

}  // namespace

bool servesFewChannelsBackwardWeights(const Description& d) {
  return d.pass == taccConvBackwardWeights && isFewChannels(d, true) &&
         hasWholeBlocks(d.outputLayout, d.shape.outChannels);
}

std::unique_ptr<ConvPlan> makeFewChannelsBackwardWeights(const Description& d, const KernelSet& kernels) {
  const FewChannelsImage image(d);
  const int lines = std::min(d.shape.outHeight, image.linesAtOnce());
  const auto tilesOf = [&](int rows) {
    return chooseWeightTiles(kernels, d.shape.outBlocks(), rows, double(lines) * d.shape.outWidth, rows,
                             callCycles + lines * lineCycles);
  };
  const WeightTiles nine = tilesOf(9);
  const bool joinsLines = canJoinLines(d.shape, image, nine, kernels);
  return std::make_unique<FewChannelsBackwardWeights>(d, kernels, image, joinsLines ? nine : tilesOf(image.values()),
                                                      joinsLines);
}

}  // namespace tacc::conv

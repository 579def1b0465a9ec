// Few channels in NCHW, before and behind: vectors of pixels of a line, where a block of 16 channels would be mostly
// zeros. Every channel of the result, of up to four at a time, sums its taps over lines of the input that are held in a
// ring, with zeros beside them (plane_lines.hpp). Backward to the data likewise, with the lines of the output's
// gradient; pixels of the result a stride apart see the same taps and are computed together. For the gradient of the
// weights a vector of sums for every tap stays in the L1 cache while lines go by.
#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/plane_lines.hpp"
#include "compute/conv/algorithms/plane_ring.hpp"
#include "compute/conv/task_balance.hpp"
#include "compute/conv/task_partition.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// Of a group. More are better off in blocks.
constexpr int mostChannels = 8;
/// Beside the products, for each line.
constexpr double cyclesOfLine = 70;
/// What beginning a line of the input and of the kernel costs, and where a stride has taken it apart.
constexpr double cyclesOfLineSum = 6, cyclesOfPhaseSum = 20;
/// Of the lines and lists of one worker.
constexpr std::size_t mostScratchFloats = 256 * 1024;

/// Pixels that no kernel reads beyond.
constexpr std::ptrdiff_t stretch = 128;
/// Of a product, whose planes are one line: pixels that all results are made of before the next ones.
constexpr std::ptrdiff_t planePixelsInTurn = 8 * stretch;

/// What both kinds of plans know.
class PlanesPlan : public ConvPlan {
 protected:
  PlanesPlan(const Description& d, const KernelSet& kernels)
      : ConvPlan(std::string(kernels.vectors) + " planes"),
        description_(d),
        isData_(d.pass == taccConvBackwardData),
        lines_(d.shape, isData_),
        kernels_(planeKernels(kernels)) {}

  const Shape& shape() const { return description_.shape; }
  std::ptrdiff_t inPlane() const { return std::ptrdiff_t{shape().height} * shape().width; }
  std::ptrdiff_t outPlane() const { return std::ptrdiff_t{shape().outHeight} * shape().outWidth; }
  std::ptrdiff_t taps() const { return std::ptrdiff_t{shape().kernelHeight} * shape().kernelWidth; }
  std::size_t ringFloats() const { return PlaneRing::floatsOf(lines_, shape().kernelHeight, shape().kernelWidth); }
  PlaneRing ringIn(float* scratch) const { return {lines_, shape().kernelHeight, shape().kernelWidth, scratch}; }

  /// Of all images and groups, without what is computed: bringing lines, and making the lists of `results` lines.
  double lineCycles(int results) const {
    const double channels = lines_.channels();
    const double lists = results * channels * static_cast<double>(taps());
    return double(shape().batch) * shape().groups *
           (std::min(lines_.height(), results * shape().kernelHeight) * channels * lines_.prepareCycles() + lists);
  }
  double memoryCycles() const {
    const double floats = double(shape().inChannels) * static_cast<double>(inPlane()) +
                          double(shape().outChannels) * static_cast<double>(outPlane());
    return transferCycles(floats * sizeof(float) * shape().batch, 9);
  }

  Description description_;
  bool isData_;
  PlaneLines lines_;
  const PlaneKernels& kernels_;
};

/// Forward and backward to the data.
class PlaneProducts final : public PlanesPlan {
 public:
  PlaneProducts(const Description& d, const KernelSet& kernels)
      : PlanesPlan(d, kernels),
        targets_(isData_ ? d.shape.inPerGroup() : d.shape.outPerGroup()),
        height_(isData_ ? d.shape.height : d.shape.outHeight),
        width_(isData_ ? d.shape.width : d.shape.outWidth) {
    const auto tasks = static_cast<std::size_t>(d.shape.batch) * static_cast<std::size_t>(d.shape.groups);
    parts_ = balancedCut({tasks, static_cast<std::size_t>(height_)}, static_cast<std::size_t>(d.maxWorkers)).rowParts;
  }

  std::size_t workspaceBytes() const override {
    return static_cast<std::size_t>(description_.maxWorkers) * scratchFloats() * sizeof(float);
  }
  std::size_t packedFloats() const override { return static_cast<std::size_t>(shape().groups * groupFloats()); }
  double predictedSeconds() const override {
    const Shape& s = shape();
    const double pairs =
        insidePairs(s.outHeight, s.kernelHeight, s.strideHeight, s.dilationHeight, s.padHeight, s.height);
    const double ofValue = cyclesOfValue();
    if (s.isProduct()) {  // and results are written, which of short vectors takes a while beside so few products
      const double vectors = static_cast<double>(inPlane()) / kernels_.lanes;
      const double ofResult = haveShortVectors() ? 4 : 1;
      const double cycles = vectors * (lines_.channels() * ofValue + targets_ * ofResult) + cyclesOfLine;
      return std::max(double(s.batch) * s.groups * cycles, memoryCycles()) / assumedHertz;
    }
    const double vectors = ceilDivide(ceilDivide(width_, lines_.phases()), kernels_.lanes);
    const double products = pairs * s.kernelWidth * lines_.channels() * vectors * ofValue;
    const double lineSums = pairs * lines_.channels() * (lines_.phases() > 1 ? cyclesOfPhaseSum : cyclesOfLineSum);
    const double beside =
        (double(height_) * lines_.phases() * cyclesOfLine + lineSums) * ceilDivide(targets_, mostPlaneOutputs) +
        (lines_.phases() > 1 ? spreadCycles() : 0.0);
    return std::max(double(s.batch) * s.groups * (products + beside) + lineCycles(height_), memoryCycles()) /
           assumedHertz;
  }

  void pack(const float* weights, float* packed) const override {
    const Shape& s = shape();
    for (int group = 0; group < s.groups; ++group) {
      for (int target = 0; target < targets_; ++target) {
        const int first = target / mostPlaneOutputs * mostPlaneOutputs;
        const int together = std::min(mostPlaneOutputs, targets_ - first);
        float* const to = packed + group * groupFloats() + first * values() + (target - first);
        for (int source = 0; source < lines_.channels(); ++source) {
          const int out = isData_ ? source : target;
          const int in = isData_ ? target : source;
          for (int r = 0; r < s.kernelHeight; ++r) {
            for (int t = 0; t < s.kernelWidth; ++t) {
              const WeightBlock block = weightBlock(s, description_.weightLayout, group, 0, 0, r, t);
              const std::ptrdiff_t place = (std::ptrdiff_t{source} * s.kernelHeight + r) * s.kernelWidth + t;
              to[place * together] = weights[block.base + out * block.outStep + in * block.inStep];
            }
          }
        }
      }
    }
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const auto groups = static_cast<std::size_t>(shape().groups);
    executor.forEach(static_cast<std::size_t>(shape().batch) * groups * parts_, [&](std::size_t index, int worker) {
      const auto image = static_cast<int>(index / parts_ / groups);
      const auto group = static_cast<int>(index / parts_ % groups);
      float* const scratch =
          static_cast<float*>(buffers.workspace) + static_cast<std::size_t>(worker) * scratchFloats();
      if (shape().isProduct()) {
        const auto stretches = static_cast<std::size_t>((inPlane() + stretch - 1) / stretch);
        runPixels(buffers, image, group, partOf(stretches, parts_, index % parts_), scratch);
      } else {
        runLines(buffers, image, group, partOf(static_cast<std::size_t>(height_), parts_, index % parts_), scratch);
      }
    });
  }

 private:
  bool haveShortVectors() const { return areNearHalves(kernels_.lanes); }
  /// Of a vector of pixels of a value of the input, for all results.
  double cyclesOfValue() const {
    if (!haveShortVectors()) return targets_ * 0.77 + ceilDivide(targets_, mostPlaneOutputs) * 0.7;
    // Of so many results at a time.
    constexpr double ofTargets[mostPlaneOutputs + 1] = {0, 1.55, 2.35, 2.75, 3.1};
    const int whole = targets_ / mostPlaneOutputs;
    return whole * ofTargets[mostPlaneOutputs] + ofTargets[targets_ % mostPlaneOutputs];
  }
  /// Lines of phases to every s-th pixel of the result, of all channels of a group. Where vectors are short what begins
  /// and ends such a line is felt too.
  double spreadCycles() const {
    const bool areShort = kernels_.lanes < blockLength;
    const double ofPixel = areShort ? 2.5 : 1.5, ofLine = areShort ? 25 : 0;
    return double(height_) * targets_ * (ofPixel * width_ + ofLine * lines_.phases());
  }
  std::ptrdiff_t values() const { return lines_.channels() * taps(); }
  std::ptrdiff_t groupFloats() const { return targets_ * values(); }
  /// A line of a phase, before it is spread.
  std::ptrdiff_t phaseFloats() const {
    return lines_.phases() > 1 ? roundUp(ceilDivide(width_, lines_.phases()), blockLength) : 0;
  }
  std::size_t scratchFloats() const {
    if (shape().isProduct()) return static_cast<std::size_t>(mostChannels * stretch);
    return ringFloats() + static_cast<std::size_t>(mostPlaneOutputs * phaseFloats());
  }

  /// A group's planes of an image that are read; where those of the result begin; and what is added.
  const float* planesOf(const Buffers& buffers, int image, int group) const {
    const float* const source = isData_ ? buffers.outputGradient : buffers.input;
    const std::ptrdiff_t plane = isData_ ? outPlane() : inPlane();
    const int channels = isData_ ? shape().outChannels : shape().inChannels;
    return source + (std::ptrdiff_t{image} * channels + group * lines_.channels()) * plane;
  }
  std::ptrdiff_t targetOf(int image, int group, std::ptrdiff_t plane) const {
    const int channels = isData_ ? shape().inChannels : shape().outChannels;
    return (std::ptrdiff_t{image} * channels + group * targets_) * plane;
  }
  const float* addendOf(const Buffers& buffers) const {
    return description_.residual ? buffers.residual : (description_.accumulate ? buffers.result : nullptr);
  }

  /// Of a product, whose planes are one line, the pixels of some stretches. The last one, behind which there may be
  /// nothing that can be read, is copied.
  void runPixels(const Buffers& buffers, int image, int group, TaskPart stretches, float* scratch) const {
    const std::ptrdiff_t plane = inPlane();
    const float* const planes = planesOf(buffers, image, group);
    const std::ptrdiff_t target = targetOf(image, group, plane);
    const float* const addend = addendOf(buffers);
    const std::ptrdiff_t end = std::min(plane, static_cast<std::ptrdiff_t>(stretches.to) * stretch);
    const std::ptrdiff_t whole = end / stretch * stretch;
    const auto multiply = [&](std::ptrdiff_t from, std::ptrdiff_t to, const float* first, std::ptrdiff_t step) {
      if (from >= to) return;
      PlaneValue read[mostChannels];
      PlaneCall call{};
      call.values = read;
      call.count = lines_.channels();
      for (int c = 0; c < call.count; ++c) read[c] = {first + c * step, c};
      call.pixels = static_cast<int>(to - from);
      call.activation = description_.activation;
      call.outputPlane = plane;
      for (int channel = 0; channel < targets_; channel += mostPlaneOutputs) {
        const std::ptrdiff_t at = target + channel * plane + from;
        call.weights = buffers.packedWeights + group * groupFloats() + channel * values();
        call.bias = description_.bias ? buffers.bias + group * targets_ + channel : nullptr;
        call.addend = addend != nullptr ? addend + at : nullptr;
        call.output = buffers.result + at;
        kernels_.line[std::min(mostPlaneOutputs, targets_ - channel)](call);
      }
    };
    // What several channels of the result read is in the L1 cache still.
    for (auto from = static_cast<std::ptrdiff_t>(stretches.from) * stretch; from < whole; from += planePixelsInTurn) {
      multiply(from, std::min(whole, from + planePixelsInTurn), planes + from, plane);
    }
    std::fill_n(scratch, mostChannels * stretch, 0.0F);
    for (int c = 0; c < lines_.channels(); ++c) {
      std::copy(planes + c * plane + whole, planes + c * plane + std::max(whole, end), scratch + c * stretch);
    }
    multiply(whole, end, scratch, stretch);
  }

  void runLines(const Buffers& buffers, int image, int group, TaskPart lines, float* scratch) const {
    const std::ptrdiff_t plane = isData_ ? inPlane() : outPlane();
    const float* const planes = planesOf(buffers, image, group);
    const std::ptrdiff_t target = targetOf(image, group, plane);
    const float* const addend = addendOf(buffers);
    PlaneRing ring = ringIn(scratch);
    float* const spread = scratch + ringFloats();
    PlaneCall call{};
    call.activation = description_.activation;
    for (auto y = static_cast<int>(lines.from); y < static_cast<int>(lines.to); ++y) {
      for (int phase = 0; phase < lines_.phases(); ++phase) {
        call.values = ring.values(planes, y, phase, call.count);
        call.pixels = ceilDivide(width_ - phase, lines_.phases());
        for (int first = 0; first < targets_; first += mostPlaneOutputs) {
          const int together = std::min(mostPlaneOutputs, targets_ - first);
          const std::ptrdiff_t at = target + first * plane + std::ptrdiff_t{y} * width_;
          call.weights = buffers.packedWeights + group * groupFloats() + first * values();
          call.bias = description_.bias ? buffers.bias + group * targets_ + first : nullptr;
          if (lines_.phases() == 1) {
            call.addend = addend != nullptr ? addend + at : nullptr;
            call.output = buffers.result + at;
            call.outputPlane = plane;
            kernels_.line[together](call);
            continue;
          }
          call.output = spread;
          call.outputPlane = phaseFloats();
          kernels_.line[together](call);
          for (int k = 0; k < together; ++k) {
            spreadLine(spread + k * phaseFloats(), buffers.result + at + k * plane + phase, call.pixels);
          }
        }
      }
    }
  }

  void spreadLine(const float* from, float* to, int pixels) const {
    const int step = lines_.phases();
    if (description_.accumulate) {
      for (int x = 0; x < pixels; ++x) to[std::ptrdiff_t{x} * step] += from[x];
    } else {
      for (int x = 0; x < pixels; ++x) to[std::ptrdiff_t{x} * step] = from[x];
    }
  }

  int targets_, height_, width_;  // of the result; channels of a group
  std::size_t parts_ = 1;         // of an image's lines
};

/// The gradient of the weights.
class PlaneGradients final : public PlanesPlan {
 public:
  PlaneGradients(const Description& d, const KernelSet& kernels) : PlanesPlan(d, kernels) {
    // Parts are summed apart and added in order: as many for any number of workers.
    constexpr double operationsOfPart = 4e6;
    const double lines = double(d.shape.batch) * d.shape.outHeight;
    const double wanted = d.shape.operations() / d.shape.groups / operationsOfPart;
    parts_ = static_cast<std::size_t>(std::clamp(wanted, 1.0, std::min(16.0, lines)));
  }

  std::size_t workspaceBytes() const override {
    return (static_cast<std::size_t>(shape().groups) * parts_ * sumFloats() +
            static_cast<std::size_t>(description_.maxWorkers) * scratchFloats()) *
           sizeof(float);
  }
  double predictedSeconds() const override {
    const Shape& s = shape();
    const double pairs =
        insidePairs(s.outHeight, s.kernelHeight, s.strideHeight, s.dilationHeight, s.padHeight, s.height);
    const double vectors = ceilDivide(s.outWidth, kernels_.lanes);
    const double values = double(s.inPerGroup()) * s.outPerGroup() * s.kernelWidth;
    // Sums that the L1 cache does not hold come from the second one every time.
    constexpr std::size_t bytesOfL1 = 24 * 1024;
    const double ofSum = sumFloats() * sizeof(float) > bytesOfL1 ? 6.2 : 4;
    const double products = pairs * values * (1.0 * vectors + ofSum) +
                            double(s.outHeight) * s.outPerGroup() * (cyclesOfLine + s.outWidth / 8.0);
    const double summed = double(parts_) * static_cast<double>(sumFloats()) / 4 + double(sumFloats());
    if (s.isProduct()) {
      const std::ptrdiff_t stretches = (inPlane() + planePixelsInTurn - 1) / planePixelsInTurn;
      const double ofPlanes =
          s.outPerGroup() * (s.inPerGroup() * static_cast<double>(inPlane()) / kernels_.lanes +
                             static_cast<double>(stretches) * cyclesOfLineSum * s.inPerGroup() + cyclesOfLine);
      return std::max(s.groups * (s.batch * ofPlanes + summed), memoryCycles()) / assumedHertz;
    }
    return std::max(double(s.batch) * s.groups * products + s.groups * summed + lineCycles(s.outHeight),
                    memoryCycles()) /
           assumedHertz;
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    const auto groups = static_cast<std::size_t>(shape().groups);
    auto* const sums = static_cast<float*>(buffers.workspace);
    float* const scratch = sums + groups * parts_ * sumFloats();
    executor.forEach(groups * parts_, [&](std::size_t index, int worker) {
      sumPart(buffers, static_cast<int>(index / parts_), index % parts_, sums + index * sumFloats(),
              scratch + static_cast<std::size_t>(worker) * scratchFloats());
    });
    clearGradient(buffers.result, description_.weightLayout, shape(), description_.accumulate);
    executor.forEach(groups, [&](std::size_t group, int) {
      deliver(static_cast<int>(group), sums + group * parts_ * sumFloats(), buffers.result);
    });
  }

 private:
  /// Of a group: a vector for [output][input][line][column].
  std::ptrdiff_t ofOutput() const { return shape().inPerGroup() * taps() * planeSumFloats; }
  std::size_t sumFloats() const { return static_cast<std::size_t>(shape().outPerGroup() * ofOutput()); }
  std::ptrdiff_t gradientFloats() const { return roundUp(shape().outWidth + planePadding, blockLength); }
  std::size_t scratchFloats() const {
    if (shape().isProduct()) return static_cast<std::size_t>((1 + mostChannels) * planePadding);
    return ringFloats() + static_cast<std::size_t>(gradientFloats());
  }
  const float* inputOf(const Buffers& buffers, std::ptrdiff_t image, int group) const {
    return buffers.input + (image * shape().inChannels + group * shape().inPerGroup()) * inPlane();
  }
  const float* gradientOf(const Buffers& buffers, std::ptrdiff_t image, int group) const {
    return buffers.outputGradient + (image * shape().outChannels + group * shape().outPerGroup()) * outPlane();
  }

  /// Of a product, whose planes are one line, the pixels of some lines, a stretch at a time that stays in the L1 cache
  /// for all outputs. Pixels that fill no vectors are copied between zeros.
  void sumPixels(const float* input, const float* gradient, std::ptrdiff_t pixels, float* sums, float* scratch) const {
    PlaneValue values[mostChannels];
    PlaneGradientCall call{};
    call.values = values;
    call.count = shape().inPerGroup();
    const std::ptrdiff_t whole = pixels / planePadding * planePadding, rest = pixels - whole;
    for (std::ptrdiff_t from = 0; from < whole; from += planePixelsInTurn) {
      call.pixels = static_cast<int>(std::min(planePixelsInTurn, whole - from));
      for (int c = 0; c < call.count; ++c) values[c] = {input + c * inPlane() + from, c};
      for (int k = 0; k < shape().outPerGroup(); ++k) {
        call.gradient = gradient + k * outPlane() + from;
        call.sums = sums + k * ofOutput();
        kernels_.gradient(call);
      }
    }
    if (rest == 0) return;
    call.pixels = static_cast<int>(rest);
    call.gradient = scratch;
    float* const inputs = scratch + planePadding;
    std::fill_n(scratch, scratchFloats(), 0.0F);
    for (int c = 0; c < call.count; ++c) {
      std::copy_n(input + c * inPlane() + whole, rest, inputs + c * planePadding);
      values[c] = {inputs + c * planePadding, c};
    }
    for (int k = 0; k < shape().outPerGroup(); ++k) {
      std::copy_n(gradient + k * outPlane() + whole, rest, scratch);
      call.sums = sums + k * ofOutput();
      kernels_.gradient(call);
    }
  }

  void sumPart(const Buffers& buffers, int group, std::size_t part, float* sums, float* scratch) const {
    const Shape& s = shape();
    std::fill_n(sums, sumFloats(), 0.0F);
    if (s.isProduct()) {
      const auto height = static_cast<std::size_t>(s.height);
      const TaskPart lines = partOf(height * static_cast<std::size_t>(s.batch), parts_, part);
      for (std::size_t line = lines.from, end; line < lines.to; line = end) {
        const std::size_t image = line / height;
        end = std::min(lines.to, (image + 1) * height);
        const auto pixel = static_cast<std::ptrdiff_t>(line - image * height) * s.width;
        const auto at = static_cast<std::ptrdiff_t>(image);
        sumPixels(inputOf(buffers, at, group) + pixel, gradientOf(buffers, at, group) + pixel,
                  static_cast<std::ptrdiff_t>(end - line) * s.width, sums, scratch);
      }
      return;
    }
    PlaneRing ring = ringIn(scratch);
    float* const gradient = scratch + ringFloats();
    std::fill_n(gradient, gradientFloats(), 0.0F);
    const auto height = static_cast<std::size_t>(s.outHeight);
    const TaskPart lines = partOf(height * static_cast<std::size_t>(s.batch), parts_, part);
    PlaneGradientCall call{};
    call.gradient = gradient;
    call.pixels = s.outWidth;
    for (std::size_t line = lines.from; line < lines.to; ++line) {
      const auto image = static_cast<std::ptrdiff_t>(line / height);
      const auto y = static_cast<std::ptrdiff_t>(line % height);
      if (y == 0) ring.forget();
      call.values = ring.values(inputOf(buffers, image, group), static_cast<int>(y), 0, call.count);
      for (int k = 0; k < s.outPerGroup(); ++k) {
        const float* const from = gradientOf(buffers, image, group) + k * outPlane() + y * s.outWidth;
        std::copy_n(from, s.outWidth, gradient);
        call.sums = sums + k * ofOutput();
        kernels_.gradient(call);
      }
    }
  }

  void deliver(int group, const float* sums, float* result) const {
    const Shape& s = shape();
    for (int out = 0; out < s.outPerGroup(); ++out) {
      for (int in = 0; in < s.inPerGroup(); ++in) {
        for (int r = 0; r < s.kernelHeight; ++r) {
          for (int t = 0; t < s.kernelWidth; ++t) {
            const std::ptrdiff_t place = (std::ptrdiff_t{in} * s.kernelHeight + r) * s.kernelWidth + t;
            float sum = 0;
            for (std::size_t part = 0; part < parts_; ++part) {
              const float* const lanes = sums + part * sumFloats() + out * ofOutput() + place * planeSumFloats;
              for (int lane = 0; lane < kernels_.lanes; ++lane) sum += lanes[lane];
            }
            const WeightBlock block = weightBlock(s, description_.weightLayout, group, 0, 0, r, t);
            float& to = result[block.base + out * block.outStep + in * block.inStep];
            to = description_.accumulate ? to + sum : sum;
          }
        }
      }
    }
  }

  std::size_t parts_;  // of all images' lines
};

}  // namespace

bool servesPlanes(const Description& d) {
  const Shape& s = d.shape;
  if (d.inputLayout != taccLayoutNchw || d.outputLayout != taccLayoutNchw || s.inPerGroup() > mostChannels ||
      s.outPerGroup() > mostChannels) {
    return false;
  }
  const PlaneLines lines(s, d.pass == taccConvBackwardData);
  return PlaneRing::floatsOf(lines, s.kernelHeight, s.kernelWidth) <= mostScratchFloats;
}

std::unique_ptr<ConvPlan> makePlanes(const Description& d, const KernelSet& kernels) {
  if (d.pass == taccConvBackwardWeights) return std::make_unique<PlaneGradients>(d, kernels);
  return std::make_unique<PlaneProducts>(d, kernels);
}

}  // namespace tacc::conv

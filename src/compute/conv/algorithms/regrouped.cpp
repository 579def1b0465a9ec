// Groups that cut blocks of channels, each as a convolution of its own: the channels of one group are copied into
// blocks that begin with them, or, of an input of few channels, into planes, some images at a time, and any algorithm
// for one group runs on the copies. Worth while where groups are wide, and where the weights are many beside the
// pixels: they are read and written as they lie.
#include <algorithm>
#include <utility>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/algorithms/batch_parts.hpp"
#include "compute/conv/algorithms/few_channels.hpp"
#include "compute/conv/cost.hpp"

namespace tacc::conv {
namespace {

/// Of the copies of both tensors, where images are that small. No matter of the CPU at hand, as in plain_layouts.cpp.
constexpr std::size_t regroupedBytesAtOnce = 512 * 1024;

constexpr std::ptrdiff_t alignedFloats(std::ptrdiff_t floats) {
  return (floats + blockLength - 1) / blockLength * blockLength;
}

/// Lanes [first, end) of each pixel become those of `from`, where lane 0 is at from[0]; the others are kept, or zero.
/// What `from` has besides is read, but not before the first lane of the first pixel nor behind the last of the last.
template <bool keeps>
void copyLanes(const float* from, float* to, std::ptrdiff_t pixels, int first, int end) {
  const auto isCopied = [&](int lane) { return lane >= first && lane < end; };
  const auto copyPixel = [&](std::ptrdiff_t at) {
    for (int lane = 0; lane < blockLength; ++lane) {
      if (isCopied(lane)) {
        to[at + lane] = from[at + lane];
      } else if (!keeps) {
        to[at + lane] = 0;
      }
    }
  };
  bool mask[blockLength];
  for (int lane = 0; lane < blockLength; ++lane) mask[lane] = isCopied(lane);
  const std::ptrdiff_t last = (pixels - 1) * blockLength;
  copyPixel(0);
  for (std::ptrdiff_t at = blockLength; at < last; at += blockLength) {
    float copied[blockLength], kept[blockLength] = {};
    std::copy_n(from + at, blockLength, copied);
    if (keeps) std::copy_n(to + at, blockLength, kept);
    for (int lane = 0; lane < blockLength; ++lane) to[at + lane] = mask[lane] ? copied[lane] : kept[lane];
  }
  if (last > 0) copyPixel(last);
}

/// Whole pixels of a block that begins within one, at its lane `shift`, and ends within `next`. Each is two copies as
/// long as a block, in which what is too much is overwritten by the next: without masks, in a third of the time.
void copyShifted(const float* block, const float* next, int shift, float* to, std::ptrdiff_t pixels) {
  if (shift == 0) {
    std::copy_n(block, pixels * blockLength, to);
    return;
  }
  const int here = blockLength - shift;
  block += shift;
  for (std::ptrdiff_t i = 1; i < pixels; ++i, block += blockLength, next += blockLength, to += blockLength) {
    std::copy_n(block, blockLength, to);
    std::copy_n(next, blockLength, to + here);
  }
  std::copy_n(block, here, to);
  std::copy_n(next, shift, to + here);
}

/// The channels of a group, in a tensor of all groups.
struct ChannelsOfGroup {
  int ofGroup, ofAll;
  std::ptrdiff_t pixels;
  bool arePlanes;  // in the copy, which is only read then

  int blocks() const { return ceilDivide(ofGroup, blockLength); }
  std::ptrdiff_t imageFloats() const { return ceilDivide(ofAll, blockLength) * pixels * blockLength; }
  std::ptrdiff_t copyFloats() const { return (arePlanes ? ofGroup : blocks() * blockLength) * pixels; }
  /// Cycles for an image of a group: to the copy, of which whole blocks need no masks; and back.
  double gatherCycles() const {
    constexpr double ofValue = 1.5, ofWholePixel = 5;
    const auto count = static_cast<double>(pixels);
    if (arePlanes) return ofGroup * (ofValue * count + ofBlock);
    const int wholeBlocks = ofGroup / blockLength;
    const double whole = wholeBlocks * (ofWholePixel * count + ofBlock);
    return whole + (ofGroup % blockLength == 0 ? 0 : maskedCycles());
  }
  double scatterCycles() const { return blocks() * maskedCycles(); }
  double maskedCycles() const { return 1.9 * (6 * static_cast<double>(pixels) + ofBlock); }
  static constexpr double ofBlock = 60;

  /// Calls visit(place of a block among all of an image, the channel of the group at its lane 0, first lane, end) for
  /// the blocks of all that a group is in.
  template <class Visit>
  void forEachBlock(int group, const Visit& visit) const {
    const int first = group * ofGroup, end = first + ofGroup;
    for (int block = first / blockLength; block * blockLength < end; ++block) {
      const int channel = block * blockLength;
      visit(block * pixels * blockLength, channel - first, std::max(0, first - channel),
            std::min(blockLength, end - channel));
    }
  }

  /// An image of all groups to one of `group`.
  void gather(const float* image, int group, float* copy) const {
    if (arePlanes) {
      for (int own = 0; own < ofGroup; ++own) {
        const int channel = group * ofGroup + own;
        const float* from = image + channel / blockLength * pixels * blockLength + channel % blockLength;
        for (std::ptrdiff_t i = 0; i < pixels; ++i, from += blockLength) *copy++ = *from;
      }
      return;
    }
    for (int own = 0; own < blocks(); ++own) {
      float* const to = copy + own * pixels * blockLength;
      const int count = std::min(blockLength, ofGroup - own * blockLength);
      const int channel = group * ofGroup + own * blockLength;
      const int shift = channel % blockLength;
      const float* const from = image + channel / blockLength * pixels * blockLength;
      const int here = std::min(count, blockLength - shift);
      if (count == blockLength) {
        copyShifted(from, from + pixels * blockLength, shift, to, pixels);
        continue;
      }
      copyLanes<false>(from + shift, to, pixels, 0, here);
      if (here < count) copyLanes<true>(from + pixels * blockLength + shift - blockLength, to, pixels, here, count);
    }
  }

  /// And back, with zeros for what fills up the last block of all.
  void scatter(const float* copy, int group, float* image) const {
    forEachBlock(group, [&](std::ptrdiff_t at, int channel, int first, int end) {
      // The lanes of one block of all come from one or two of the copy's.
      for (int lane = first, stop = 0; lane < end; lane = stop) {
        const int own = (channel + lane) / blockLength;
        stop = std::min(end, (own + 1) * blockLength - channel);
        copyLanes<true>(copy + own * pixels * blockLength + channel - own * blockLength, image + at, pixels, lane,
                        stop);
      }
    });
    if (group * ofGroup + ofGroup < ofAll || ofAll % blockLength == 0) return;
    float* const block = image + ofAll / blockLength * pixels * blockLength;
    copyLanes<false>(block, block, pixels, 0, ofAll % blockLength);
  }
};

class Regrouped final : public ConvPlan {
 public:
  /// `arePlanes`: the input is copied to NCHW.
  Regrouped(const Description& d, int images, bool arePlanes, ChosenPlan first, std::unique_ptr<ConvPlan> next)
      : ConvPlan(first.plan->kernel() + (arePlanes ? " of planes" : "") + " of a group"),
        description_(d),
        images_(images),
        in_{d.shape.inPerGroup(), d.shape.inChannels, std::ptrdiff_t{d.shape.height} * d.shape.width, arePlanes},
        out_{d.shape.outPerGroup(), d.shape.outChannels, std::ptrdiff_t{d.shape.outHeight} * d.shape.outWidth, false},
        first_(std::move(first.plan)),
        next_(std::move(next)) {}

  std::size_t workspaceBytes() const override {
    return innerBytes() + static_cast<std::size_t>(inFloats() + images_ * out_.copyFloats()) * sizeof(float);
  }
  std::size_t packedFloats() const override { return ofGroup() * static_cast<std::size_t>(description_.shape.groups); }
  void pack(const float* weights, float* packed) const override {
    for (int group = 0; group < description_.shape.groups; ++group) {
      first_->pack(weights + group * weightFloatsOfGroup(), packed + static_cast<std::ptrdiff_t>(ofGroup()) * group);
    }
  }
  double predictedSeconds() const override {
    const Shape& s = description_.shape;
    const bool isRead = description_.accumulate;
    const bool isForward = description_.pass == taccConvForward, isData = description_.pass == taccConvBackwardData;
    const double ofInput = isData ? in_.scatterCycles() + (isRead ? in_.gatherCycles() : 0) : in_.gatherCycles();
    const double ofOutput =
        isForward ? out_.scatterCycles() + (description_.residual ? out_.gatherCycles() : 0) : out_.gatherCycles();
    const double copied = ofInput + ofOutput;
    const double bytes = double(s.batch) * static_cast<double>(in_.imageFloats() + out_.imageFloats()) * sizeof(float);
    // Lines that two groups share are fetched, and written, twice.
    const double times = hasFarCaches() ? 2 : 1;
    // The plan of a group knows of its own weights only, which others have driven out of the caches.
    constexpr double bytesOfWeights = 9;
    const double weights = parts() * farTransferCycles(double(packedFloats() * sizeof(float)), bytesOfWeights);
    return s.groups * (parts() * first_->predictedSeconds() + times * s.batch * copied / assumedHertz) +
           (times * transferCycles(bytes, 12) + weights) / assumedHertz;
  }

  void run(const Buffers& buffers, const TaskExecutor& executor) const override {
    auto* const in = reinterpret_cast<float*>(static_cast<std::byte*>(buffers.workspace) + innerBytes());
    float* const out = in + inFloats();
    for (int part = 0; part < parts(); ++part) {
      for (int group = 0; group < description_.shape.groups; ++group) {
        runGroup(buffers, part * images_, group, in, out, executor);
      }
    }
  }

 private:
  /// Of the copied inputs.
  std::ptrdiff_t inFloats() const { return alignedFloats(images_ * in_.copyFloats()); }
  int parts() const { return description_.shape.batch / images_; }
  std::size_t innerBytes() const {
    return std::max(first_->workspaceBytes(), next_ != nullptr ? next_->workspaceBytes() : 0);
  }
  std::size_t ofGroup() const {
    return static_cast<std::size_t>(alignedFloats(static_cast<std::ptrdiff_t>(first_->packedFloats())));
  }
  std::ptrdiff_t weightFloatsOfGroup() const {
    const Shape& s = description_.shape;
    return static_cast<std::ptrdiff_t>(
        weightFloats(description_.weightLayout, s.outPerGroup(), s.inPerGroup(), s.kernelHeight, s.kernelWidth, 1));
  }

  void runGroup(const Buffers& buffers, int image, int group, float* in, float* out,
                const TaskExecutor& executor) const {
    const std::ptrdiff_t inAt = image * in_.imageFloats(), outAt = image * out_.imageFloats();
    const bool isForward = description_.pass == taccConvForward;
    const bool isData = description_.pass == taccConvBackwardData;
    Buffers inner = buffers;
    inner.workspaceBytes = innerBytes();
    inner.input = in;
    inner.outputGradient = out;
    inner.residual = out;  // where the result goes, as the interface allows
    if (inner.packedWeights != nullptr) inner.packedWeights += static_cast<std::ptrdiff_t>(ofGroup()) * group;
    if (description_.bias) inner.bias += group * description_.shape.outPerGroup();
    if (!isData) gather(in_, buffers.input + inAt, group, in, executor);
    if (!isForward) gather(out_, buffers.outputGradient + outAt, group, out, executor);
    if (description_.residual) gather(out_, buffers.residual + outAt, group, out, executor);
    if (isData && description_.accumulate) gather(in_, buffers.result + inAt, group, in, executor);
    inner.result = isForward ? out : isData ? in : buffers.result + weightFloatsOfGroup() * group;
    (image == 0 || next_ == nullptr ? first_ : next_)->run(inner, executor);
    if (isForward) scatter(out_, out, group, buffers.result + outAt, executor);
    if (isData) scatter(in_, in, group, buffers.result + inAt, executor);
  }

  void gather(const ChannelsOfGroup& c, const float* from, int group, float* copy, const TaskExecutor& executor) const {
    executor.forEach(static_cast<std::size_t>(images_), [&](std::size_t index, int) {
      const auto image = static_cast<std::ptrdiff_t>(index);
      c.gather(from + image * c.imageFloats(), group, copy + image * c.copyFloats());
    });
  }
  void scatter(const ChannelsOfGroup& c, const float* copy, int group, float* to, const TaskExecutor& executor) const {
    executor.forEach(static_cast<std::size_t>(images_), [&](std::size_t index, int) {
      const auto image = static_cast<std::ptrdiff_t>(index);
      c.scatter(copy + image * c.copyFloats(), group, to + image * c.imageFloats());
    });
  }

  Description description_;
  int images_;  // at a time
  ChannelsOfGroup in_, out_;
  std::unique_ptr<ConvPlan> first_;
  std::unique_ptr<ConvPlan> next_;  // of the weights' gradient: adds to what the first one gave
};

Description oneGroup(const Description& d, taccLayout_t inputLayout) {
  Description inner = d;
  inner.inputLayout = inputLayout;
  Shape& s = inner.shape;
  s.inChannels = d.shape.inPerGroup();
  s.outChannels = d.shape.outPerGroup();
  s.groups = 1;
  inner.algorithm.clear();
  inner.isOfLargeResult = false;
  const auto floats = static_cast<std::size_t>(s.inBlocks() * s.inPlane() + s.outBlocks() * s.outPlane());
  s.batch = imagesOfPart(s.batch, floats * sizeof(float), regroupedBytesAtOnce);
  return inner;
}

/// Null where nothing serves a group.
std::unique_ptr<ConvPlan> makeFrom(const Description& d, const KernelSet& kernels, taccLayout_t inputLayout) {
  Description inner = oneGroup(d, inputLayout);
  ChosenPlan first = cheapestServing(inner, kernels);
  if (first.plan == nullptr) return nullptr;
  std::unique_ptr<ConvPlan> next = makeNextPart(inner, first, kernels, cheapestServing);
  return std::make_unique<Regrouped>(d, inner.shape.batch, inputLayout == taccLayoutNchw, std::move(first),
                                     std::move(next));
}

}  // namespace

bool servesRegrouped(const Description& d) {
  constexpr int leastChannels = 12;  // of narrower groups blocks are mostly zeros
  const Shape& s = d.shape;
  return s.groups > 1 && !s.blocksFitGroups() && d.inputLayout == taccLayoutNchw16c &&
         std::max(s.inPerGroup(), s.outPerGroup()) >= leastChannels;
}

std::unique_ptr<ConvPlan> makeRegrouped(const Description& d, const KernelSet& kernels) {
  std::unique_ptr<ConvPlan> ofBlocks = makeFrom(d, kernels, taccLayoutNchw16c);
  if (d.pass == taccConvBackwardData || d.shape.inPerGroup() > fewChannels) return ofBlocks;
  std::unique_ptr<ConvPlan> ofPlanes = makeFrom(d, kernels, taccLayoutNchw);
  if (ofPlanes == nullptr) return ofBlocks;
  // What is chosen decides in which order sums are added, so it must not depend on the number of threads.
  Description alone = d;
  alone.maxWorkers = 1;
  const auto secondsFrom = [&](taccLayout_t layout) { return makeFrom(alone, kernels, layout)->predictedSeconds(); };
  return secondsFrom(taccLayoutNchw) < secondsFrom(taccLayoutNchw16c) ? std::move(ofPlanes) : std::move(ofBlocks);
}

}  // namespace tacc::conv

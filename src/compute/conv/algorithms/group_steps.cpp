#include "compute/conv/algorithms/group_steps.hpp"

#include <algorithm>
#include <numeric>

#include "compute/conv/shape.hpp"

namespace tacc::conv {
namespace {

struct Range {
  int from, to;
  int size() const { return std::max(0, to - from); }
};

Range overlap(Range a, Range b) { return {std::max(a.from, b.from), std::min(a.to, b.to)}; }

/// One block of target channels and what it wants.
class Target {
 public:
  Target(const GroupChannels& channels, int block)
      : channels_(channels),
        targets_(overlap({block * blockLength, (block + 1) * blockLength},
                         {0, channels.groups * channels.targetsPerGroup})) {}

  /// Source channels of a lane's group; none for lanes that only fill the last block.
  Range sourcesOf(int lane) const {
    if (lane >= targets_.size()) return {0, 0};
    const int group = (targets_.from + lane) / channels_.targetsPerGroup;
    return {group * channels_.sourcesPerGroup, (group + 1) * channels_.sourcesPerGroup};
  }
  /// Of all groups of the block.
  Range sources() const { return {sourcesOf(0).from, sourcesOf(targets_.size() - 1).to}; }
  Range sourceBlocks() const { return {sources().from / blockLength, ceilDivide(sources().to, blockLength)}; }

  GroupSteps sameForAll() const {
    GroupSteps steps{};
    steps.blocks = 1;
    steps.firstValue = sources().from % blockLength;
    for (int b = sourceBlocks().from; b < sourceBlocks().to; ++b) {
      steps.counts.push_back(overlap(sources(), {b * blockLength, (b + 1) * blockLength}).size());
    }
    return steps;
  }

  GroupSteps permuted(const KernelSet& kernels) const {
    GroupSteps steps{};
    steps.blocks = 1;
    steps.isPermuted = steps.isUniform = true;
    const int vectors = blockLength / kernels.fmaLanes;
    for (int b = sourceBlocks().from; b < sourceBlocks().to; ++b) {
      std::vector<std::vector<Step>> ofVectors;
      std::size_t count = 0;
      for (int v = 0; v < vectors; ++v) {
        ofVectors.push_back(stepsOfVector(kernels, v, b * blockLength));
        count = std::max(count, ofVectors.back().size());
      }
      steps.counts.push_back(static_cast<int>(count));
      for (std::size_t i = 0; i < count; ++i) {
        for (int v = 0; v < vectors; ++v) {
          const auto& all = ofVectors[static_cast<std::size_t>(v)];
          append(steps, kernels, v, b * blockLength, i < all.size() ? all[i] : Step{{0, 0}, blockLength});
        }
      }
    }
    return steps;
  }

 private:
  /// Of one vector: value `index` of every lane's group within the channels that a lane can choose from.
  struct Step {
    Range channels;
    int index;
  };

  std::vector<Step> stepsOfVector(const KernelSet& kernels, int vector, int firstChannel) const {
    std::vector<Step> steps;
    for (int c = firstChannel; c < firstChannel + blockLength; c += kernels.permutedLanes) {
      const Range choice{c, c + kernels.permutedLanes};
      int most = 0;
      for (int l = 0; l < kernels.fmaLanes; ++l) {
        most = std::max(most, overlap(choice, sourcesOf(vector * kernels.fmaLanes + l)).size());
      }
      for (int i = 0; i < most; ++i) steps.push_back({choice, i});
    }
    return steps;
  }

  void append(GroupSteps& steps, const KernelSet& kernels, int vector, int firstChannel, const Step& step) const {
    steps.offsets.push_back(step.channels.size() == 0 ? 0 : step.channels.from - firstChannel);
    for (int l = 0; l < kernels.fmaLanes; ++l) {
      const Range own = overlap(step.channels, sourcesOf(vector * kernels.fmaLanes + l));
      const bool isThere = step.index < own.size();
      // Without one a lane multiplies another of its group by zero, if it can.
      const int channel = own.from + (isThere ? step.index : 0);
      steps.lanes.push_back(own.size() > 0 ? channel - step.channels.from : 0);
      steps.isUniform = steps.isUniform && (l == 0 || steps.lanes.back() == *(steps.lanes.end() - 2));
      steps.sources.push_back(isThere ? channel - sourceBlocks().from * blockLength : -1);
    }
  }

  GroupChannels channels_;
  Range targets_;
};

}  // namespace

int GroupSteps::total() const { return std::accumulate(counts.begin(), counts.end(), 0); }

double permutedCost(const KernelSet& kernels) { return kernels.permutedLanes > 1 ? 1.4 : 1.3; }

bool takesOneValue(const GroupSteps& steps, const KernelSet& kernels) {
  return steps.isPermuted && steps.isUniform && kernels.permutedLanes == kernels.fmaLanes &&
         2 * kernels.fmaLanes == blockLength;
}

std::vector<std::int32_t> valueOffsets(const GroupSteps& steps, const KernelSet& kernels) {
  std::vector<std::int32_t> offsets = steps.offsets;
  const auto lanes = static_cast<std::size_t>(kernels.fmaLanes);
  for (std::size_t v = 0; v < offsets.size(); ++v) offsets[v] += steps.lanes[v * lanes];
  return offsets;
}

GroupCut cutGroups(const GroupChannels& channels, const KernelSet& kernels) {
  GroupCut cut{channels, {}, {}};
  const auto add = [&](GroupSteps steps, int firstTarget, int firstSource) {
    const auto known = std::find(cut.steps.begin(), cut.steps.end(), steps);
    const auto index = static_cast<int>(known - cut.steps.begin());
    if (known == cut.steps.end()) cut.steps.push_back(std::move(steps));
    cut.spans.push_back({firstTarget, firstSource, index});
  };
  const int blocks = ceilDivide(channels.groups * channels.targetsPerGroup, blockLength);
  for (int block = 0; block < blocks;) {
    const Target target(channels, block);
    const int firstSource = target.sourceBlocks().from;
    GroupSteps same = target.sameForAll();
    GroupSteps permuted = target.permuted(kernels);
    if (permuted.total() * permutedCost(kernels) < same.total()) {
      add(std::move(permuted), block++, firstSource);
      continue;
    }
    const int first = block++;
    const auto seesTheSame = [&](int other) {
      const Range sources = Target(channels, other).sources();
      return sources.from == target.sources().from && sources.to == target.sources().to;
    };
    while (block < blocks && seesTheSame(block)) ++block;
    same.blocks = block - first;
    add(std::move(same), first, firstSource);
  }
  return cut;
}

int GroupCut::sourceOf(const GroupSpan& span, int target, int block, int value, int before) const {
  if (target >= channels.groups * channels.targetsPerGroup) return -1;
  const GroupSteps& of = steps[static_cast<std::size_t>(span.steps)];
  int source = block * blockLength + value + (block == 0 ? of.firstValue : 0);
  if (of.isPermuted) {
    source = of.sources[static_cast<std::size_t>((before + value) * blockLength + target % blockLength)];
    if (source < 0) return -1;
  }
  const int group = target / channels.targetsPerGroup;
  const int within = span.firstSource * blockLength + source - group * channels.sourcesPerGroup;
  return within >= 0 && within < channels.sourcesPerGroup ? within : -1;
}

}  // namespace tacc::conv

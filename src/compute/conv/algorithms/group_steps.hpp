// How the kernels go through the channels of a grouped convolution whose groups cut blocks of 16 channels.
//
// A block of target channels (of the result; for gradients of weights, of the output) belongs to several groups, and
// each of its lanes wants the source channels of its group only. In each step every lane multiplies one value:
// either all lanes the same one, with weights of zero where it is none of theirs; or, permuted, each the next one of
// its own group that is to be found in the vector that is read.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/conv/kernels/kernels.hpp"

namespace tacc::conv {

/// Channels of all groups together, and of one group.
struct GroupChannels {
  int groups;
  int targetsPerGroup, sourcesPerGroup;
};

/// What target blocks see that are alike but for where they begin.
struct GroupSteps {
  int blocks;  // of targets, consecutive; 1 if permuted
  bool isPermuted;
  bool isUniform;           // if permuted: all lanes of a vector take the same value
  int firstValue;           // if not permuted: channel of the first source block that is multiplied first
  std::vector<int> counts;  // steps with each of consecutive source blocks

  // For each step and lane of the target block, if permuted.
  std::vector<std::int32_t> lanes;    // TileCall::lanes
  std::vector<std::int32_t> offsets;  // TileCall::offsets, for each vector
  std::vector<int> sources;           // the source channel, counted from the first source block on, or -1

  bool operator==(const GroupSteps&) const = default;
  int total() const;
};

/// Target blocks that are computed together.
struct GroupSpan {
  int firstTarget, firstSource;  // blocks
  int steps;                     // index of their GroupSteps
};

struct GroupCut {
  GroupChannels channels;
  std::vector<GroupSteps> steps;
  std::vector<GroupSpan> spans;

  /// The source channel that a target channel multiplies in step `value` with source block `block` of its span, within
  /// the group; -1 if it is not one of its group. The span has `before` steps with the blocks before.
  int sourceOf(const GroupSpan& span, int target, int block, int value, int before) const;
};

/// Whether kernels read one value for all lanes of a vector, which valueOffsets() are of, and want no lanes.
bool takesOneValue(const GroupSteps& steps, const KernelSet& kernels);
/// As GroupSteps::offsets.
std::vector<std::int32_t> valueOffsets(const GroupSteps& steps, const KernelSet& kernels);

/// The cheaper ones for every target block.
GroupCut cutGroups(const GroupChannels& channels, const KernelSet& kernels);

/// Cycles of a permuted step, of those that one without permutations takes.
double permutedCost(const KernelSet& kernels);

}  // namespace tacc::conv

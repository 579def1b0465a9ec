// What the passes of grouped convolutions share.
#pragma once

#include <memory>
#include <vector>

#include "compute/conv/algorithms/group_steps.hpp"
#include "compute/conv/plan.hpp"

namespace tacc::conv {

/// Where the weights are that belong to the lanes of a step: tables, because they are gone through in every step of a
/// training.
class GroupWeights {
 public:
  struct Place {
    std::ptrdiff_t first;  // of tap 0, in floats; -1 where the lane has none
    std::int32_t tap;      // from tap to tap
    /// Lanes from this one on whose weights follow each other in memory, of all taps; or that have none.
    std::int16_t together;
    /// Of a gradient in taccWeightsBlocked: zeros that fill the block of weights behind those.
    std::int16_t filling;
  };

  /// Targets are output channels, or, if `areTargetsInputs`, input channels.
  GroupWeights(const Description& d, const GroupCut& cut, bool areTargetsInputs);

  /// Those of the 16 lanes of target block `target` of a span, in step `value` with its source block `source`.
  const Place* at(std::size_t span, int target, int source, int value) const {
    const Table& table = tables_[span];
    const int step = target * table.before.back() + table.before[static_cast<std::size_t>(source)] + value;
    return table.places.data() + std::ptrdiff_t{step} * blockLength;
  }

 private:
  struct Table {
    std::vector<int> before;  // steps before every source block, and all
    std::vector<Place> places;
  };
  std::vector<Table> tables_;  // of every span
};

/// Backward to the data with a stride of 2 and three taps along the lines, where every block is permuted.
bool canSpreadGroups(const Description& d, const GroupCut& cut);
std::unique_ptr<ConvPlan> makeGroupedSpread(const Description& d, const KernelSet& kernels, GroupCut cut);

}  // namespace tacc::conv

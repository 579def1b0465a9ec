#include "compute/conv/algorithms/grouped.hpp"

#include "compute/conv/weights.hpp"

namespace tacc::conv {
namespace {

/// The weight of output channel `out` and input channel `in` of a group.
GroupWeights::Place placeOf(const Description& d, int group, int out, int in) {
  const auto at = [&](int tap) {
    const WeightBlock block = weightBlock(d.shape, d.weightLayout, group, out / blockLength, in / blockLength,
                                          tap / d.shape.kernelWidth, tap % d.shape.kernelWidth);
    return block.base + out % blockLength * block.outStep + in % blockLength * block.inStep;
  };
  const bool isOneTap = d.shape.kernelHeight * d.shape.kernelWidth == 1;
  const bool endsBlock =
      d.weightLayout == taccWeightsBlocked && !d.shape.isDepthwise() && out + 1 == d.shape.outPerGroup();
  const int filling = endsBlock ? ceilDivide(out + 1, blockLength) * blockLength - out - 1 : 0;
  return {at(0), isOneTap ? 0 : static_cast<std::int32_t>(at(1) - at(0)), 1, static_cast<std::int16_t>(filling)};
}

/// Joins the lanes of a step, one behind the other.
void joinLanes(GroupWeights::Place* places) {
  for (int lane = blockLength - 2; lane >= 0; --lane) {
    GroupWeights::Place& place = places[lane];
    const GroupWeights::Place& next = places[lane + 1];
    const bool areAbsent = place.first < 0 && next.first < 0;
    const bool follow = place.first >= 0 && next.first == place.first + 1 && next.tap == place.tap;
    if (!areAbsent && !follow) continue;
    place.together = static_cast<std::int16_t>(next.together + 1);
    place.filling = next.filling;
  }
}

}  // namespace

GroupWeights::GroupWeights(const Description& d, const GroupCut& cut, bool areTargetsInputs) {
  for (const GroupSpan& span : cut.spans) {
    const GroupSteps& steps = cut.steps[static_cast<std::size_t>(span.steps)];
    Table& table = tables_.emplace_back();
    table.before.push_back(0);
    for (const int count : steps.counts) table.before.push_back(table.before.back() + count);
    for (int block = 0; block < steps.blocks; ++block) {
      for (int source = 0; source < static_cast<int>(steps.counts.size()); ++source) {
        for (int value = 0; value < steps.counts[static_cast<std::size_t>(source)]; ++value) {
          for (int lane = 0; lane < blockLength; ++lane) {
            const int target = (span.firstTarget + block) * blockLength + lane;
            const int other = cut.sourceOf(span, target, source, value, table.before[static_cast<std::size_t>(source)]);
            const int group = target / cut.channels.targetsPerGroup;
            const int own = target % cut.channels.targetsPerGroup;
            table.places.push_back(
                other < 0 ? Place{-1, 0, 1, 0}
                          : placeOf(d, group, areTargetsInputs ? other : own, areTargetsInputs ? own : other));
          }
          joinLanes(&table.places[table.places.size() - blockLength]);
        }
      }
    }
  }
}

}  // namespace tacc::conv

#include "algorithms/relabel.hpp"

namespace tacc {
namespace {

using Kind = Operand::Kind;

class Relabelling {
 public:
  Relabelling(const Plan& plan, const std::vector<int>& order)
      : isSplit_(partitionOf(plan.request.collective) == Partition::split),
        order_(order),
        inputIsOfRanks_(isOfRanks(plan, inputBlocksOf)),
        outputIsOfRanks_(isOfRanks(plan, outputBlocksOf)) {}

  void append(const Step& step, std::vector<Step>& to) const {
    // Both ends of a message are cut alike.
    const int pieces = isSplit_ ? 1 : step.blockCount;
    for (int piece = 0; piece < pieces; ++piece) {
      Step& mine = to.emplace_back(step);
      mine.blockCount = isSplit_ ? step.blockCount : 1;
      for (Operand& operand : mine.sources) operand = moved(operand, piece);
      for (Operand& operand : mine.destinations) operand = moved(operand, piece);
    }
  }

 private:
  /// Whether the buffer has a block for each rank anywhere.
  static bool isOfRanks(const Plan& plan, int (*blocksOf)(const Plan&, int)) {
    if (partitionOf(plan.request.collective) == Partition::split) return false;
    for (int rank = 0; rank < plan.request.ranks; ++rank)
      if (blocksOf(plan, rank) > 1) return true;
    return false;
  }
  bool isBlockOfRank(const Operand& operand) const {
    return (operand.kind == Kind::input && inputIsOfRanks_) || (operand.kind == Kind::output && outputIsOfRanks_);
  }
  Operand moved(const Operand& operand, int piece) const {
    if (operand.kind == Kind::peer) return {Kind::peer, order_[static_cast<std::size_t>(operand.index)]};
    if (isBlockOfRank(operand)) return {operand.kind, order_[static_cast<std::size_t>(operand.index + piece)]};
    return {operand.kind, operand.index + piece};
  }

  bool isSplit_;
  const std::vector<int>& order_;
  bool inputIsOfRanks_, outputIsOfRanks_;
};

}  // namespace

Plan relabelled(const Plan& plan, const std::vector<int>& order) {
  Plan result = plan;
  result.request.root = order[static_cast<std::size_t>(plan.request.root)];
  result.request.groups.clear();
  result.request.dimensions.clear();
  result.request.narrow.clear();
  const Relabelling relabelling(plan, order);
  for (std::size_t i = 0; i < plan.ranks.size(); ++i) {
    std::vector<Step>& steps = result.ranks[static_cast<std::size_t>(order[i])].steps;
    steps.clear();
    for (const Step& step : plan.ranks[i].steps) relabelling.append(step, steps);
  }
  return result;
}

}  // namespace tacc

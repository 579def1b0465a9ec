#include "engine/network_program.hpp"

#include <algorithm>
#include <utility>

#include "engine/contributions.hpp"
#include "engine/happens_before.hpp"

namespace tacc {
namespace {

using Kind = NetworkPlace::Kind;

NetworkPlace memoryOf(const Operand& operand) {
  const auto kind = operand.kind == Operand::Kind::input    ? Kind::input
                    : operand.kind == Operand::Kind::output ? Kind::output
                                                            : Kind::scratch;
  return {kind, operand.index};
}

/// Blocks of user memory or scratch, such that equal blocks are the same memory.
struct Region {
  NetworkPlace first;
  int count;
};

class NetworkLowering {
 public:
  NetworkLowering(const Plan& plan, int rank, bool inPlace) : plan_(plan), rank_(rank), inPlace_(inPlace) {}

  NetworkProgram lower() {
    program_.algorithm = plan_.algorithm;
    program_.partition = partitionOf(plan_.request.collective);
    program_.blocks = plan_.blocks;
    program_.scratchBlocks = plan_.scratchBlocks;
    program_.blocksFrom.assign(static_cast<std::size_t>(plan_.request.ranks), 0);
    program_.blocksTo.assign(static_cast<std::size_t>(plan_.request.ranks), 0);
    if (isReduction(plan_.request.collective)) {
      contributions_ = countContributions(plan_, matchMessages(plan_));
      program_.roundsOnce = contributions_.allAtOnce;
    }
    for (const Step& step : plan_.ranks[static_cast<std::size_t>(rank_)].steps) lowerStep(step);
    for (std::size_t s = 0; s < program_.steps.size(); ++s) findHazards(s);
    return std::move(program_);
  }

 private:
  void lowerStep(const Step& step) {
    NetworkStep lowered{step.block, step.blockCount, {}, {}, {}, {}, {}, {}};
    for (const Operand& o : step.destinations)
      if (o.kind != Operand::Kind::peer) lowered.destinations.push_back(memoryOf(o));
    for (const Operand& o : step.sources)
      lowered.sources.push_back(o.kind == Operand::Kind::peer ? addReceive(o.index, step, lowered) : memoryOf(o));
    addSends(step, lowered);
    markCompletion(lowered);
    program_.steps.push_back(std::move(lowered));
  }

  NetworkPlace addReceive(int peer, const Step& step, NetworkStep& lowered) {
    const auto index = static_cast<std::int32_t>(program_.receives.size());
    auto& number = program_.blocksFrom[static_cast<std::size_t>(peer)];
    NetworkReceive receive{peer, number, step.block, step.blockCount, false, {}, 0};
    number += step.blockCount;
    receive.isCombined = step.sources.size() > 1;
    receive.isDirect = step.sources.size() == 1 && !lowered.destinations.empty();
    if (receive.isDirect) {
      receive.to = lowered.destinations.front();
    } else {
      receive.to = {Kind::arrived, program_.incomingSlots};
      program_.incomingSlots += step.blockCount;
    }
    program_.receives.push_back(receive);
    lowered.receives.push_back(index);
    return {Kind::arrived, index};
  }

  /// All sends of a step read the same place: a memory destination, the only source, or a slot of their own.
  void addSends(const Step& step, NetworkStep& lowered) {
    std::vector<int> peers;
    for (const Operand& o : step.destinations)
      if (o.kind == Operand::Kind::peer) peers.push_back(o.index);
    if (peers.empty()) return;
    NetworkPlace from{};
    if (!lowered.destinations.empty()) {
      from = lowered.destinations.front();
    } else if (lowered.sources.size() == 1) {
      from = lowered.sources.front();
    } else {
      from = {Kind::slot, program_.outgoingSlots};
      program_.outgoingSlots += step.blockCount;
      lowered.destinations.push_back(from);
    }
    for (const int peer : peers) {
      auto& number = program_.blocksTo[static_cast<std::size_t>(peer)];
      lowered.sends.push_back(static_cast<std::int32_t>(program_.sends.size()));
      program_.sends.push_back({peer, number, step.block, step.blockCount, from});
      number += step.blockCount;
    }
  }

  void markCompletion(NetworkStep& lowered) const {
    lowered.completes.assign(static_cast<std::size_t>(lowered.blockCount), 0);
    if (!isReduction(plan_.request.collective) || lowered.sources.size() < 2) return;
    const auto& counts = contributions_.ofStep[static_cast<std::size_t>(rank_)][program_.steps.size()];
    for (std::size_t b = 0; b < counts.size(); ++b) lowered.completes[b] = counts[b] == plan_.request.ranks ? 1 : 0;
  }

  /// The block as output where it is the same memory.
  NetworkPlace sameMemory(NetworkPlace place) const {
    if (!inPlace_ || place.kind != Kind::input) return place;
    if (program_.partition == Partition::split) return {Kind::output, place.index};
    const int block = inPlaceOutputOf(plan_, rank_, place.index);
    return block < 0 ? place : NetworkPlace{Kind::output, block};
  }

  bool overlaps(const Region& a, const Region& b) const {
    for (int i = 0; i < a.count; ++i) {
      const NetworkPlace x = sameMemory({a.first.kind, a.first.index + i});
      if (x.kind == Kind::arrived || x.kind == Kind::slot) return false;
      for (int j = 0; j < b.count; ++j) {
        const NetworkPlace y = sameMemory({b.first.kind, b.first.index + j});
        if (x.kind == y.kind && x.index == y.index) return true;
      }
    }
    return false;
  }

  /// A direct receive is where it landed.
  Region regionOf(NetworkPlace place, int count) const {
    if (place.kind == Kind::arrived) {
      const NetworkReceive& receive = program_.receives[static_cast<std::size_t>(place.index)];
      if (receive.isDirect) return {receive.to, count};
    }
    return {place, count};
  }

  bool touches(const NetworkStep& step, const Region& region) const {
    const auto hits = [&](NetworkPlace place) { return overlaps(regionOf(place, step.blockCount), region); };
    return std::ranges::any_of(step.sources, hits) || std::ranges::any_of(step.destinations, hits);
  }

  /// Sends of the steps before `step` that read some of `region`.
  std::vector<std::int32_t> sendsOf(std::size_t step, const Region& region) const {
    std::vector<std::int32_t> found;
    for (std::size_t s = 0; s < step; ++s)
      for (const std::int32_t send : program_.steps[s].sends) {
        const NetworkSend& sent = program_.sends[static_cast<std::size_t>(send)];
        if (overlaps(regionOf(sent.from, sent.blockCount), region)) found.push_back(send);
      }
    return found;
  }

  void findHazards(std::size_t index) {
    NetworkStep& step = program_.steps[index];
    for (const NetworkPlace& place : step.destinations)
      for (const std::int32_t send : sendsOf(index, {place, step.blockCount}))
        if (std::ranges::find(step.afterSends, send) == step.afterSends.end()) step.afterSends.push_back(send);
    for (const std::int32_t number : step.receives) {
      NetworkReceive& receive = program_.receives[static_cast<std::size_t>(number)];
      if (!receive.isDirect) continue;
      const Region landing{receive.to, receive.blockCount};
      if (!sendsOf(index, landing).empty()) {
        // Two ranks that send each other what they receive into would wait for each other's receives for ever.
        receive.isDirect = false;
        receive.to = {Kind::arrived, program_.incomingSlots};
        program_.incomingSlots += receive.blockCount;
        continue;
      }
      for (std::size_t s = 0; s < index; ++s)
        if (touches(program_.steps[s], landing)) receive.postBefore = static_cast<std::int32_t>(s) + 1;
    }
  }

  const Plan& plan_;
  int rank_;
  bool inPlace_;
  Contributions contributions_;
  NetworkProgram program_;
};

}  // namespace

NetworkProgram lowerForNetwork(const Plan& plan, int rank, bool inPlace) {
  return NetworkLowering(plan, rank, inPlace).lower();
}

}  // namespace tacc

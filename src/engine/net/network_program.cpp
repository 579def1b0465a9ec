#include "engine/net/network_program.hpp"

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

#include "algorithms/block_names.hpp"

namespace tacc {

NetworkStep NetworkSteps::operator[](std::size_t index) const {
  const Record& step = steps_[index];
  const Record& next = steps_[index + 1];
  const std::span places(places_);
  return {step.block,
          static_cast<std::int32_t>(step.blockCount),
          step.completes != 0,
          places.subspan(step.sources, step.destinations - step.sources),
          places.subspan(step.destinations, next.sources - step.destinations),
          {step.receives, next.receives},
          {step.sends, next.sends},
          std::span(afterSends_).subspan(step.afterSends, next.afterSends - step.afterSends)};
}

void NetworkSteps::reserve(std::size_t steps, std::size_t places) {
  steps_.reserve(steps + 1);
  places_.reserve(places);
}

void NetworkSteps::append(const NetworkStep& step) {
  if (steps_.empty()) steps_.push_back({});
  Record& record = steps_.back();
  record.block = step.block;
  record.blockCount = static_cast<std::uint32_t>(step.blockCount) & 0x7fffffff;
  record.completes = step.completes ? 1 : 0;
  record.sources = static_cast<std::uint32_t>(places_.size());
  places_.insert(places_.end(), step.sources.begin(), step.sources.end());
  record.destinations = static_cast<std::uint32_t>(places_.size());
  places_.insert(places_.end(), step.destinations.begin(), step.destinations.end());
  afterSends_.insert(afterSends_.end(), step.afterSends.begin(), step.afterSends.end());
  Record end{};
  end.sources = static_cast<std::uint32_t>(places_.size());
  end.receives = record.receives + static_cast<std::int32_t>(step.receives.size());
  end.sends = record.sends + static_cast<std::int32_t>(step.sends.size());
  end.afterSends = static_cast<std::uint32_t>(afterSends_.size());
  steps_.push_back(end);
}

namespace {

using PlaceKind = NetworkPlace::Kind;

NetworkPlace memoryOf(const Operand& operand) {
  const auto kind = operand.kind == Operand::Kind::input    ? PlaceKind::input
                    : operand.kind == Operand::Kind::output ? PlaceKind::output
                                                            : PlaceKind::scratch;
  return {kind, operand.index};
}

/// The blocks of a rank's memory, numbered such that what is the same memory has one number, and which earlier steps
/// and sends have to do with each.
class UseOfMemory {
 public:
  UseOfMemory(const LocalPlan& plan, bool inPlace) : plan_(plan), inPlace_(inPlace) {
    const bool split = partitionOf(plan.request.collective) == Partition::split;
    outputs_ = std::max(outputBlocksOf(plan.request, plan.blocks, plan.rank), split ? plan.blocks : 0);
    const int inputs = inputBlocksOf(plan.request, plan.blocks, plan.rank);
    const auto blocks = static_cast<std::size_t>(outputs_ + plan.scratchBlocks + inputs);
    touched_.assign(blocks, 0);
    sent_.assign(blocks, -1);
  }

  /// The step before which nothing may be written there: the one after the last that reads or writes it.
  int freeBefore(NetworkPlace first, int count) const {
    int step = 0;
    for (int i = 0; i < count; ++i) step = std::max(step, touched_[blockOf(first, i)]);
    return step;
  }
  bool isSent(NetworkPlace first, int count) const {
    for (int i = 0; i < count; ++i)
      if (sent_[blockOf(first, i)] >= 0) return true;
    return false;
  }
  /// Adds the sends that read it.
  void findSends(NetworkPlace first, int count, std::vector<std::int32_t>& sends) const {
    for (int i = 0; i < count; ++i)
      for (std::int32_t at = sent_[blockOf(first, i)]; at >= 0;) {
        const Reader& reader = readers_[static_cast<std::size_t>(at)];
        for (std::int32_t s = reader.begin; s < reader.end; ++s) sends.push_back(s);
        at = reader.next;
      }
  }

  void touch(int step, NetworkPlace first, int count) {
    for (int i = 0; i < count; ++i) touched_[blockOf(first, i)] = step + 1;
  }
  void send(NetworkStep::Numbers sends, NetworkPlace first, int count) {
    for (int i = 0; i < count; ++i) {
      std::int32_t& newest = sent_[blockOf(first, i)];
      readers_.push_back({*sends.begin(), *sends.end(), std::exchange(newest, static_cast<int>(readers_.size()))});
    }
  }

 private:
  /// The sends of one step, which all read the same.
  struct Reader {
    std::int32_t begin, end;
    std::int32_t next;  // of the same block
  };

  std::size_t blockOf(NetworkPlace first, int offset) const {
    const int index = static_cast<int>(first.index) + offset;
    int block = index;
    if (first.kind == PlaceKind::scratch) block = outputs_ + index;
    if (first.kind == PlaceKind::input) {
      const int alias = !inPlace_ ? -1
                        : partitionOf(plan_.request.collective) == Partition::split
                            ? index
                            : inPlaceOutputOf(plan_.request, plan_.rank, index);
      block = alias >= 0 ? alias : outputs_ + plan_.scratchBlocks + index;
    }
    return static_cast<std::size_t>(block);
  }

  const LocalPlan& plan_;
  bool inPlace_;
  int outputs_;
  std::vector<std::int32_t> touched_;  // by block: one more than the last step; 0: none
  std::vector<std::int32_t> sent_;     // by block: its newest reader; -1: none
  std::deque<Reader> readers_;         // which never holds twice what is in it
};

class NetworkLowering {
 public:
  NetworkLowering(const LocalPlan& plan, bool inPlace) : plan_(plan), memory_(plan, inPlace) {}

  NetworkProgram lower() {
    const auto ranks = static_cast<std::size_t>(plan_.request.ranks);
    program_.algorithm = plan_.algorithm;
    program_.partition = partitionOf(plan_.request.collective);
    program_.blocks = plan_.blocks;
    program_.scratchBlocks = plan_.scratchBlocks;
    program_.blocksFrom.assign(ranks, 0);
    program_.blocksTo.assign(ranks, 0);
    makeRoom();
    program_.namesBlocks = program_.partition == Partition::stack;
    plan_.steps.forEach([this](const Step& step) {
      if (program_.namesBlocks && nameOf(step) < 0) program_.namesBlocks = false;
    });
    plan_.steps.forEach([this](const Step& step) {
      if (!program_.namesBlocks) return lowerStep(step);
      Step named = step;
      named.block = nameOf(step);
      lowerStep(named);
    });
    program_.postOrder.resize(program_.receives.size());
    std::iota(program_.postOrder.begin(), program_.postOrder.end(), 0);
    const auto postBefore = [this](std::int32_t r) {
      return program_.receives[static_cast<std::size_t>(r)].postBefore + 0U;
    };
    if (!std::ranges::is_sorted(program_.postOrder, {}, postBefore))
      std::ranges::stable_sort(program_.postOrder, {}, postBefore);
    return std::move(program_);
  }

 private:
  /// Of the first block that it handles, among those that this rank can know the lengths of; -1: none.
  int nameOf(const Step& step) const {
    const int name = nameOfBlock(plan_.request, plan_.rank, step);
    if (name < 0 || plan_.request.collective != Collective::allToAll) return name;
    const int ranks = plan_.request.ranks, from = name / ranks, to = name % ranks;
    if (from == plan_.rank) return to;
    return to == plan_.rank ? ranks + from : -1;
  }

  static bool isPeer(const Operand& operand) { return operand.kind == Operand::Kind::peer; }

  void makeRoom() {
    std::size_t places = 0, receives = 0, sends = 0;
    plan_.steps.forEach([&](const Step& step) {
      const auto sent = static_cast<std::size_t>(std::ranges::count_if(step.destinations, isPeer));
      const std::size_t kept = step.destinations.size() - sent;
      receives += static_cast<std::size_t>(std::ranges::count_if(step.sources, isPeer));
      sends += sent;
      places += step.sources.size() + kept + (kept == 0 && step.sources.size() > 1 ? 1 : 0);
    });
    program_.steps.reserve(plan_.steps.size(), places);
    program_.receives.reserve(receives);
    program_.sends.reserve(sends);
  }

  void lowerStep(const Step& step) {
    sources_.clear();
    destinations_.clear();
    afterSends_.clear();
    const auto firstReceive = static_cast<std::int32_t>(program_.receives.size());
    const auto firstSend = static_cast<std::int32_t>(program_.sends.size());
    for (const Operand& o : step.destinations)
      if (!isPeer(o)) destinations_.push_back(memoryOf(o));
    for (const NetworkPlace& place : destinations_) memory_.findSends(place, step.blockCount, afterSends_);
    std::ranges::sort(afterSends_);
    afterSends_.erase(std::unique(afterSends_.begin(), afterSends_.end()), afterSends_.end());
    for (const Operand& o : step.sources) sources_.push_back(isPeer(o) ? addReceive(o.index, step) : memoryOf(o));
    addSends(step);
    noteUse(step, firstSend);
    program_.steps.append({step.block,
                           step.blockCount,
                           step.completes,
                           sources_,
                           destinations_,
                           {firstReceive, static_cast<std::int32_t>(program_.receives.size())},
                           {firstSend, static_cast<std::int32_t>(program_.sends.size())},
                           afterSends_});
    ++steps_;
  }

  /// It lands where its step would copy it, unless sends read there: two ranks that send each other what they receive
  /// into would wait for each other's receives for ever.
  NetworkPlace addReceive(int peer, const Step& step) {
    const auto index = static_cast<int>(program_.receives.size());
    std::int32_t& number = program_.blocksFrom[static_cast<std::size_t>(peer)];
    NetworkReceive receive{peer, number, step.block, step.blockCount, {PlaceKind::arrived, program_.incomingSlots},
                           0,    0,      0};
    receive.isCombined = step.sources.size() > 1 ? 1 : 0;
    number += step.blockCount;
    if (step.sources.size() == 1 && !destinations_.empty() && !memory_.isSent(destinations_[0], step.blockCount)) {
      receive.isDirect = 1;
      receive.to = destinations_[0];
      receive.postBefore = static_cast<std::uint32_t>(memory_.freeBefore(receive.to, step.blockCount)) & 0x3fffffff;
    } else {
      program_.incomingSlots += step.blockCount;
    }
    program_.receives.push_back(receive);
    return {PlaceKind::arrived, index};
  }

  /// All sends of a step read the same place: a memory destination, the only source, or a slot of their own.
  void addSends(const Step& step) {
    if (std::ranges::none_of(step.destinations, isPeer)) return;
    NetworkPlace from;
    if (!destinations_.empty()) {
      from = destinations_.front();
    } else if (sources_.size() == 1) {
      from = sources_.front();
    } else {
      from = {PlaceKind::slot, program_.outgoingSlots};
      program_.outgoingSlots += step.blockCount;
      destinations_.push_back(from);
    }
    for (const Operand& o : step.destinations) {
      if (!isPeer(o)) continue;
      std::int32_t& number = program_.blocksTo[static_cast<std::size_t>(o.index)];
      program_.sends.push_back({o.index, number, step.block, step.blockCount, from});
      number += step.blockCount;
    }
  }

  /// For the steps to come. What arrives somewhere else, and slots, belong to one step alone.
  void noteUse(const Step& step, std::int32_t firstSend) {
    const auto isMemory = [](NetworkPlace place) {
      return place.kind != PlaceKind::arrived && place.kind != PlaceKind::slot;
    };
    for (const auto* places : {&sources_, &destinations_})
      for (const NetworkPlace& place : *places)
        if (isMemory(place)) memory_.touch(steps_, place, step.blockCount);
    const auto end = static_cast<std::int32_t>(program_.sends.size());
    if (firstSend < end && isMemory(program_.sends.back().from))
      memory_.send({firstSend, end}, program_.sends.back().from, step.blockCount);
  }

  const LocalPlan& plan_;
  UseOfMemory memory_;
  NetworkProgram program_;
  int steps_ = 0;
  std::vector<NetworkPlace> sources_, destinations_;  // of the step at hand
  std::vector<std::int32_t> afterSends_;
};

}  // namespace

NetworkProgram lowerForNetwork(const LocalPlan& plan, bool inPlace) { return NetworkLowering(plan, inPlace).lower(); }

}  // namespace tacc

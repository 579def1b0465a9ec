#include "engine/shm/delivery.hpp"

#include <algorithm>
#include <optional>

namespace tacc {
namespace {

using Kind = Operand::Kind;

/// A range of blocks of a rank's memory, after in-place aliasing.
struct Range {
  Kind buffer;
  int first, count;
  bool overlaps(const Range& other) const {
    return buffer == other.buffer && first < other.first + other.count && other.first < first + count;
  }
};

/// An access by the owner of the memory itself.
struct LocalAccess {
  Range range;
  int step, round;
  bool writes;
};

/// A reading by reference by `reader`: of the contents that the owner sent in `sendRound`.
struct RemoteRead {
  Range range;
  int sendRound, reader, readStep, readRound;
};

struct RemoteWrite {
  Range range;
  int writer, round;
};

struct RankMemory {
  std::vector<LocalAccess> accesses;
  std::vector<RemoteRead> reads;
  std::vector<RemoteWrite> writes;
  std::vector<int> referenced;  // per step: how many of its messages are read by reference
};

class DeliveryChooser {
 public:
  DeliveryChooser(const Plan& plan, const std::vector<PlanMessage>& messages, const HappensBefore& order,
                  const LoweringFacts& facts)
      : plan_(plan), order_(order), facts_(facts), memory_(static_cast<std::size_t>(plan.request.ranks)) {
    for (const PlanMessage& m : messages) chosen_.push_back({m, Delivery::staged, {}, {}});
    for (int rank = 0; rank < plan.request.ranks; ++rank) collectAccesses(rank);
  }

  std::vector<Delivered> choose() {
    for (Delivered& d : chosen_) tryReference(d, false);
    dropUnneededReads();
    for (Delivered& d : chosen_)
      if (d.delivery == Delivery::staged) tryPut(d);
    for (Delivered& d : chosen_)
      if (d.delivery == Delivery::staged) tryReference(d, true);
    return std::move(chosen_);
  }

 private:
  const Step& step(int rank, int index) const {
    return plan_.ranks[static_cast<std::size_t>(rank)].steps[static_cast<std::size_t>(index)];
  }
  RankMemory& memory(int rank) { return memory_[static_cast<std::size_t>(rank)]; }

  /// The memory behind a local operand; in place, input and output are one.
  Range rangeOf(int rank, const Operand& operand, int blockCount) const {
    const PlanRequest& request = plan_.request;
    Range range{operand.kind, operand.index, blockCount};
    if (!facts_.inPlace || operand.kind == Kind::scratch) return range;
    switch (request.collective) {
      case Collective::allGather:
        if (operand.kind == Kind::input) range = {Kind::output, rank, blockCount};
        break;
      case Collective::gather:
        if (operand.kind == Kind::input && rank == request.root) range = {Kind::output, rank, blockCount};
        break;
      case Collective::reduceScatter:
        if (operand.kind == Kind::output) range = {Kind::input, rank, blockCount};
        break;
      case Collective::scatter:
        if (operand.kind == Kind::output && rank == request.root) range = {Kind::input, rank, blockCount};
        break;
      default:
        range.buffer = Kind::output;
    }
    return range;
  }

  void collectAccesses(int rank) {
    const auto& steps = plan_.ranks[static_cast<std::size_t>(rank)].steps;
    memory(rank).referenced.resize(steps.size());
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const auto add = [&](const Operand& o, bool writes) {
        if (o.kind != Kind::peer)
          memory(rank).accesses.push_back(
              {rangeOf(rank, o, steps[s].blockCount), static_cast<int>(s), steps[s].round, writes});
      };
      for (const Operand& o : steps[s].sources) add(o, false);
      for (const Operand& o : steps[s].destinations) add(o, true);
    }
  }

  /// The operand of the sender's step that holds what it sends: its only source, or (afterwards) an output it also
  /// writes.
  std::optional<Operand> referable(const Step& sending, bool afterwards) const {
    if (!afterwards) {
      if (sending.sources.size() != 1) return std::nullopt;
      const Operand& o = sending.sources.front();
      if (o.kind == Kind::input && facts_.input != Access::staged) return o;
      if (o.kind == Kind::output && facts_.output != Access::staged) return o;
      return std::nullopt;
    }
    if (facts_.output == Access::staged) return std::nullopt;
    for (const Operand& o : sending.destinations)
      if (o.kind == Kind::output) return o;
    return std::nullopt;
  }

  void tryReference(Delivered& d, bool afterwards) {
    const PlanMessage& m = d.message;
    const Step& sending = step(m.sender, m.sendStep);
    const auto operand = referable(sending, afterwards);
    if (!operand) return;
    const Range range = rangeOf(m.sender, *operand, sending.blockCount);
    RankMemory& owner = memory(m.sender);
    for (const LocalAccess& a : owner.accesses)
      if (a.writes && a.round > m.sendRound && a.range.overlaps(range) &&
          order_.known(m.sender, a.round, m.receiver) < m.receiveRound)
        return;
    for (const RemoteWrite& w : owner.writes)
      if (w.round > m.sendRound && w.range.overlaps(range) &&
          order_.known(w.writer, w.round, m.receiver) < m.receiveRound)
        return;
    owner.reads.push_back({range, m.sendRound, m.receiver, m.receiveStep, m.receiveRound});
    ++owner.referenced[static_cast<std::size_t>(m.sendStep)];
    d.delivery = Delivery::byReference;
    d.from = *operand;
  }

  /// A step whose every message is read by reference, and that writes nothing else, does nothing at its rank.
  void dropUnneededReads() {
    for (int rank = 0; rank < plan_.request.ranks; ++rank) {
      auto& accesses = memory(rank).accesses;
      std::erase_if(accesses, [&](const LocalAccess& a) {
        const Step& s = step(rank, a.step);
        return !a.writes &&
               memory(rank).referenced[static_cast<std::size_t>(a.step)] == static_cast<int>(s.destinations.size());
      });
    }
  }

  void tryPut(Delivered& d) {
    const PlanMessage& m = d.message;
    const Step& receiving = step(m.receiver, m.receiveStep);
    if (facts_.output != Access::mapped || receiving.sources.size() != 1 || receiving.destinations.size() != 1 ||
        receiving.destinations.front().kind != Kind::output)
      return;
    const Operand& operand = receiving.destinations.front();
    const Range range = rangeOf(m.receiver, operand, receiving.blockCount);
    RankMemory& owner = memory(m.receiver);
    for (const LocalAccess& a : owner.accesses)
      if (a.step != m.receiveStep && a.round <= m.receiveRound && a.range.overlaps(range) &&
          order_.known(m.sender, m.sendRound, m.receiver) < a.round)
        return;
    for (const RemoteRead& r : owner.reads) {
      if (r.sendRound >= m.receiveRound || !r.range.overlaps(range)) continue;
      const bool sameStep = r.reader == m.sender && r.readStep == m.sendStep && r.range.first == range.first &&
                            r.range.count == range.count;
      if (!sameStep && order_.known(m.sender, m.sendRound, r.reader) < r.readRound) return;
    }
    owner.writes.push_back({range, m.sender, m.sendRound});
    d.delivery = Delivery::put;
    d.to = operand;
  }

  const Plan& plan_;
  const HappensBefore& order_;
  LoweringFacts facts_;
  std::vector<RankMemory> memory_;
  std::vector<Delivered> chosen_;
};

}  // namespace

std::vector<Delivered> chooseDeliveries(const Plan& plan, const std::vector<PlanMessage>& messages,
                                        const HappensBefore& order, const LoweringFacts& facts) {
  return DeliveryChooser(plan, messages, order, facts).choose();
}

}  // namespace tacc

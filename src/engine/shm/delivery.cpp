#include "engine/shm/delivery.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace tacc {
namespace {

using Kind = Operand::Kind;

/// A range of blocks of a rank's memory. In place, what is input and output is named as one of them (InPlace).
struct BufferRange {
  Kind buffer;
  int first, count;
  bool overlaps(const BufferRange& other) const {
    return buffer == other.buffer && first < other.first + other.count && other.first < first + count;
  }
};

/// Blocks of a rank's input that are its output too, from inPlaceOutputOf(): they lie in one run in both.
class InPlace {
 public:
  InPlace(const Plan& plan, int rank) {
    for (int block = 0; block < inputBlocksOf(plan, rank); ++block) {
      const int output = inPlaceOutputOf(plan, rank, block);
      if (output < 0) continue;
      if (count_++ == 0) shift_ = output - block;
    }
    isWholeOutput_ = count_ > 0 && count_ == outputBlocksOf(plan, rank);
  }

  /// The range in the one of the two buffers that holds the other whole.
  BufferRange nameOf(BufferRange range) const {
    if (count_ == 0 || range.buffer == Kind::scratch) return range;
    if (isWholeOutput_)
      return range.buffer == Kind::input ? range : BufferRange{Kind::input, range.first - shift_, range.count};
    return range.buffer == Kind::output ? range : BufferRange{Kind::output, range.first + shift_, range.count};
  }

 private:
  int count_ = 0, shift_ = 0;
  bool isWholeOutput_ = false;
};

/// An access by the owner of the memory itself; `step`: of all ranks.
struct LocalAccess {
  BufferRange range;
  int step, round;
  bool writes;
};

/// A reading by reference by `reader`: of the contents that the owner sent in `sendRound`.
struct RemoteRead {
  BufferRange range;
  int sendRound, reader, readStep, readRound;
};

struct RemoteWrite {
  BufferRange range;
  int writer, round;
};

struct RankMemory {
  std::vector<LocalAccess> accesses;
  std::vector<RemoteRead> reads;
  std::vector<RemoteWrite> writes;
};

class DeliveryChooser {
 public:
  DeliveryChooser(const Plan& plan, const PlanAnalysis& analysis, const HappensBefore& order,
                  const LoweringFacts& facts)
      : analysis_(analysis),
        order_(order),
        facts_(facts),
        memory_(static_cast<std::size_t>(plan.request.ranks)),
        referenced_(analysis.steps.size(), 0) {
    for (const PlanAnalysis::Message& m : analysis.messages) chosen_.push_back({.message = m});
    std::ranges::stable_sort(chosen_, {},
                             [](const Delivered& d) { return std::pair(d.message.sender, d.message.receiver); });
    for (int rank = 0; rank < plan.request.ranks; ++rank) inPlace_.emplace_back(plan, rank);
    for (std::size_t id = 0; id < analysis.steps.size(); ++id) collectAccesses(static_cast<int>(id));
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
  const Step& step(int id) const { return *analysis_.steps[static_cast<std::size_t>(id)].step; }
  int& referenced(int id) { return referenced_[static_cast<std::size_t>(id)]; }
  RankMemory& memory(int rank) { return memory_[static_cast<std::size_t>(rank)]; }

  /// The memory behind a local operand.
  BufferRange rangeOf(int rank, const Operand& operand, int blockCount) const {
    const BufferRange range{operand.kind, operand.index, blockCount};
    return facts_.inPlace ? inPlace_[static_cast<std::size_t>(rank)].nameOf(range) : range;
  }

  void collectAccesses(int id) {
    const auto& [step, rank, index] = analysis_.steps[static_cast<std::size_t>(id)];
    const auto add = [&, &of = *step, &owner = memory(rank), r = rank](const Operand& o, bool writes) {
      if (o.kind != Kind::peer) owner.accesses.push_back({rangeOf(r, o, of.blockCount), id, of.round, writes});
    };
    for (const Operand& o : step->sources) add(o, false);
    for (const Operand& o : step->destinations) add(o, true);
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
    const PlanAnalysis::Message& m = d.message;
    const Step& sending = step(m.sendStep);
    const int sendRound = sending.round, receiveRound = analysis_.receiveRound(m);
    const auto operand = referable(sending, afterwards);
    if (!operand) return;
    const BufferRange range = rangeOf(m.sender, *operand, sending.blockCount);
    RankMemory& owner = memory(m.sender);
    for (const LocalAccess& a : owner.accesses)
      if (a.writes && a.round > sendRound && a.range.overlaps(range) &&
          order_.known(m.sender, a.round, m.receiver) < receiveRound)
        return;
    for (const RemoteWrite& w : owner.writes)
      if (w.round > sendRound && w.range.overlaps(range) && order_.known(w.writer, w.round, m.receiver) < receiveRound)
        return;
    owner.reads.push_back({range, sendRound, m.receiver, m.receiveStep, receiveRound});
    ++referenced(m.sendStep);
    d.delivery = Delivery::byReference;
    d.from = *operand;
    d.isThereBefore = !afterwards;
  }

  /// A step whose every message is read by reference, and that writes nothing else, does nothing at its rank.
  void dropUnneededReads() {
    for (RankMemory& owner : memory_)
      std::erase_if(owner.accesses, [&](const LocalAccess& a) {
        return !a.writes && referenced(a.step) == static_cast<int>(step(a.step).destinations.size());
      });
  }

  void tryPut(Delivered& d) {
    const PlanAnalysis::Message& m = d.message;
    const Step& receiving = step(m.receiveStep);
    const int sendRound = analysis_.sendRound(m), receiveRound = receiving.round;
    if (facts_.output != Access::mapped || receiving.sources.size() != 1 || receiving.destinations.size() != 1 ||
        receiving.destinations.front().kind != Kind::output)
      return;
    const Operand& operand = receiving.destinations.front();
    const BufferRange range = rangeOf(m.receiver, operand, receiving.blockCount);
    RankMemory& owner = memory(m.receiver);
    for (const LocalAccess& a : owner.accesses)
      if (a.step != m.receiveStep && a.round <= receiveRound && a.range.overlaps(range) &&
          order_.known(m.sender, sendRound, m.receiver) < a.round)
        return;
    for (const RemoteRead& r : owner.reads) {
      if (r.sendRound >= receiveRound || !r.range.overlaps(range)) continue;
      const bool sameStep = r.reader == m.sender && r.readStep == m.sendStep && r.range.first == range.first &&
                            r.range.count == range.count;
      if (!sameStep && order_.known(m.sender, sendRound, r.reader) < r.readRound) return;
    }
    owner.writes.push_back({range, m.sender, sendRound});
    d.delivery = Delivery::put;
    d.to = operand;
  }

  const PlanAnalysis& analysis_;
  const HappensBefore& order_;
  LoweringFacts facts_;
  std::vector<InPlace> inPlace_;  // per rank
  std::vector<RankMemory> memory_;
  std::vector<int> referenced_;  // per step: how many of its messages are read by reference
  std::vector<Delivered> chosen_;
};

}  // namespace

std::vector<Delivered> chooseDeliveries(const Plan& plan, const PlanAnalysis& analysis, const HappensBefore& order,
                                        const LoweringFacts& facts) {
  return DeliveryChooser(plan, analysis, order, facts).choose();
}

}  // namespace tacc

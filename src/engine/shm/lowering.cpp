#include <algorithm>
#include <compare>
#include <map>
#include <unordered_set>
#include <utility>

#include "core/error.hpp"
#include "engine/shm/delivery.hpp"
#include "engine/shm/happens_before.hpp"
#include "engine/shm/own_copies.hpp"
#include "engine/shm/program.hpp"

namespace tacc {
namespace {

using Kind = Operand::Kind;

Place ownPlace(const Operand& operand, int rank) {
  const auto kind = operand.kind == Kind::input    ? Place::Kind::input
                    : operand.kind == Kind::output ? Place::Kind::output
                                                   : Place::Kind::scratch;
  return {kind, rank, operand.index};
}

/// Keeps one dependency a rank: the latest.
void addDependency(std::vector<Dependency>& list, Dependency added) {
  const auto found = std::ranges::find(list, added.rank, &Dependency::rank);
  if (found == list.end())
    list.push_back(added);
  else
    found->round = std::max(found->round, added.round);
}

class Lowering {
 public:
  Lowering(const Plan& plan, int rank, const LoweringFacts& facts)
      : plan_(plan),
        rank_(rank),
        facts_(facts),
        analysis_(plan),
        delivered_(chooseDeliveries(plan, analysis_, HappensBefore(plan, analysis_), facts)),
        readsEarly_(mayReadEarly()),
        usesPipes_(facts.pipes && comesInOrder()),
        outgoing_(analysis_.steps.size()),
        incoming_(analysis_.steps.size()) {
    for (const Delivered& d : delivered_) {
      outgoing_[static_cast<std::size_t>(d.message.sendStep)].push_back(&d);
      incoming_[static_cast<std::size_t>(d.message.receiveStep)].push_back(&d);
    }
  }

  Program lower() {
    program_.algorithm = plan_.algorithm;
    program_.partition = partitionOf(plan_.request.collective);
    program_.blocks = plan_.blocks;
    program_.scratchBlocks = plan_.scratchBlocks;
    program_.rounds.resize(static_cast<std::size_t>(plan_.rounds));
    atOnce_.resize(program_.rounds.size());
    assignSlots();
    program_.roundsOnce = combinesAtOnce();
    const auto me = static_cast<std::size_t>(rank_);
    for (int id = analysis_.firstStep[me]; id < analysis_.firstStep[me + 1]; ++id)
      lowerStep(static_cast<std::size_t>(id), *analysis_.steps[static_cast<std::size_t>(id)].step);
    if (usesPipes_) giveFirst();
    findTrivialRounds();
    for (const Delivered& d : delivered_) addDependencies(d);
    if (std::ranges::all_of(delivered_, [&](const Delivered& d) {
          return d.delivery == Delivery::staged || (d.message.sender != rank_ && isShared(d));
        }))
      deferOwnCopies(program_, plan_, rank_, facts_);
    program_.helpsReaders =
        std::ranges::any_of(delivered_, [&](const Delivered& d) { return d.message.sender == rank_ && isShared(d); });
    return std::move(program_);
  }

 private:
  /// Whether all messages are delivered as well where what is read by reference, and is there before the sender's step,
  /// is read without a wait for that step.
  bool mayReadEarly() const {
    std::unordered_set<int> early;  // messages, by their first blocks: no two have the same
    for (const Delivered& d : delivered_)
      if (d.isThereBefore) early.insert(d.message.firstBlock);
    if (early.empty()) return false;
    const HappensBefore order(plan_, analysis_,
                              [&](const PlanAnalysis::Message& message) { return early.contains(message.firstBlock); });
    return chooseDeliveries(plan_, analysis_, order, facts_) == delivered_;
  }

  /// Whether a message is read through the kernel, or where pipes are used, through one.
  bool goesThroughKernel(const Delivered& d) const {
    return d.delivery == Delivery::byReference && accessOf(d) == Access::cma;
  }

  /// Whether all that would go through a pipe is read in the order in which it is given, for all schedules: the rounds
  /// between the two are the same for all messages of a pair, and no step has two of them.
  bool comesInOrder() const {
    struct Message {
      int sendRound;
      bool isAfterStep;  // given when its step is done, and not at once
      int sendStep, receiveRound, receiveStep;
      auto operator<=>(const Message&) const = default;  // the order in which they are given
    };
    std::map<std::pair<int, int>, std::vector<Message>> pairs;
    for (const Delivered& d : delivered_) {
      const PlanAnalysis::Message& m = d.message;
      if (goesThroughKernel(d))
        pairs[{m.sender, m.receiver}].push_back(
            {analysis_.sendRound(m), !d.isThereBefore, m.sendStep, analysis_.receiveRound(m), m.receiveStep});
    }
    for (auto& [pair, messages] : pairs) {
      std::ranges::sort(messages);
      for (std::size_t i = 1; i < messages.size(); ++i) {
        const Message &before = messages[i - 1], &after = messages[i];
        if (after.receiveRound - after.sendRound != before.receiveRound - before.sendRound ||
            after.receiveStep <= before.receiveStep || after.sendStep == before.sendStep)
          return false;
      }
    }
    return true;
  }

  /// In each round: what is there already is given, then what the rank has itself is copied, which gives the others
  /// time, then the rest is done. Steps of one round do not meet.
  void giveFirst() {
    const auto isOwn = [](const Operation& o) {
      return o.sources.size() == 1 && o.sources.front().kind == Place::Kind::input;
    };
    for (std::size_t round = 0; round < atOnce_.size(); ++round) {
      std::vector<Operation>& operations = program_.rounds[round].operations;
      std::ranges::stable_partition(operations, isOwn);
      operations.insert(operations.begin(), atOnce_[round].begin(), atOnce_[round].end());
    }
  }

  /// A slot a block for every step that stages something, numbered in each rank's own order.
  void assignSlots() {
    int next = 0;
    for (std::size_t id = 0; id < analysis_.steps.size(); ++id) {
      const PlanAnalysis::StepRef& ref = analysis_.steps[id];
      if (ref.index == 0) next = 0;
      const bool staged =
          std::ranges::any_of(outgoing_[id], [](const Delivered* d) { return d->delivery == Delivery::staged; });
      slotOf_.push_back(staged ? next : -1);
      if (staged) next += ref.step->blockCount;
      program_.slots = std::max(program_.slots, next);
    }
    for (const Delivered& d : delivered_)
      if (d.delivery == Delivery::staged)
        program_.slotReach =
            std::max(program_.slotReach, analysis_.receiveRound(d.message) - analysis_.sendRound(d.message));
  }

  void lowerStep(std::size_t id, const Step& step) {
    makeStep(id, step);
    if (!usesPipes_) return;
    const auto round = static_cast<std::size_t>(step.round);
    for (const Delivered* d : outgoing_[id])
      if (goesThroughKernel(*d))
        (d->isThereBefore ? atOnce_[round] : program_.rounds[round].operations)
            .push_back({step.block,
                        step.blockCount,
                        step.completes,
                        false,
                        {ownPlace(d->from, rank_)},
                        {{Place::Kind::pipe, d->message.receiver, 0}}});
  }

  void makeStep(std::size_t id, const Step& step) {
    Operation operation{step.block, step.blockCount, step.completes, false, {}, {}};
    for (const Operand& o : step.destinations)
      if (o.kind != Kind::peer) operation.destinations.push_back(ownPlace(o, rank_));
    if (slotOf_[id] >= 0) operation.destinations.push_back({Place::Kind::slot, rank_, slotOf_[id]});
    for (const Delivered* d : outgoing_[id])
      if (d->delivery == Delivery::put)
        operation.destinations.push_back({Place::Kind::remoteOutput, d->message.receiver, d->to.index});

    std::map<int, std::size_t> used;  // messages of one sender so far
    for (const Operand& o : step.sources) {
      if (o.kind != Kind::peer) {
        operation.sources.push_back(ownPlace(o, rank_));
        continue;
      }
      const Delivered& d = incomingFrom(id, o.index, used[o.index]++);
      if (d.delivery == Delivery::put) return;  // the sender has done this step
      operation.sources.push_back(sourceOf(d, operation));
      operation.isShared = isShared(d);
    }
    if (operation.destinations.empty()) return;
    auto& operations = program_.rounds[static_cast<std::size_t>(step.round)].operations;
    operations.push_back(std::move(operation));
  }

  const Delivered& incomingFrom(std::size_t id, int sender, std::size_t nth) const {
    for (const Delivered* d : incoming_[id])
      if (d->message.sender == sender && nth-- == 0) return *d;
    fail(taccInternalError, "plan {}: step {} of rank {} receives from rank {}, which sends nothing", plan_.algorithm,
         analysis_.steps[id].index, rank_, sender);
  }

  Place sourceOf(const Delivered& d, Operation& operation) const {
    const int sender = d.message.sender;
    if (d.delivery == Delivery::staged)
      return {Place::Kind::slot, sender, slotOf_[static_cast<std::size_t>(d.message.sendStep)]};
    const bool isInput = d.from.kind == Kind::input;
    if (accessOf(d) == Access::cma) operation.readsThroughKernel = true;
    if (usesPipes_ && goesThroughKernel(d)) return {Place::Kind::pipe, sender, 0};
    return {isInput ? Place::Kind::remoteInput : Place::Kind::remoteOutput, sender, d.from.index};
  }

  Access accessOf(const Delivered& d) const { return d.from.kind == Kind::input ? facts_.input : facts_.output; }

  /// Whether a message is read through the kernel, as it is and to one place, from a rank that receives nothing and so
  /// has nothing to do meanwhile. The same at both ends.
  bool isShared(const Delivered& d) const {
    if (!goesThroughKernel(d) || usesPipes_) return false;
    const auto id = static_cast<std::size_t>(d.message.receiveStep);
    const Step& step = *analysis_.steps[id].step;
    return step.sources.size() == 1 && step.destinations.size() == 1 && slotOf_[id] < 0 &&
           step.destinations.front().kind == Kind::output &&
           std::ranges::none_of(delivered_,
                                [&](const Delivered& other) { return other.message.receiver == d.message.sender; });
  }

  /// Whether every sum of the plan is complete with the contributions of p sources, and so is taken in one pass.
  bool combinesAtOnce() const {
    const auto p = static_cast<std::size_t>(plan_.request.ranks);
    return std::ranges::all_of(plan_.ranks, [&](const RankPlan& rank) {
      return std::ranges::all_of(rank.steps, [&](const Step& step) {
        return step.sources.size() == 1 || (step.completes && step.sources.size() == p);
      });
    });
  }

  /// workBegins_[r]: the first round in which rank r does or waits for anything. Rounds before it are over as soon as
  /// the rank has entered the call, which everybody knows from its call line.
  void findTrivialRounds() {
    const auto p = static_cast<std::size_t>(plan_.request.ranks);
    workBegins_.assign(p, plan_.rounds);
    const auto lower = [&](int rank, int round) {
      int& begins = workBegins_[static_cast<std::size_t>(rank)];
      begins = std::min(begins, round);
    };
    for (std::size_t id = 0; id < analysis_.steps.size(); ++id) {
      const PlanAnalysis::StepRef& ref = analysis_.steps[id];
      const bool writesOwn =
          std::ranges::any_of(ref.step->destinations, [](const Operand& o) { return o.kind != Kind::peer; });
      const bool delivers =
          std::ranges::any_of(outgoing_[id], [](const Delivered* d) { return d->delivery != Delivery::byReference; });
      if (writesOwn || delivers) lower(ref.rank, ref.step->round);
    }
    for (const Delivered& d : delivered_) lower(d.message.receiver, analysis_.receiveRound(d.message));
  }

  void addDependencies(const Delivered& d) {
    const PlanAnalysis::Message& m = d.message;
    const int sendRound = analysis_.sendRound(m), receiveRound = analysis_.receiveRound(m);
    const int awaited = readsEarly_ && d.isThereBefore ? sendRound - 1 : sendRound;
    if (m.receiver == rank_ && awaited >= workBegins_[static_cast<std::size_t>(m.sender)])
      addDependency(program_.rounds[static_cast<std::size_t>(receiveRound)].before, {m.sender, awaited});
    if (m.sender != rank_) return;
    if (d.delivery == Delivery::staged)
      addDependency(program_.rounds[static_cast<std::size_t>(sendRound)].slotReaders, {m.receiver, receiveRound});
    if (d.delivery == Delivery::byReference) addDependency(program_.lastReaders, {m.receiver, receiveRound});
  }

  const Plan& plan_;
  int rank_;
  LoweringFacts facts_;
  PlanAnalysis analysis_;
  std::vector<Delivered> delivered_;
  bool readsEarly_;                                                 // what is there before the sender's step
  bool usesPipes_;                                                  // for what is read through the kernel
  std::vector<std::vector<const Delivered*>> outgoing_, incoming_;  // per step of all ranks
  std::vector<int> slotOf_;                                         // the same; -1: stages nothing
  std::vector<int> workBegins_;
  std::vector<std::vector<Operation>> atOnce_;  // per round: what is given to pipes before anything else is done
  Program program_;
};

}  // namespace

Program lower(const Plan& plan, int rank, const LoweringFacts& facts) { return Lowering(plan, rank, facts).lower(); }

}  // namespace tacc

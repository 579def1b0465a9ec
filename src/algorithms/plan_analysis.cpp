#include "algorithms/plan_analysis.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"

namespace tacc {
namespace {

// Only a damaged file comes near it.
constexpr int mostBlocks = 1 << 28;

struct Receive {
  int receiver;
  int sender;
  int step;
  int slot;  // in PlanAnalysis::received
};

void listSteps(const Plan& plan, PlanAnalysis& analysis) {
  for (int rank = 0; rank < plan.request.ranks; ++rank) {
    analysis.firstStep.push_back(static_cast<int>(analysis.steps.size()));
    int index = 0;
    for (const Step& step : plan.ranks[rank].steps) analysis.steps.push_back({&step, rank, index++});
  }
  analysis.firstStep.push_back(static_cast<int>(analysis.steps.size()));

  std::vector<int> place(static_cast<std::size_t>(plan.rounds) + 1, 0);
  for (const PlanAnalysis::StepRef& ref : analysis.steps) ++place[ref.step->round + 1];
  std::partial_sum(place.begin(), place.end(), place.begin());
  analysis.byRound.resize(analysis.steps.size());
  for (std::size_t id = 0; id < analysis.steps.size(); ++id) {
    analysis.byRound[place[analysis.steps[id].step->round]++] = static_cast<int>(id);
  }
}

std::vector<Receive> listMessages(const Plan& plan, PlanAnalysis& analysis) {
  std::vector<Receive> receives;
  for (std::size_t id = 0; id < analysis.steps.size(); ++id) {
    const PlanAnalysis::StepRef& ref = analysis.steps[id];
    const int step = static_cast<int>(id);
    analysis.firstSent.push_back(static_cast<int>(analysis.messages.size()));
    analysis.firstReceived.push_back(static_cast<int>(receives.size()));
    for (const Operand& operand : ref.step->destinations) {
      if (operand.kind != Operand::Kind::peer) continue;
      if (analysis.messageBlocks > mostBlocks - ref.step->blockCount) {
        fail(taccInvalidArgument, "plan {} {}: its messages have more than {} blocks, too many to follow",
             plan.algorithm, nameOf(plan.request.collective), mostBlocks);
      }
      analysis.messages.push_back({ref.rank, operand.index, step, -1, analysis.messageBlocks});
      analysis.messageBlocks += ref.step->blockCount;
    }
    for (const Operand& operand : ref.step->sources) {
      if (operand.kind != Operand::Kind::peer) continue;
      receives.push_back({ref.rank, operand.index, step, static_cast<int>(receives.size())});
    }
  }
  analysis.firstSent.push_back(static_cast<int>(analysis.messages.size()));
  analysis.firstReceived.push_back(static_cast<int>(receives.size()));
  analysis.received.assign(receives.size(), -1);
  return receives;
}

/// The order of `items` by receiver, then sender, each pair's items in the order they have. Linear in items and ranks.
template <class Item>
std::vector<int> byPair(const std::vector<Item>& items, int ranks) {
  std::vector<int> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<int> sorted(items.size());
  for (int Item::*const key : {&Item::sender, &Item::receiver}) {
    std::vector<int> place(static_cast<std::size_t>(ranks) + 1, 0);
    for (const Item& item : items) ++place[item.*key + 1];
    std::partial_sum(place.begin(), place.end(), place.begin());
    for (const int i : order) sorted[place[items[i].*key]++] = i;
    order.swap(sorted);
  }
  return order;
}

void checkPair(const Plan& plan, const PlanAnalysis& analysis, const PlanAnalysis::Message& message) {
  const PlanAnalysis::StepRef& send = analysis.steps[message.sendStep];
  const PlanAnalysis::StepRef& receive = analysis.steps[message.receiveStep];
  if (send.step->round >= receive.step->round) {
    fail(taccInvalidArgument,
         "{}: takes a message that rank {} sends in round {}; a message can be received only in a later round than it "
         "is "
         "sent",
         placeOfStep(plan, receive.rank, receive.index), send.rank, send.step->round);
  }
  if (send.step->blockCount != receive.step->blockCount || send.step->block != receive.step->block) {
    fail(taccInvalidArgument,
         "{}: expects {} blocks from block {} of rank {}, which sends {} from block {} (its step {})",
         placeOfStep(plan, receive.rank, receive.index), receive.step->blockCount, receive.step->block, send.rank,
         send.step->blockCount, send.step->block, send.index);
  }
}

}  // namespace

std::string placeOfStep(const Plan& plan, int rank, std::size_t step) {
  return fmt::format("plan {} {}, rank {}, round {}, step {}", plan.algorithm, nameOf(plan.request.collective), rank,
                     plan.ranks[rank].steps[step].round, step);
}

PlanAnalysis::PlanAnalysis(const Plan& plan) {
  listSteps(plan, *this);
  const std::vector<Receive> receives = listMessages(plan, *this);
  const std::vector<int> sendOrder = byPair(messages, plan.request.ranks);
  const std::vector<int> receiveOrder = byPair(receives, plan.request.ranks);

  for (std::size_t i = 0; i < std::max(sendOrder.size(), receiveOrder.size()); ++i) {
    PlanAnalysis::Message* message = i < sendOrder.size() ? &messages[sendOrder[i]] : nullptr;
    const Receive* receive = i < receiveOrder.size() ? &receives[receiveOrder[i]] : nullptr;
    const auto before = [](const auto& a, const auto& b) {
      return a.receiver != b.receiver ? a.receiver < b.receiver : a.sender < b.sender;
    };
    if (message != nullptr && (receive == nullptr || before(*message, *receive))) {
      const PlanAnalysis::StepRef& send = steps[message->sendStep];
      fail(taccInvalidArgument, "{}: sends to rank {}, which does not receive this message",
           placeOfStep(plan, send.rank, send.index), message->receiver);
    }
    if (message == nullptr || before(*receive, *message)) {
      const PlanAnalysis::StepRef& ref = steps[receive->step];
      fail(taccInvalidArgument, "{}: receives from rank {}, which does not send this message",
           placeOfStep(plan, ref.rank, ref.index), receive->sender);
    }
    message->receiveStep = receive->step;
    received[receive->slot] = sendOrder[i];
    checkPair(plan, *this, *message);
  }
}

}  // namespace tacc

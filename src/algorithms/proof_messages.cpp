// Messages: pairs of sends and receives.
#include <algorithm>
#include <numeric>

#include "algorithms/proof.hpp"
#include "core/error.hpp"

namespace tacc::proof {
namespace {

// Only a damaged file comes near it.
constexpr int maxValues = 1 << 28;

struct Receive {
  int receiver;
  int sender;
  int step;
  int slot;  // in Exchange::received
};

void listSteps(const Plan& plan, Exchange& exchange) {
  for (int rank = 0; rank < plan.request.ranks; ++rank) {
    exchange.firstStep.push_back(static_cast<int>(exchange.steps.size()));
    int index = 0;
    for (const Step& step : plan.ranks[rank].steps) exchange.steps.push_back({&step, rank, index++});
  }
  exchange.firstStep.push_back(static_cast<int>(exchange.steps.size()));

  std::vector<int> place(static_cast<std::size_t>(plan.rounds) + 1, 0);
  for (const StepRef& ref : exchange.steps) ++place[ref.step->round + 1];
  std::partial_sum(place.begin(), place.end(), place.begin());
  exchange.byRound.resize(exchange.steps.size());
  for (std::size_t id = 0; id < exchange.steps.size(); ++id) {
    exchange.byRound[place[exchange.steps[id].step->round]++] = static_cast<int>(id);
  }
}

std::vector<Receive> listMessages(const Plan& plan, Exchange& exchange) {
  std::vector<Receive> receives;
  for (std::size_t id = 0; id < exchange.steps.size(); ++id) {
    const StepRef& ref = exchange.steps[id];
    const int step = static_cast<int>(id);
    exchange.firstSent.push_back(static_cast<int>(exchange.messages.size()));
    exchange.firstReceived.push_back(static_cast<int>(receives.size()));
    for (const Operand& operand : ref.step->destinations) {
      if (operand.kind != Operand::Kind::peer) continue;
      if (exchange.values > maxValues - ref.step->blockCount) {
        fail(taccInvalidArgument, "plan {} {}: its messages have more than {} blocks, too many for a proof",
             plan.algorithm, nameOf(plan.request.collective), maxValues);
      }
      exchange.messages.push_back({ref.rank, operand.index, step, -1, exchange.values});
      exchange.values += ref.step->blockCount;
    }
    for (const Operand& operand : ref.step->sources) {
      if (operand.kind != Operand::Kind::peer) continue;
      receives.push_back({ref.rank, operand.index, step, static_cast<int>(receives.size())});
    }
  }
  exchange.firstReceived.push_back(static_cast<int>(receives.size()));
  exchange.received.assign(receives.size(), -1);
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

void checkPair(const Plan& plan, const Exchange& exchange, const ProvenMessage& message) {
  const StepRef& send = exchange.steps[message.sendStep];
  const StepRef& receive = exchange.steps[message.receiveStep];
  if (send.step->round >= receive.step->round) {
    fail(taccInvalidArgument,
         "{}: takes a message that rank {} sends in round {}; a message can be received only in a later round than it "
         "is "
         "sent",
         placeOf(plan, receive.rank, receive.index), send.rank, send.step->round);
  }
  if (send.step->blockCount != receive.step->blockCount || send.step->block != receive.step->block) {
    fail(taccInvalidArgument,
         "{}: expects {} blocks from block {} of rank {}, which sends {} from block {} (its step {})",
         placeOf(plan, receive.rank, receive.index), receive.step->blockCount, receive.step->block, send.rank,
         send.step->blockCount, send.step->block, send.index);
  }
}

}  // namespace

Exchange matchMessages(const Plan& plan) {
  Exchange exchange;
  listSteps(plan, exchange);
  const std::vector<Receive> receives = listMessages(plan, exchange);
  const std::vector<int> sendOrder = byPair(exchange.messages, plan.request.ranks);
  const std::vector<int> receiveOrder = byPair(receives, plan.request.ranks);

  for (std::size_t i = 0; i < std::max(sendOrder.size(), receiveOrder.size()); ++i) {
    ProvenMessage* message = i < sendOrder.size() ? &exchange.messages[sendOrder[i]] : nullptr;
    const Receive* receive = i < receiveOrder.size() ? &receives[receiveOrder[i]] : nullptr;
    const auto before = [](const auto& a, const auto& b) {
      return a.receiver != b.receiver ? a.receiver < b.receiver : a.sender < b.sender;
    };
    if (message != nullptr && (receive == nullptr || before(*message, *receive))) {
      const StepRef& send = exchange.steps[message->sendStep];
      fail(taccInvalidArgument, "{}: sends to rank {}, which does not receive this message",
           placeOf(plan, send.rank, send.index), message->receiver);
    }
    if (message == nullptr || before(*receive, *message)) {
      const StepRef& ref = exchange.steps[receive->step];
      fail(taccInvalidArgument, "{}: receives from rank {}, which does not send this message",
           placeOf(plan, ref.rank, ref.index), receive->sender);
    }
    message->receiveStep = receive->step;
    exchange.received[receive->slot] = sendOrder[i];
    checkPair(plan, exchange, *message);
  }
  return exchange;
}

}  // namespace tacc::proof

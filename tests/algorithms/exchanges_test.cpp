// What algorithms say that their plans exchange is what the plans exchange: for every number of ranks up to 64, every
// root and every layout, message by message.
#include "algorithms/exchanges.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "algorithms/registry.hpp"
#include "interpreter.hpp"
#include "support/settings.hpp"

namespace tacc {
namespace {

struct Message {
  int peer = 0;
  int blocks = 0;
  friend auto operator<=>(const Message&, const Message&) = default;
};

/// Of one rank: batches one after the other; the order within a batch is not told.
using Batches = std::vector<std::vector<Message>>;

struct Traffic {
  std::vector<Batches> sent, received;
  std::vector<long> combined;  // blocks

  explicit Traffic(int p) : sent(at(p)), received(at(p)), combined(at(p), 0) {}

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  void beginBatch() {
    for (Batches& batches : sent) batches.emplace_back();
    for (Batches& batches : received) batches.emplace_back();
  }
  void add(int from, int to, int blocks, bool combines) {
    sent[at(from)].back().push_back({to, blocks});
    received[at(to)].back().push_back({from, blocks});
    if (combines) combined[at(to)] += blocks;
  }
};

struct Expansion {
  int p;
  Traffic& traffic;

  void operator()(const Exchange& exchange) const {
    for (int i = 0; i < exchange.repeats; ++i) {
      traffic.beginBatch();
      std::vector<int> senders(static_cast<std::size_t>(p), 0);
      int most = 0;
      for (int r = 0; r < p; ++r) {
        const int to = exchange.to(r);
        ASSERT_TRUE(0 <= to && to < p);
        if (to == r) continue;
        ASSERT_EQ(++senders[static_cast<std::size_t>(to)], 1) << "two send to " << to;
        int blocks = 0;
        if (exchange.cut) {
          const MessageCut cut = exchange.cut(r);
          for (int m = 0; m < cut.count; ++m) {
            traffic.add(r, to, cut.blocks[static_cast<std::size_t>(m)], exchange.combines);
            blocks += cut.blocks[static_cast<std::size_t>(m)];
          }
        } else {
          for (int m = 0; m < exchange.messages; ++m)
            traffic.add(r, to, exchange.blocks / exchange.messages, exchange.combines);
          blocks = exchange.blocks / exchange.messages * exchange.messages;
        }
        most = std::max(most, blocks);
        if (!exchange.cut) {
          ASSERT_EQ(blocks, exchange.blocks) << "of " << r;
        }
      }
      ASSERT_EQ(most, exchange.blocks);
    }
  }

  void operator()(const EveryToEvery& every) const {
    traffic.beginBatch();
    for (int r = 0; r < p; ++r)
      for (int to = 0; to < p; ++to)
        if (r != to && r != every.except && to != every.except && every.peersIn(r, to, to + 1) == 1)
          for (int m = 0; m < every.messages; ++m) traffic.add(r, to, every.blocks / every.messages, every.combines);
  }

  void operator()(const Star& star) const {
    traffic.beginBatch();
    for (int r = 0; r < p; ++r)
      if (r != star.center)
        traffic.add(star.isOutward ? star.center : r, star.isOutward ? r : star.center, star.blocks, star.combines);
  }

  void operator()(const TreeExchange& exchange) const {
    // What goes up and what comes down pass each other.
    for (int m = 0; m < exchange.messages; ++m) {
      if (m == 0 || !exchange.turns) traffic.beginBatch();
      for (const TreeExchange::Member& member : exchange.trees) {
        goAlong(member, exchange, exchange.isDown);
        if (exchange.turns) goAlong(member, exchange, true);
      }
    }
  }

  void goAlong(const TreeExchange::Member& member, const TreeExchange& exchange, bool isDown) const {
    const Tree& tree = *member.tree;
    const bool combines = exchange.combines && !isDown;
    const auto rankOf = [&](int place) {
      const int rank = tree.rankOf(place);
      return member.ranks.empty() ? rank : member.ranks[static_cast<std::size_t>(rank)];
    };
    for (int place = 0; place < tree.size(); ++place) {
      if (place == tree.root()) continue;
      const int parent = rankOf(tree.node(place).parent), child = rankOf(place);
      const int from = isDown ? parent : child, to = isDown ? child : parent;
      const int all = exchange.isPerRank ? exchange.blocks * tree.node(place).size : exchange.blocks;
      // The subtree's ranks come round to 0 after so many of its places.
      const int before = p - tree.rankOf(tree.node(place).first);
      const bool isCut = exchange.isCutAtRoot && tree.node(place).parent == tree.root() && before < all;
      traffic.add(from, to, isCut ? before : all, combines);
      if (isCut) traffic.add(from, to, all - before, combines);
    }
  }

  void operator()(const Copy& copy) const { ASSERT_GT(copy.blocks, 0); }
};

/// The messages of a rank in the order of its steps, cut into batches as long as those of `like`.
Batches cutLike(const std::vector<Message>& messages, const Batches& like) {
  Batches batches;
  std::size_t next = 0;
  for (const std::vector<Message>& batch : like) {
    const std::size_t end = std::min(messages.size(), next + batch.size());
    batches.emplace_back(messages.begin() + static_cast<std::ptrdiff_t>(next),
                         messages.begin() + static_cast<std::ptrdiff_t>(end));
    next = end;
  }
  if (next < messages.size())
    batches.emplace_back(messages.begin() + static_cast<std::ptrdiff_t>(next), messages.end());
  return batches;
}

Batches sorted(Batches batches) {
  for (std::vector<Message>& batch : batches) std::ranges::sort(batch);
  return batches;
}

class EveryAlgorithmExchanges : public testing::TestWithParam<const Algorithm*> {};

TEST_P(EveryAlgorithmExchanges, WhatItSays) {
  const Algorithm& algorithm = *GetParam();
  int compared = 0;
  for (int p = 2; p <= 64; ++p) {
    if (test::isQuick() && p > 20 && p % 11 != 0) continue;
    for (const PlanRequest& request : test::requestsServed(algorithm, p)) {
      const Plan plan = makePlan(algorithm, request);
      const Exchanges exchanges = algorithm.exchanges(request);
      const std::string what = test::describe(plan);
      ASSERT_EQ(exchanges.blocks, plan.blocks) << what;
      Traffic traffic(p);
      for (const Phase& phase : exchanges.phases)
        ASSERT_NO_FATAL_FAILURE(std::visit(Expansion{p, traffic}, phase)) << what;
      for (int r = 0; r < p; ++r) {
        std::vector<Message> sent, received;
        long combined = 0;
        for (const Step& step : plan.ranks[static_cast<std::size_t>(r)].steps) {
          for (const Operand& from : step.sources)
            if (from.kind == Operand::Kind::peer) received.push_back({from.index, step.blockCount});
          for (const Operand& to : step.destinations)
            if (to.kind == Operand::Kind::peer) sent.push_back({to.index, step.blockCount});
          combined += (static_cast<long>(step.sources.size()) - 1) * step.blockCount;
        }
        const auto i = static_cast<std::size_t>(r);
        ASSERT_EQ(sorted(cutLike(sent, traffic.sent[i])), sorted(traffic.sent[i])) << what << ", sent by " << r;
        ASSERT_EQ(sorted(cutLike(received, traffic.received[i])), sorted(traffic.received[i])) << what << ", at " << r;
        ASSERT_EQ(combined, traffic.combined[i]) << what << ", combined by " << r;
        if (r == exchanges.source) {
          ASSERT_TRUE(received.empty()) << what << ", at its source";
        }
      }
      ++compared;
    }
  }
  EXPECT_GE(compared, 6);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EveryAlgorithmExchanges, testing::ValuesIn([] {
                           std::vector<const Algorithm*> all;
                           for (const Algorithm& algorithm : algorithms()) all.push_back(&algorithm);
                           return all;
                         }()),
                         [](const auto& param) { return std::string(param.param->name); });

}  // namespace
}  // namespace tacc

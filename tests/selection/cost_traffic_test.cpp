// What the closed forms say of uplinks is what the plans send over them.
#include <gtest/gtest.h>

#include <algorithm>

#include "selection/cost/message_graph.hpp"
#include "selection/network_prices.hpp"

namespace tacc::test {
namespace {

constexpr double uplink = 1e7;  // bytes per second; all else is a thousand times as fast
constexpr double bytes = 1 << 24;

CostMachine behindUplinks(int ranks, int ofGroup) {
  return {ranks, {{groupsOfSize(ranks, ofGroup), 1e-9, 1e-10, uplink}, {{0}, 1e-9, 1e-10, 0}}, 1e10, 0, 0};
}

/// Seconds that the busiest uplink needs for all messages of the call.
double secondsOfTraffic(const NetworkCandidate& candidate, const PlanRequest& request, int ofGroup) {
  const MessageGraph traffic(makePlan(*candidate.algorithm, request), candidate.chunkBytes, 0, 0);
  const auto groups = static_cast<std::size_t>(request.ranks / ofGroup);
  std::vector<double> out(groups), in(groups);
  for (const TrafficMessage& message : traffic.messages) {
    const auto from = static_cast<std::size_t>(message.sender / ofGroup);
    const auto to = static_cast<std::size_t>(message.receiver / ofGroup);
    if (from == to) continue;
    out[from] += message.bytes;
    in[to] += message.bytes;
  }
  return std::max(std::ranges::max(out), std::ranges::max(in)) * bytes / candidate.chunkBytes / uplink;
}

TEST(CostTraffic, UplinksCarryWhatPlansSend) {
  for (const auto& [ranks, ofGroup] : {std::pair{8, 4}, {8, 2}, {9, 3}, {16, 4}, {12, 6}}) {
    const CostMap map(behindUplinks(ranks, ofGroup));
    const std::vector<int> sizes(static_cast<std::size_t>(ranks / ofGroup), ofGroup);
    for (const Collective collective : {Collective::allReduce, Collective::broadcast, Collective::reduce,
                                        Collective::allGather, Collective::reduceScatter}) {
      for (const int root : {0, 1, 5}) {
        NetworkQuestion question;
        question.request = {collective, ranks, root, {sizes}, {}};
        question.bytes = bytes;
        question.messageBytes = 1 << 14;
        if (root != 0 && !isRooted(collective)) continue;
        for (const NetworkCandidate& candidate : priceNetworkAlgorithms(question, map)) {
          if (!candidate.isPossible) continue;
          const double traffic = secondsOfTraffic(candidate, question.request, ofGroup);
          EXPECT_GE(candidate.busiest, 0.97 * traffic)
              << candidate.algorithm->name << " " << nameOf(collective) << " of " << ranks << " from " << root;
          EXPECT_LE(candidate.busiest, 1.3 * traffic)
              << candidate.algorithm->name << " " << nameOf(collective) << " of " << ranks << " from " << root;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tacc::test

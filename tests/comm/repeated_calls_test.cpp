// A call that was made before allocates nothing, whichever collective it is; over several hosts no buffer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <climits>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "allocation_fault.hpp"
#include "rank_harness.hpp"
#include "support/host_ranks_test.hpp"

namespace tacc::test {
namespace {

using Counts = std::vector<std::size_t>;

/// Buffers and counts of one rank: `unit` elements to and from rank 0, twice as many of rank 1 and so on.
struct Data {
  Data(int rank, int ranks, std::size_t elements)
      : unit(elements), each(static_cast<std::size_t>(ranks)), places(each.size()) {
    for (std::size_t r = 0; r < each.size(); ++r) each[r] = (r + 1) * unit;
    std::exclusive_scan(each.begin(), each.end(), places.begin(), std::size_t{0});
    own = each[static_cast<std::size_t>(rank)];
    // What rank r gives another is as long as that other's blocks are.
    toAll.assign(each.size(), own);
    toAllPlaces.resize(each.size());
    std::exclusive_scan(toAll.begin(), toAll.end(), toAllPlaces.begin(), std::size_t{0});
    const std::size_t all = each.size() * each.size() * unit;
    send.assign(all, 1);
    receive.assign(all, 0);
  }

  std::size_t unit;
  Counts each, places, toAll, toAllPlaces;
  std::size_t own = 0;
  std::vector<int> send, receive;
};

struct Case {
  const char* name;
  taccResult_t (*run)(Data& data, taccComm_t comm);
};

const Case cases[] = {
    {"allreduce",
     [](Data& d, taccComm_t comm) {
       return taccAllReduce(d.send.data(), d.receive.data(), d.unit, taccInt32, taccSum, comm, nullptr);
     }},
    {"allreduce of 16-bit numbers",
     [](Data& d, taccComm_t comm) {
       return taccAllReduce(d.send.data(), d.receive.data(), d.unit, taccBfloat16, taccSum, comm, nullptr);
     }},
    {"reducescatter of 16-bit numbers",
     [](Data& d, taccComm_t comm) {
       return taccReduceScatter(d.send.data(), d.receive.data(), d.unit, taccBfloat16, taccSum, comm, nullptr);
     }},
    {"broadcast",
     [](Data& d, taccComm_t comm) { return taccBcast(d.receive.data(), d.unit, taccInt32, 0, comm, nullptr); }},
    {"alltoall",
     [](Data& d, taccComm_t comm) {
       return taccAllToAll(d.send.data(), d.receive.data(), d.unit, taccInt32, comm, nullptr);
     }},
    {"scan",
     [](Data& d, taccComm_t comm) {
       return taccScan(d.send.data(), d.receive.data(), d.unit, taccInt32, taccSum, comm, nullptr);
     }},
    {"allgatherv",
     [](Data& d, taccComm_t comm) {
       return taccAllGatherV(d.send.data(), d.receive.data(), d.each.data(), d.places.data(), taccInt32, comm, nullptr);
     }},
    {"reducescatterv",
     [](Data& d, taccComm_t comm) {
       return taccReduceScatterV(d.send.data(), d.receive.data(), d.each.data(), d.places.data(), taccInt32, taccSum,
                                 comm, nullptr);
     }},
    {"gatherv",
     [](Data& d, taccComm_t comm) {
       return taccGatherV(d.send.data(), d.own, d.receive.data(), d.each.data(), d.places.data(), taccInt32, 0, comm,
                          nullptr);
     }},
    {"scatterv",
     [](Data& d, taccComm_t comm) {
       return taccScatterV(d.send.data(), d.each.data(), d.places.data(), d.receive.data(), d.own, taccInt32, 0, comm,
                           nullptr);
     }},
    {"alltoallv",
     [](Data& d, taccComm_t comm) {
       return taccAllToAllV(d.send.data(), d.each.data(), d.places.data(), d.receive.data(), d.toAll.data(),
                            d.toAllPlaces.data(), taccInt32, comm, nullptr);
     }},
};

/// Elements of the smallest block: in a line, in a post, and so many that a plan runs.
class RepeatedCalls : public testing::TestWithParam<std::size_t> {};

TEST_P(RepeatedCalls, AllocateNothing) {
  // How data moves is tried in the first calls, and each way may need memory once.
  constexpr int trials = 100, ranks = 3;
  runRanks(RankKind::processes, ranks, [](taccComm_t comm, int rank) {
    Data data(rank, ranks, GetParam());
    std::vector<long> allocations;
    for (const Case& one : cases) {
      for (int i = 0; i < trials; ++i) expectSuccess(one.run(data, comm), comm);
      failAllocation(LONG_MAX);  // counts
      const taccResult_t result = one.run(data, comm);
      allocations.push_back(countAllocations());
      failAllocation(0);
      expectSuccess(result, comm);
    }
    // The same kinds again, one after the other: none displaces what another needs.
    for (std::size_t i = 0; i < std::size(cases); ++i) {
      failAllocation(LONG_MAX);
      const taccResult_t result = cases[i].run(data, comm);
      allocations[i] += countAllocations();
      failAllocation(0);
      expectSuccess(result, comm);
      EXPECT_EQ(allocations[i], 0) << cases[i].name << " on rank " << rank;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Elements, RepeatedCalls, testing::Values(2, 500, 300'000),
                         [](const auto& suite) { return fmt::format("{}", suite.param); });

class RepeatedCallsOverHosts : public HostRanksTest {};

/// The transport keeps messages that come before they are expected. No message is as long as the calls' shortest block.
TEST_P(RepeatedCallsOverHosts, TakeNoBuffer) {
  constexpr std::size_t elements = 300'000, shortestBlock = elements * 2;
  constexpr int trials = 4;
  const VirtualCluster cluster(1, 2);
  taccConfig_t config = TACC_CONFIG_INITIALIZER;
  config.dynamic = 0;  // another algorithm needs other memory
  runOnHosts(
      cluster, hosts(),
      [&](taccComm_t comm, int rank) {
        Data data(rank, ranks(), elements);
        for (const Case& one : cases) {
          for (int i = 0; i < trials; ++i) expectSuccess(one.run(data, comm), comm);
          failAllocation(LONG_MAX);
          const taccResult_t result = one.run(data, comm);
          EXPECT_LT(largestAllocation(), shortestBlock) << one.name << " on rank " << rank;
          failAllocation(0);
          expectSuccess(result, comm);
        }
      },
      config);
}

INSTANTIATE_TEST_SUITE_P(Layouts, RepeatedCallsOverHosts,
                         testing::Values(Layout{"blocks", {1, 1, 2, 2}}, Layout{"cyclic", {1, 2, 1, 2}}), layoutName);

}  // namespace
}  // namespace tacc::test

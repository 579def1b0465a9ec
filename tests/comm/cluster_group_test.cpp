// Groups among ranks on several virtual hosts: fused small allreduces, and all pairs at once.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "rank_harness.hpp"
#include "support/host_ranks_test.hpp"

namespace tacc::test {
namespace {

class HostGroups : public HostRanksTest {
 protected:
  void run(const std::function<void(taccComm_t, int)>& body) {
    const VirtualCluster& cluster = fourHosts();
    runOnHosts(cluster, hosts(), body);
  }
};

/// Element i of the message of `bytes` from one rank to another.
std::uint8_t byteOf(int from, int to, std::size_t i) {
  return static_cast<std::uint8_t>(static_cast<std::size_t>(from) * 41 + static_cast<std::size_t>(to) * 7 + i);
}

TEST_P(HostGroups, smallAllReducesAreSummedEachByItself) {
  run([&](taccComm_t comm, int rank) {
    const int sumOfRanks = ranks() * (ranks() + 1) / 2;
    std::mt19937 random(11);  // alike on all ranks
    for (int round = 0; round < 10; ++round) {
      // Most fit into a fused call, some do not, some have nothing in them; the last are of another type and operation.
      std::vector<std::vector<std::int32_t>> sums;
      for (int t = 0; t < 40; ++t) sums.emplace_back(random() % (random() % 6 == 0 ? 9000 : 300));
      std::vector<std::vector<double>> largest(5, std::vector<double>(17));
      ASSERT_EQ(taccGroupStart(), taccSuccess);
      for (std::size_t t = 0; t < sums.size(); ++t) {
        for (std::size_t i = 0; i < sums[t].size(); ++i) sums[t][i] = static_cast<std::int32_t>(i * 5 + t) * (rank + 1);
        expectSuccess(taccAllReduce(sums[t].data(), sums[t].data(), sums[t].size(), taccInt32, taccSum, comm, nullptr),
                      comm);
      }
      for (std::size_t t = 0; t < largest.size(); ++t) {
        largest[t].assign(17, static_cast<double>(t) + rank);
        expectSuccess(taccAllReduce(largest[t].data(), largest[t].data(), 17, taccFloat64, taccMax, comm, nullptr),
                      comm);
      }
      ASSERT_EQ(taccGroupEnd(), taccSuccess) << taccGetLastError(comm);
      for (std::size_t t = 0; t < sums.size(); ++t)
        for (std::size_t i = 0; i < sums[t].size(); ++i)
          ASSERT_EQ(sums[t][i], static_cast<std::int32_t>(i * 5 + t) * sumOfRanks) << "tensor " << t << ", " << i;
      for (std::size_t t = 0; t < largest.size(); ++t)
        ASSERT_EQ(largest[t], std::vector<double>(17, static_cast<double>(t) + ranks() - 1)) << "tensor " << t;
    }
  });
}

TEST_P(HostGroups, allPairsExchangeBesideACollective) {
  run([&](taccComm_t comm, int rank) {
    // Nothing, and below and above what a transport sends at once.
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{5003}, std::size_t{700001}}) {
      std::vector<std::vector<std::uint8_t>> out, in;
      for (int peer = 0; peer < ranks(); ++peer) {
        in.emplace_back(bytes);
        out.emplace_back(bytes);
        for (std::size_t i = 0; i < bytes; ++i) out.back()[i] = byteOf(rank, peer, i);
      }
      std::int64_t sum = rank;
      const auto reduce = [&] { expectSuccess(taccAllReduce(&sum, &sum, 1, taccInt64, taccSum, comm, nullptr), comm); };
      ASSERT_EQ(taccGroupStart(), taccSuccess);
      // Where in the group the collective stands must not matter.
      if (rank % 2 == 0) reduce();
      for (int peer = 0; peer < ranks(); ++peer) {
        if (peer == rank) continue;
        const auto at = static_cast<std::size_t>(peer);
        expectSuccess(taccRecv(in[at].data(), bytes, taccUint8, peer, comm, nullptr), comm);
        expectSuccess(taccSend(out[at].data(), bytes, taccUint8, peer, comm, nullptr), comm);
      }
      if (rank % 2 == 1) reduce();
      ASSERT_EQ(taccGroupEnd(), taccSuccess) << taccGetLastError(comm);
      EXPECT_EQ(sum, ranks() * (ranks() - 1) / 2);
      for (int peer = 0; peer < ranks(); ++peer) {
        if (peer == rank) continue;
        for (std::size_t i = 0; i < bytes; ++i)
          ASSERT_EQ(in[static_cast<std::size_t>(peer)][i], byteOf(peer, rank, i)) << "from " << peer << ", byte " << i;
      }
    }
  });
}

TEST_P(HostGroups, groupsThatDifferAreAnErrorThatSaysSo) {
  run([&](taccComm_t comm, int rank) {
    std::vector<float> first(10), second(20);
    std::vector<float>& one = rank == 1 ? second : first;
    std::vector<float>& other = rank == 1 ? first : second;
    ASSERT_EQ(taccGroupStart(), taccSuccess);
    expectSuccess(taccAllReduce(one.data(), one.data(), one.size(), taccFloat, taccSum, comm, nullptr), comm);
    expectSuccess(taccAllReduce(other.data(), other.data(), other.size(), taccFloat, taccSum, comm, nullptr), comm);
    EXPECT_NE(taccGroupEnd(), taccSuccess);
    EXPECT_NE(std::string(taccGetLastError(comm)).find("allreduce(count 30, float, sum, several together"),
              std::string::npos)
        << taccGetLastError(comm);
  });
}

INSTANTIATE_TEST_SUITE_P(Placements, HostGroups,
                         testing::Values(Layout{"oneEach", {1, 2, 3}}, Layout{"blocks", {1, 1, 2, 2}},
                                         Layout{"uneven", {2, 1, 3, 1, 1}}),
                         layoutName);

}  // namespace
}  // namespace tacc::test

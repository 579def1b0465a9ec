// Reproducible communicators: the bits of floating-point reductions are those of one pass in the order of the ranks,
// wherever the ranks are and whatever runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "compute/reduce/reduce.hpp"
#include "core/types.hpp"
#include "fault_team.hpp"
#include "support/virtual_cluster.hpp"

namespace tacc::test {
namespace {

using Bytes = std::vector<std::byte>;

/// Numbers of very different sizes with all their bits in use, so that the order of a sum shows.
std::vector<float> contributionOf(int rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) * 7919U + 1U);
  std::vector<float> values(count);
  for (float& value : values) {
    const double fraction = static_cast<double>(random()) / 4294967296.0 - 0.5;
    value = static_cast<float>(std::ldexp(fraction, static_cast<int>(random() % 16) - 11));
  }
  return values;
}

/// Times a number whose bits go on for ever.
std::vector<double> widened(const std::vector<float>& values) {
  std::vector<double> wide(values.begin(), values.end());
  for (double& value : wide) value *= std::numbers::pi;
  return wide;
}

Bytes stored(taccDataType_t type, const std::vector<float>& values) {
  Bytes bytes(values.size() * sizeOf(type));
  if (type == taccFloat64) {
    const std::vector<double> wide = widened(values);
    std::memcpy(bytes.data(), wide.data(), bytes.size());
  } else if (type == taccFloat32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  } else {
    narrowFromFloat(type, bytes.data(), values.data(), values.size());
  }
  return bytes;
}

template <class Number>
Number combine(taccRedOp_t op, Number a, Number b) {
  if (op == taccProd) return a * b;
  if (op == taccMax) return a < b ? b : a;
  if (op == taccMin) return b < a ? b : a;
  return a + b;
}

/// ((x0 + x1) + x2) ... in the order of `order`.
template <class Number>
std::vector<Number> fold(taccRedOp_t op, const std::vector<std::vector<Number>>& inputs,
                         const std::vector<int>& order) {
  std::vector<Number> result = inputs[static_cast<std::size_t>(order[0])];
  for (std::size_t i = 0; i < result.size(); ++i) {
    for (std::size_t k = 1; k < order.size(); ++k)
      result[i] = combine(op, result[i], inputs[static_cast<std::size_t>(order[k])][i]);
    if (op == taccAvg) result[i] /= static_cast<Number>(order.size());
  }
  return result;
}

Bytes expected(taccDataType_t type, taccRedOp_t op, int ranks, std::size_t count, bool backwards = false) {
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  if (backwards) std::reverse(order.begin(), order.end());
  std::vector<std::vector<float>> narrow;
  std::vector<std::vector<double>> wide;
  for (int rank = 0; rank < ranks; ++rank) {
    narrow.push_back(contributionOf(rank, count));
    wide.push_back(widened(narrow.back()));
    if (isHalfWidth(type)) widenToFloat(type, narrow.back().data(), stored(type, narrow.back()).data(), count);
  }
  if (type != taccFloat64) return stored(type, fold(op, narrow, order));
  const std::vector<double> result = fold(op, wide, order);
  Bytes bytes(count * sizeof(double));
  std::memcpy(bytes.data(), result.data(), bytes.size());
  return bytes;
}

TEST(ReproducibleReference, theOrderShows) {
  for (const taccDataType_t type : {taccFloat32, taccFloat64})
    EXPECT_FALSE(expected(type, taccSum, 4, 1000) == expected(type, taccSum, 4, 1000, true)) << nameOf(type);
}

/// All reductions of this rank against the reference.
void checkAll(taccComm_t comm, int ranks, int rank, const std::vector<std::size_t>& counts) {
  for (const taccDataType_t type : {taccFloat32, taccFloat64, taccFloat16, taccBfloat16})
    for (const taccRedOp_t op : {taccSum, taccAvg, taccProd, taccMax})
      for (const std::size_t count : counts) {
        SCOPED_TRACE(std::string(nameOf(type)) + " operation " + std::to_string(op) + " count " +
                     std::to_string(count));
        const Bytes right = expected(type, op, ranks, count);
        const Bytes mine = stored(type, contributionOf(rank, count));
        Bytes result(right.size());
        ASSERT_EQ(taccAllReduce(mine.data(), result.data(), count, type, op, comm, nullptr), taccSuccess)
            << taccGetLastError(comm);
        EXPECT_TRUE(result == right) << "allreduce, rank " << rank;
        Bytes inPlace = mine;
        ASSERT_EQ(taccAllReduce(inPlace.data(), inPlace.data(), count, type, op, comm, nullptr), taccSuccess);
        EXPECT_TRUE(inPlace == right) << "allreduce in place, rank " << rank;
        const int root = static_cast<int>(count) % ranks;
        Bytes reduced(right.size());
        ASSERT_EQ(taccReduce(mine.data(), reduced.data(), count, type, op, root, comm, nullptr), taccSuccess);
        if (rank == root) {
          EXPECT_TRUE(reduced == right) << "reduce";
        }
        if (op != taccAvg) {
          Bytes upTo(right.size()), before(right.size());
          ASSERT_EQ(taccScan(mine.data(), upTo.data(), count, type, op, comm, nullptr), taccSuccess);
          EXPECT_TRUE(upTo == expected(type, op, rank + 1, count)) << "scan, rank " << rank;
          ASSERT_EQ(taccExscan(mine.data(), before.data(), count, type, op, comm, nullptr), taccSuccess);
          EXPECT_TRUE(rank == 0 || before == expected(type, op, rank, count)) << "exscan, rank " << rank;
        }
        const std::size_t block = count / static_cast<std::size_t>(ranks), size = sizeOf(type);
        if (block == 0) continue;
        Bytes scattered(block * size);
        ASSERT_EQ(taccReduceScatter(mine.data(), scattered.data(), block, type, op, comm, nullptr), taccSuccess);
        const auto begin = right.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * block * size);
        EXPECT_TRUE(std::equal(scattered.begin(), scattered.end(), begin)) << "reduce-scatter, rank " << rank;
        if (testing::Test::HasFailure()) return;
      }
}

taccConfig_t reproducible() {
  taccConfig_t config = configOf(20, 60);
  config.reproducible = 1;
  return config;
}

TEST(Reproducible, onOneHost) {
  for (const int ranks : {1, 2, 3, 5}) {
    Team team(ranks, [ranks](const taccUniqueId& id, int rank, Report&) {
      taccComm_t comm = joinTeam(id, ranks, rank, reproducible());
      ASSERT_NE(comm, nullptr);
      checkAll(comm, ranks, rank, {1, 17, 4000, 300'001});
      EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
    });
    team.join(-1, 60);
  }
}

TEST(Reproducible, forcedAlgorithmsMustCombineInRankOrder) {
  for (const std::string name : {"ring", "recursive_doubling", "twoshot", "oneshot"}) {
    Team team(3, [&name](const taccUniqueId& id, int rank, Report&) {
      taccConfig_t config = reproducible();
      config.algorithm = name.c_str();
      taccComm_t comm = joinTeam(id, 3, rank, config);
      ASSERT_NE(comm, nullptr);
      const bool fits = name == "twoshot" || name == "oneshot";
      float value = 1;
      EXPECT_EQ(taccAllReduce(&value, &value, 1, taccFloat32, taccSum, comm, nullptr),
                fits ? taccSuccess : taccInvalidUsage);
      if (!fits) {
        const std::string message = taccGetLastError(comm);
        EXPECT_NE(message.find(name), std::string::npos) << message;
        EXPECT_NE(message.find("oneshot, twoshot"), std::string::npos) << message;
      }
      taccCommDestroy(comm);
    });
    team.join();
  }
}

TEST(Reproducible, mustBeEqualOnAllRanks) {
  Team team(2, [](const taccUniqueId& id, int rank, Report&) {
    const taccConfig_t config = rank == 0 ? reproducible() : configOf(20, 20);
    taccComm_t comm = nullptr;
    EXPECT_EQ(taccCommInitRankConfig(&comm, 2, id, rank, &config), taccInvalidUsage);
    EXPECT_NE(std::string(taccGetLastError(nullptr)).find("reproducible"), std::string::npos)
        << taccGetLastError(nullptr);
  });
  team.join();
}

TEST(Reproducible, onAnyHosts) {
  if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
  const VirtualCluster cluster(1, 4);
  for (const std::vector<int>& hosts : {std::vector<int>{1, 1, 2, 2}, {1, 2, 1, 2, 1}, {4, 3, 2, 1}, {1, 1, 1, 2}}) {
    const int ranks = static_cast<int>(hosts.size());
    Team team(cluster, hosts, [ranks](const taccUniqueId& id, int rank, Report&) {
      taccComm_t comm = joinTeam(id, ranks, rank, reproducible());
      ASSERT_NE(comm, nullptr);
      checkAll(comm, ranks, rank, {1, 17, 4000, 50'001});
      // More than one pass.
      const std::size_t count = 2'200'000;
      const Bytes right = expected(taccFloat32, taccSum, ranks, count),
                  mine = stored(taccFloat32, contributionOf(rank, count));
      Bytes result(right.size());
      EXPECT_EQ(taccAllReduce(mine.data(), result.data(), count, taccFloat32, taccSum, comm, nullptr), taccSuccess);
      EXPECT_TRUE(result == right);
      EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
    });
    team.join(-1, 60);
  }
}

}  // namespace
}  // namespace tacc::test

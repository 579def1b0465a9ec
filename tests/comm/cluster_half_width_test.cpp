// Sums of 16-bit numbers over several hosts: how often they are rounded, and how many bytes they move.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "compute/reduce/reduce.hpp"
#include "rank_harness.hpp"
#include "support/host_ranks_test.hpp"

namespace tacc::test {
namespace {

constexpr int hostMbit = 400;  // so that bytes decide what is chosen
constexpr taccDataType_t halfTypes[] = {taccFloat16, taccBfloat16};

/// Small multiples of 1/64: a 16-bit type holds them, and a float any sum of them, but 16 bits do not.
std::vector<float> drawn(std::uint64_t seed, std::size_t count) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 255) - 127) / 64.0f;
  return values;
}

std::vector<std::uint16_t> narrow(taccDataType_t type, const std::vector<float>& values) {
  std::vector<std::uint16_t> result(values.size());
  narrowFromFloat(type, result.data(), values.data(), values.size());
  return result;
}

float combine(taccRedOp_t op, float a, float b) {
  switch (op) {
    case taccMax:
      return std::max(a, b);
    case taccMin:
      return std::min(a, b);
    default:
      return a + b;
  }
}

class HalfWidth : public HostRanksTest {
 protected:
  using Results = std::map<std::pair<std::size_t, taccRedOp_t>, std::vector<float>>;

  /// Of all ranks' drawn numbers, exactly; an average is divided before it is rounded. For all ranks together, which
  /// are made afterwards: where each drew the numbers of all, that took longer than the calls.
  Results exact(const std::vector<std::size_t>& counts, const std::vector<taccRedOp_t>& ops) const {
    Results results;
    for (const std::size_t count : counts)
      for (int rank = 0; rank < ranks(); ++rank) {
        const std::vector<float> values = drawn(static_cast<std::uint64_t>(rank), count);
        for (const taccRedOp_t op : ops) {
          std::vector<float>& result = results[{count, op}];
          if (rank == 0) result = values;
          for (std::size_t i = 0; rank > 0 && i < count; ++i) result[i] = combine(op, result[i], values[i]);
        }
      }
    for (auto& [of, result] : results)
      for (float& value : result) value /= of.second == taccAvg ? static_cast<float>(ranks()) : 1.0f;
    return results;
  }
};

std::vector<std::uint16_t> allReduce(taccComm_t comm, int rank, taccDataType_t type, std::size_t count, taccRedOp_t op,
                                     bool inPlace) {
  std::vector<std::uint16_t> in = narrow(type, drawn(static_cast<std::uint64_t>(rank), count)), out(count);
  if (inPlace) out = in;
  expectSuccess(taccAllReduce(inPlace ? out.data() : in.data(), out.data(), count, type, op, comm, nullptr), comm);
  return out;
}

TEST_P(HalfWidth, sumsAreRoundedOnce) {
  const Results results = exact({1, 7, 1000, 100'003, 600'001}, {taccSum, taccAvg, taccMax, taccMin});
  runOnHosts(fourHosts(hostMbit), hosts(), [&](taccComm_t comm, int rank) {
    for (const auto& [of, result] : results)
      for (const taccDataType_t type : halfTypes) {
        const auto [count, op] = of;
        const std::vector<std::uint16_t> got = allReduce(comm, rank, type, count, op, op == taccMax);
        EXPECT_EQ(got, narrow(type, result)) << count << " elements, type " << type << ", op " << op;
      }
  });
}

/// More than goes together in one pass.
TEST_P(HalfWidth, longVectors) {
  constexpr std::size_t count = 9'000'001;
  const std::vector<std::uint16_t> sums = narrow(taccBfloat16, exact({count}, {taccSum}).begin()->second);
  runOnHosts(fourHosts(), hosts(), [&](taccComm_t comm, int rank) {
    EXPECT_EQ(allReduce(comm, rank, taccBfloat16, count, taccSum, true), sums);
  });
}

/// The two parts, whose prices together are about that of a call of as many bytes as both move.
TEST_P(HalfWidth, isExplainedPartByPart) {
  runOnHosts(fourHosts(hostMbit), hosts(), [&](taccComm_t comm, int) {
    constexpr std::size_t numbers = 2'000'000;
    const auto explained = [&](std::size_t bytes) { return std::string(taccExplain(comm, "allreduce", bytes)); };
    const auto microseconds = [](const std::string& text, const std::string& behind) {
      const std::size_t at = text.find(behind);
      return at == std::string::npos ? 0.0 : std::strtod(text.c_str() + at + behind.size(), nullptr);
    };
    const std::string text = explained(numbers * 2);
    const double sums = microseconds(text, "reduce-scatter of 8000000 bytes of float32, ");
    const double results = microseconds(text, "allgather of 4000000 bytes of 16 bits, ");
    EXPECT_GT(results, 0) << text;
    EXPECT_GT(sums, results) << text;
    // The chosen one is marked, and its time follows its name.
    const std::string both = explained(numbers * 3);
    const std::size_t chosen = both.find("->");
    ASSERT_NE(chosen, std::string::npos) << both;
    std::istringstream line(both.substr(chosen + 2));
    std::string name;
    double whole = 0;
    line >> name >> whole;
    EXPECT_GT(sums + results, 0.9 * whole) << text << both;
    EXPECT_LT(sums + results, 1.5 * whole) << text << both;
    EXPECT_NE(explained(8).find("4 numbers of 16 bits: as 16 bytes of float32"), std::string::npos) << explained(8);
  });
}

/// As 16 bits partial sums are rounded at each hop: near the sum, the same on all ranks, and exact where 16 bits hold
/// them.
TEST_P(HalfWidth, partialSumsOf16Bits) {
  taccConfig_t config = TACC_CONFIG_INITIALIZER;
  config.halfPartialSums = 1;
  const Results results = exact({1, 1000, 300'001}, {taccSum, taccAvg, taccMax});
  runOnHosts(
      fourHosts(hostMbit), hosts(),
      [&](taccComm_t comm, int rank) {
        for (const auto& [of, sums] : results)
          for (const taccDataType_t type : halfTypes) {
            const auto [count, op] = of;
            const std::vector<std::uint16_t> got = allReduce(comm, rank, type, count, op, op == taccAvg);
            if (op == taccMax) {
              EXPECT_EQ(got, narrow(type, sums));
            }
            std::vector<float> values(count);
            widenToFloat(type, values.data(), got.data(), count);
            // Half a unit in the last place of the greatest partial sum, for each of the roundings.
            const float unit = 2.0f * static_cast<float>(ranks()) * (type == taccBfloat16 ? 0x1p-8f : 0x1p-11f);
            std::size_t far = 0;
            for (std::size_t i = 0; i < count; ++i)
              far += std::abs(values[i] - sums[i]) > unit * static_cast<float>(ranks()) ? 1 : 0;
            EXPECT_EQ(far, 0u) << count << " elements, type " << type << ", op " << op;
            std::vector<std::uint16_t> first = got;
            expectSuccess(taccBcast(first.data(), count * 2, taccUint8, 0, comm, nullptr), comm);
            EXPECT_EQ(first, got);
            std::vector<std::uint16_t> ones = narrow(type, std::vector<float>(count, 1));
            expectSuccess(taccAllReduce(ones.data(), ones.data(), count, type, taccSum, comm, nullptr), comm);
            EXPECT_EQ(ones, narrow(type, std::vector<float>(count, static_cast<float>(ranks()))));
          }
      },
      config);
}

TEST(HalfPartialSums, mustBeEqualOnAllRanks) {
  runRanks(RankKind::processes, 2, [](taccComm_t comm, int rank) {
    taccConfig_t config = TACC_CONFIG_INITIALIZER;
    config.halfPartialSums = rank;
    taccComm_t part = nullptr;
    EXPECT_EQ(taccCommSplit(comm, 0, rank, &part, &config), taccInvalidUsage);
    EXPECT_NE(std::string(taccGetLastError(comm)).find("halfPartialSums"), std::string::npos) << taccGetLastError(comm);
  });
}

/// What this host has sent, by all its interfaces.
double sentBytes() {
  std::ifstream table("/proc/self/net/dev");
  double sum = 0;
  for (std::string line; std::getline(table, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.find(" lo:") != std::string::npos) continue;
    double fields[9] = {};
    const char* at = line.c_str() + colon + 1;
    for (double& field : fields) {
      char* end = nullptr;
      field = std::strtod(at, &end);
      at = end;
    }
    sum += fields[8];
  }
  return sum;
}

TEST_P(HalfWidth, moveFewerBytesThanFloats) {
  for (const bool partial : {false, true}) {
    taccConfig_t config = TACC_CONFIG_INITIALIZER;
    config.halfPartialSums = partial ? 1 : 0;
    config.dynamic = 0;
    runOnHosts(
        fourHosts(hostMbit), hosts(),
        [&](taccComm_t comm, int rank) {
          constexpr std::size_t count = 2'000'000;
          std::vector<float> numbers(count, 1);
          const auto bytesOf = [&](taccDataType_t type) {
            double bytes = 0;
            // The first call makes the connections.
            for (int turn = 0; turn < 2; ++turn) {
              expectSuccess(taccBarrier(comm, nullptr), comm);
              const double before = sentBytes();
              expectSuccess(taccAllReduce(numbers.data(), numbers.data(), count, type, taccSum, comm, nullptr), comm);
              expectSuccess(taccBarrier(comm, nullptr), comm);
              bytes = sentBytes() - before;
            }
            return bytes;
          };
          // Of the host that sends most.
          double bytes[] = {bytesOf(taccFloat32), bytesOf(taccBfloat16)};
          expectSuccess(taccAllReduce(bytes, bytes, 2, taccFloat64, taccMax, comm, nullptr), comm);
          EXPECT_LT(bytes[1] / bytes[0], partial ? 0.55 : 0.78);
          if (rank == 0) std::printf("%.2f of the bytes of floats\n", bytes[1] / bytes[0]);
        },
        config);
  }
}

INSTANTIATE_TEST_SUITE_P(Placements, HalfWidth, usualLayouts(), layoutName);

}  // namespace
}  // namespace tacc::test

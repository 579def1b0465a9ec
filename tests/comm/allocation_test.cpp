// A rank whose memory runs out inside a call: whichever allocation it is that fails, all ranks know within a second.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "allocation_fault.hpp"
#include "fault_team.hpp"
#include "support/host_ranks_test.hpp"

namespace tacc::test {
namespace {

constexpr std::size_t large = 300'000;  // elements
const double promptSeconds = isQuick() ? 8 : 2;
constexpr double patience = 30;  // the time-out, which nobody may come to

/// What is sent. Of the process that the ranks are forked from: to fill memory of their own took them longer than their
/// calls.
std::vector<float>& ones() {
  static std::vector<float> all(large, 1.0f);
  return all;
}

struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};

/// What a call has beside its communicator.
struct Things {
  taccComm_t comm = nullptr;
  taccComm_t made = nullptr;
  taccStream_t stream = nullptr;
  taccBucket_t bucket = nullptr;
  // Zeros, touched where a call writes only.
  std::unique_ptr<void, Freed> received{std::calloc(4 * large, sizeof(float))};
  void* memory = nullptr;  // library memory
  float* out() const { return static_cast<float*>(received.get()); }
  float* library() const { return static_cast<float*>(memory); }
};

/// A call and its check. `run` returns the first error of all its parts.
struct Case {
  const char* name;
  bool isRepeated;  // once without a fault before
  taccResult_t (*run)(Things& has, int rank, int ranks);
  bool (*isRight)(const Things& has, int rank, int ranks);
};

bool isSummed(const float* data, std::size_t count, int ranks) {
  return std::all_of(data, data + count, [&](float value) { return value == static_cast<float>(ranks); });
}

taccResult_t allReduce(Things& has, std::size_t count, taccStream_t stream = nullptr) {
  return taccAllReduce(ones().data(), has.out(), count, taccFloat32, taccSum, has.comm, stream);
}

/// The first of two errors.
taccResult_t either(taccResult_t first, taccResult_t second) { return first != taccSuccess ? first : second; }

template <std::size_t count>
taccResult_t plain(Things& has, int, int) {
  return allReduce(has, count);
}
template <std::size_t count>
bool isPlainRight(const Things& has, int, int ranks) {
  return isSummed(has.out(), count, ranks);
}

taccResult_t inLibraryMemory(Things& has, int, int) {
  std::fill_n(has.library(), large, 1.0f);
  return taccAllReduce(has.library(), has.library(), large, taccFloat32, taccSum, has.comm, nullptr);
}
bool isLibraryRight(const Things& has, int, int ranks) { return isSummed(has.library(), large, ranks); }

taccResult_t halfWidth(Things& has, int, int) {
  return taccAllReduce(ones().data(), has.out(), large, taccFloat16, taccMax, has.comm, nullptr);
}
taccResult_t broadcast(Things& has, int rank, int) {
  has.out()[0] = rank == 1 ? 7.0f : 0.0f;
  return taccBcast(has.out(), large, taccFloat32, 1, has.comm, nullptr);
}
taccResult_t exchange(Things& has, int rank, int ranks) {
  taccResult_t result = taccGroupStart();
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == rank) continue;
    result = either(result, taccSend(ones().data(), large / 8, taccFloat32, peer, has.comm, nullptr));
    result = either(result, taccRecv(has.out() + static_cast<std::size_t>(peer) * large, large / 8, taccFloat32, peer,
                                     has.comm, nullptr));
  }
  return either(result, taccGroupEnd());
}
taccResult_t onStream(Things& has, int, int) {
  const taccResult_t result = allReduce(has, 1000, has.stream);
  return either(result, taccStreamSynchronize(has.stream));
}
taccResult_t fused(Things& has, int, int) {
  taccResult_t result = taccGroupStart();
  for (std::size_t i = 0; i < 5; ++i)
    result = either(result, taccAllReduce(ones().data() + 100 * i, has.out() + 100 * i, 100, taccFloat32, taccSum,
                                          has.comm, nullptr));
  return either(result, taccGroupEnd());
}
taccResult_t fusedOnStream(Things& has, int, int) {
  taccResult_t result = taccGroupStart();
  for (std::size_t i = 0; i < 5; ++i)
    result = either(result, taccAllReduce(ones().data() + 100 * i, has.out() + 100 * i, 100, taccFloat32, taccSum,
                                          has.comm, has.stream));
  result = either(result, taccGroupEnd());
  return either(result, taccStreamSynchronize(has.stream));
}
taccResult_t bucket(Things& has, int, int) {
  std::fill_n(has.out(), 2000, 1.0f);
  taccResult_t result = taccSuccess;
  for (std::size_t i = 0; i < 20; ++i)
    result = either(result, taccBucketAdd(has.bucket, has.out() + 100 * i, 100, taccFloat32, taccSum));
  result = either(result, taccBucketFlush(has.bucket));
  return either(result, taccStreamSynchronize(has.stream));
}
taccResult_t split(Things& has, int rank, int) { return taccCommSplit(has.comm, 0, rank, &has.made, nullptr); }
taccResult_t group(Things& has, int, int ranks) {
  std::array<int, 8> turned{};  // allocates nothing itself
  for (int i = 0; i < ranks; ++i) turned[static_cast<std::size_t>(i)] = ranks - 1 - i;
  return taccCommCreateGroup(has.comm, turned.data(), ranks, &has.made, nullptr);
}

/// Local: the rank whose registration fails may go on, and so may the others.
taccResult_t registration(Things& has, int, int) {
  void* handle = nullptr;
  const taccResult_t registered = taccCommRegister(has.comm, ones().data(), large * sizeof(float), &handle);
  const taccResult_t result = allReduce(has, large);
  if (registered == taccSuccess) (void)taccCommDeregister(has.comm, handle);
  return either(result, registered);
}

const Case cases[] = {
    {"small", false, plain<4>, isPlainRight<4>},
    {"eager", false, plain<2000>, isPlainRight<2000>},
    {"large", false, plain<large>, isPlainRight<large>},
    {"largeAgain", true, plain<large>, isPlainRight<large>},
    {"library", false, inLibraryMemory, isLibraryRight},
    {"halfWidth", false, halfWidth, [](const Things&, int, int) { return true; }},
    {"broadcast", false, broadcast, [](const Things& has, int, int) { return has.out()[0] == 7.0f; }},
    {"exchange", false, exchange,
     [](const Things& has, int rank, int ranks) {
       return has.out()[static_cast<std::size_t>((rank + 1) % ranks) * large] == 1.0f;
     }},
    {"stream", false, onStream, isPlainRight<1000>},
    {"fused", false, fused, isPlainRight<500>},
    {"fusedOnStream", false, fusedOnStream, isPlainRight<500>},
    {"bucket", false, bucket, isPlainRight<2000>},
    {"split", false, split, [](const Things& has, int, int) { return has.made != nullptr; }},
    {"group", false, group, [](const Things& has, int, int) { return has.made != nullptr; }},
    {"registration", false, registration, isPlainRight<large>},
};

struct Fault {
  Case of;
  Layout layout;
  bool isLasting;  // no memory from then on, until the call has returned
};

/// The first ones all, later ones less and less unless TACC_TEST_THOROUGH is set: a large call makes 150. Choosing an
/// algorithm makes thousands, all alike.
long stepAfter(long number) {
  constexpr long ofCall = 200;
  if (std::getenv("TACC_TEST_THOROUGH") != nullptr) return 1;
  return number < ofCall ? 1 + number / 4 : number;
}

class OutOfMemory : public testing::TestWithParam<Fault> {
 protected:
  static void SetUpTestSuite() {
    obstacle_ = VirtualCluster::obstacle();
    ones();  // before the ranks are forked
    if (obstacle_.empty()) cluster_ = std::make_unique<VirtualCluster>(1, 3);
  }
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override {
    if (cluster_ == nullptr) GTEST_SKIP() << obstacle_;
  }

  static inline std::string obstacle_;
  static inline std::unique_ptr<VirtualCluster> cluster_;
};

/// Makes the call, with the `number`-th allocation of rank `injured` failing.
void runFault(const Fault& fault, const taccUniqueId& id, int rank, int injured, long number, Report& report) {
  const int ranks = static_cast<int>(fault.layout.hosts.size());
  Things has;
  has.comm = joinTeam(id, ranks, rank, configOf(20, patience));
  if (has.comm == nullptr) return;
  EXPECT_EQ(taccStreamCreate(&has.stream), taccSuccess);
  EXPECT_EQ(taccBucketCreate(&has.bucket, has.comm, has.stream, 4096), taccSuccess);
  EXPECT_EQ(taccMemAlloc(&has.memory, large * sizeof(float)), taccSuccess);
  EXPECT_EQ(taccBarrier(has.comm, nullptr), taccSuccess) << taccGetLastError(has.comm);
  if (fault.of.isRepeated) {
    EXPECT_EQ(fault.of.run(has, rank, ranks), taccSuccess) << taccGetLastError(has.comm);
  }
  // A failure overtakes what slower ranks still do: they must be through with the calls before.
  report.stage = 1;
  const Report* const all = &report - rank;
  while (std::any_of(all, all + ranks, [](const Report& one) { return one.stage < 1; })) std::this_thread::yield();
  report.start = now();
  if (rank == injured) failAllocation(number, fault.isLasting);
  report.result = fault.of.run(has, rank, ranks);
  const long made = countAllocations();
  failAllocation(0);
  report.end = now();
  report.setMessage(taccGetLastError(has.comm));
  if (rank == injured) report.value = made >= number ? 1 : 0;
  if (report.result == taccSuccess) {
    EXPECT_TRUE(fault.of.isRight(has, rank, ranks)) << "rank " << rank;
  }
  // Others may have ended their call before; the next one tells them.
  const taccResult_t next = taccBarrier(has.comm, nullptr);
  report.laterSeconds = now() - report.end;
  if (report.result == taccSuccess && next != taccSuccess) report.setMessage(taccGetLastError(has.comm));
  report.later = next;
  EXPECT_EQ(taccCommGetAsyncError(has.comm, &report.async), taccSuccess);
  (void)taccBucketDestroy(has.bucket);
  (void)taccStreamDestroy(has.stream);
  EXPECT_EQ(taccMemFree(has.memory), taccSuccess);
  if (has.made != nullptr) {
    if (next == taccSuccess) {
      EXPECT_EQ(taccCommDestroy(has.made), taccSuccess);
    } else {
      EXPECT_EQ(taccCommAbort(has.made), taccSuccess);
    }
  }
  EXPECT_EQ(taccCommDestroy(has.comm), taccSuccess) << taccGetLastError(nullptr);
}

TEST_P(OutOfMemory, isToldToAll) {
  const Fault& fault = GetParam();
  const int ranks = static_cast<int>(fault.layout.hosts.size());
  double longest = 0;
  long number = 1, tried = 0;
  for (bool isReached = true; isReached && !HasFailure(); number += stepAfter(number)) {
    ++tried;
    const int injured = static_cast<int>(number % ranks);
    Team team(*cluster_, fault.layout.hosts, [&](const taccUniqueId& id, int rank, Report& report) {
      runFault(fault, id, rank, injured, number, report);
    });
    team.join(-1, patience);
    isReached = team.report(injured).value != 0;
    const bool hasFailed = team.report(injured).later != taccSuccess;
    for (int rank = 0; rank < ranks; ++rank) {
      const Report& report = team.report(rank);
      const std::string where = fmt::format("allocation {} of rank {}; rank {}: {} {}", number, injured, rank,
                                            static_cast<int>(report.result), static_cast<const char*>(report.message));
      EXPECT_LT(report.end - report.start + report.laterSeconds, promptSeconds) << where;
      longest = std::max(longest, report.end - report.start + report.laterSeconds);
      EXPECT_EQ(report.later != taccSuccess, hasFailed) << where;
      EXPECT_EQ(report.async != taccSuccess, hasFailed) << where;
      if (!hasFailed) {
        EXPECT_TRUE(report.result == taccSuccess || (rank == injured && report.result == taccSystemError)) << where;
        continue;
      }
      EXPECT_TRUE(isReached) << where;
      if (rank == injured) {
        EXPECT_NE(std::string(report.message).find("memory"), std::string::npos) << where;
        EXPECT_EQ(report.async, taccSystemError) << where;
      } else {
        EXPECT_TRUE(report.result == taccRemoteError || report.result == taccSuccess) << where;
        EXPECT_EQ(report.async, taccRemoteError) << where;
        EXPECT_NE(std::string(report.message).find(fmt::format("rank {}", injured)), std::string::npos) << where;
        EXPECT_NE(std::string(report.message).find("memory"), std::string::npos) << where;
      }
    }
  }
  std::printf("%ld allocations failed in turn; all knew after %.3f s at most\n", tried - 1, longest);
}

/// Of a rank that joins: nobody else knows it yet.
void runJoining(const Layout& layout, const taccUniqueId& id, int rank, int injured, long number, Report& report) {
  const taccConfig_t config = configOf(20, patience);
  taccComm_t comm = nullptr;
  report.start = now();
  if (rank == injured) failAllocation(number);
  report.result = taccCommInitRankConfig(&comm, static_cast<int>(layout.hosts.size()), id, rank, &config);
  if (rank == injured) report.value = countAllocations() >= number ? 1 : 0;
  failAllocation(0);
  report.setMessage(taccGetLastError(nullptr));
  if (comm != nullptr) {
    report.result = report.later = taccBarrier(comm, nullptr);
    report.setMessage(taccGetLastError(comm));
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  }
  report.end = now();
}

class OutOfMemoryAtInit : public OutOfMemory {};

TEST_P(OutOfMemoryAtInit, isToldToAll) {
  constexpr double joinSeconds = 10;  // a rank that could not join comes to say so
  const Layout& layout = GetParam().layout;
  const int ranks = static_cast<int>(layout.hosts.size());
  double longest = 0;
  long number = 1, tried = 0;
  for (bool isReached = true; isReached && !HasFailure(); number += stepAfter(number), ++tried) {
    const int injured = static_cast<int>(tried % ranks);
    Team team(*cluster_, layout.hosts, [&](const taccUniqueId& id, int rank, Report& report) {
      runJoining(layout, id, rank, injured, number, report);
    });
    team.join(-1, patience);
    isReached = team.report(injured).value != 0;
    const bool hasFailed = team.report(injured).result != taccSuccess;
    for (int rank = 0; rank < ranks; ++rank) {
      const Report& report = team.report(rank);
      const std::string where = fmt::format("allocation {} of rank {}; rank {}: {} {}", number, injured, rank,
                                            static_cast<int>(report.result), static_cast<const char*>(report.message));
      EXPECT_LT(report.end - report.start, joinSeconds) << where;
      longest = std::max(longest, report.end - report.start);
      EXPECT_EQ(report.result != taccSuccess, hasFailed) << where;
      if (!hasFailed || rank == injured) continue;
      EXPECT_EQ(report.result, taccRemoteError) << where;
      // Of those that had joined already, one may see another leave because of it before it hears why.
      if (report.later != taccSuccess) continue;
      EXPECT_NE(std::string(report.message).find(fmt::format("rank {}", injured)), std::string::npos) << where;
    }
  }
  std::printf("%ld allocations failed in turn; all knew after %.3f s at most\n", tried - 1, longest);
}

std::vector<Fault> faults() {
  std::vector<Fault> all;
  for (const Layout& layout : {Layout{"oneHost", {1, 1}}, Layout{"twoHosts", {1, 2}}, Layout{"blocks", {1, 1, 2, 2}}})
    for (const Case& one : cases)
      for (const bool isLasting : {false, true}) all.push_back({one, layout, isLasting});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Calls, OutOfMemory, testing::ValuesIn(faults()),
                         [](const testing::TestParamInfo<Fault>& suite) {
                           return std::string(suite.param.of.name) + "_" + suite.param.layout.name +
                                  (suite.param.isLasting ? "_lasting" : "");
                         });

INSTANTIATE_TEST_SUITE_P(Layouts, OutOfMemoryAtInit,
                         testing::Values(Fault{{}, {"oneHost", {1, 1}}, false}, Fault{{}, {"twoHosts", {1, 2}}, false},
                                         Fault{{}, {"blocks", {1, 1, 2, 2}}, false},
                                         Fault{{}, {"threeHosts", {1, 2, 3}}, false}),
                         [](const testing::TestParamInfo<Fault>& suite) { return suite.param.layout.name; });

}  // namespace
}  // namespace tacc::test

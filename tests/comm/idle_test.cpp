// The program's function that is called while a call waits (taccConfig_t.idle): rank 1 comes only when rank 0's has
// been called often enough, so a wait that does not call it never ends.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "rank_harness.hpp"

namespace tacc::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t callsUntilRelease = 100;

/// Of rank 0: when its function was called in the present wait, and how it lets rank 1 go.
struct Watch {
  int ends[2] = {-1, -1};
  bool isRankZeros = false;  // rank 1 waits too, now and then
  std::vector<Clock::time_point> calls;
};

void countCall(void* context) {
  auto& watch = *static_cast<Watch*>(context);
  if (!watch.isRankZeros) return;
  watch.calls.push_back(Clock::now());
  if (watch.calls.size() == callsUntilRelease) (void)!write(watch.ends[1], "", 1);
}

/// In microseconds, in order of size.
std::vector<double> gaps(const std::vector<Clock::time_point>& calls) {
  std::vector<double> all;
  for (std::size_t i = 1; i < calls.size(); ++i)
    all.push_back(std::chrono::duration<double, std::micro>(calls[i] - calls[i - 1]).count());
  std::ranges::sort(all);
  return all;
}

struct Waiting {
  const char* name;
  const char* variable;  // that makes ranks of one host wait in this way
  const char* value;
};

class Idle : public testing::TestWithParam<Waiting> {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(watch_.ends), 0);
    ASSERT_EQ(setenv(GetParam().variable, GetParam().value, 1), 0);
  }
  void TearDown() override {
    unsetenv(GetParam().variable);
    close(watch_.ends[0]);
    close(watch_.ends[1]);
  }

  /// Rank 0 makes the call at once, the others when it has waited in it.
  void expectCalled(const std::function<taccResult_t(taccComm_t)>& call) {
    taccConfig_t config = TACC_CONFIG_INITIALIZER;
    config.idle = countCall;
    config.idleContext = &watch_;
    runRanks(
        RankKind::processes, 2,
        [&](taccComm_t comm, int rank) {
          watch_.isRankZeros = rank == 0;
          for (int round = 0; round < 3; ++round) {
            watch_.calls.clear();
            char released = 0;
            ASSERT_EQ(rank == 1 ? read(watch_.ends[0], &released, 1) : 1, 1);
            expectSuccess(call(comm), comm);
            if (rank == 0) expectRate();
          }
        },
        config);
  }

  Watch watch_;

 private:
  void expectRate() const {
    ASSERT_GE(watch_.calls.size(), callsUntilRelease);
    const std::vector<double> all = gaps(watch_.calls);
    EXPECT_GE(all.front(), 20) << "us between two calls";
    // On a core with others a yield may last for their slices.
    EXPECT_LT(all[all.size() / 4], 15000) << "us between two calls, in a quarter of them; meant is 1000 at most";
  }
};

TEST_P(Idle, barrierCallsItWhileItWaits) {
  expectCalled([](taccComm_t comm) { return taccBarrier(comm, nullptr); });
}

TEST_P(Idle, smallAllReduceCallsItWhileItWaits) {
  expectCalled([](taccComm_t comm) {
    float number = 1;
    return taccAllReduce(&number, &number, 1, taccFloat32, taccSum, comm, nullptr);
  });
}

TEST_P(Idle, largeAllReduceCallsItWhileItWaits) {
  expectCalled([](taccComm_t comm) {
    std::vector<float> numbers(1 << 20, 1);
    return taccAllReduce(numbers.data(), numbers.data(), numbers.size(), taccFloat32, taccSum, comm, nullptr);
  });
}

TEST_P(Idle, receiverOfABroadcastCallsItWhileItWaits) {
  expectCalled([](taccComm_t comm) {
    std::vector<char> bytes(100'000);
    return taccBcast(bytes.data(), bytes.size(), taccInt8, 1, comm, nullptr);
  });
}

TEST_P(Idle, receiverOfAMessageCallsItWhileItWaits) {
  expectCalled([](taccComm_t comm) {
    int rank = 0;
    taccCommUserRank(comm, &rank);
    std::vector<char> bytes(1 << 20);
    return rank == 0 ? taccRecv(bytes.data(), bytes.size(), taccInt8, 1, comm, nullptr)
                     : taccSend(bytes.data(), bytes.size(), taccInt8, 0, comm, nullptr);
  });
}

INSTANTIATE_TEST_SUITE_P(Waits, Idle,
                         testing::Values(Waiting{"asleep", "TACC_SPIN", "0"},
                                         Waiting{"spinning", "TACC_SPIN", "1000000"},
                                         Waiting{"network", "TACC_SHM", "off"}),
                         [](const testing::TestParamInfo<Waiting>& waiting) {
                           return std::string(waiting.param.name);
                         });

/// Whoever spins for a second does not put it off until then.
TEST(IdleSpinning, callsItLongBeforeTheEnd) {
  ASSERT_EQ(setenv("TACC_SPIN", "1000000", 1), 0);
  Watch watch;
  ASSERT_EQ(pipe(watch.ends), 0);
  taccConfig_t config = TACC_CONFIG_INITIALIZER;
  config.idle = countCall;
  config.idleContext = &watch;
  runRanks(
      RankKind::processes, 2,
      [&](taccComm_t comm, int rank) {
        char released = 0;
        watch.isRankZeros = rank == 0;
        ASSERT_EQ(rank == 1 ? read(watch.ends[0], &released, 1) : 1, 1);
        const auto start = Clock::now();
        expectSuccess(taccBarrier(comm, nullptr), comm);
        if (rank == 1) return;
        ASSERT_GE(watch.calls.size(), callsUntilRelease);
        EXPECT_LT(std::chrono::duration<double>(watch.calls[10] - start).count(), 0.5);
      },
      config);
  unsetenv("TACC_SPIN");
}

}  // namespace
}  // namespace tacc::test

// What EASGD refuses, and how it says so; and what happens when ranks fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "comm/rank_harness.hpp"
#include "easgd/modes.hpp"
#include "support/child_process.hpp"
#include "training.hpp"

extern "C" int easgdHeaderIsC(taccComm_t comm);

namespace tacc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

taccEasgdConfig_t changed(const std::function<void(taccEasgdConfig_t&)>& change) {
  taccEasgdConfig_t config = TACC_EASGD_CONFIG_INITIALIZER;
  change(config);
  return config;
}

/// A number that C++ has not in the enumeration, as a C program may give it.
template <class Enum>
void put(Enum& field, int value) {
  static_assert(sizeof field == sizeof value);
  std::memcpy(static_cast<void*>(&field), &value, sizeof value);
}

TEST(EasgdArguments, configurationsThatAreWrong) {
  const std::pair<taccEasgdConfig_t, std::string> cases[] = {
      {changed([](auto& c) { c.size = 3; }), "TACC_EASGD_CONFIG_INITIALIZER"},
      {changed([](auto& c) { put(c.mode, 9); }), "config.mode is 9; modes are 0 to 8"},
      {changed([](auto& c) { put(c.mode, -1); }), "config.mode is -1"},
      {changed([](auto& c) { c.period = 0; }), "config.period is 0"},
      {changed([](auto& c) { c.elasticity = -0.1f; }), "config.elasticity is -0.1"},
      {changed([](auto& c) { c.elasticity = std::nanf(""); }), "config.elasticity is nan"},
      {changed([](auto& c) { c.learningRate = 0; }), "config.learningRate is 0"},
      {changed([](auto& c) { c.learningRate = std::numeric_limits<float>::infinity(); }), "config.learningRate is inf"},
      {changed([](auto& c) { c.momentum = 1; }), "config.momentum is 1"},
      {changed([](auto& c) { put(c.wire, 3); }), "config.wire is 3"},
      {changed([](auto& c) {
         c.mode = taccEasgdSync1;
         c.wire = taccEasgdWireBfloat16;
       }),
       "mode sync1 has not; sync2, sync3 and hierarchical have"},
      {changed([](auto& c) { put(c.servers, 2); }), "config.servers is 2"},
      {changed([](auto& c) { c.servers = taccEasgdServerPerHost; }), "mode sync2 has none; async and hogwild have"},
      {changed([](auto& c) { put(c.group, 4); }), "config.group is 4"},
      {changed([](auto& c) {
         c.group = taccEasgdGroupColor;
         c.color = -1;
       }),
       "config.color is -1"},
      // 2 ranks, alpha 0.01 * 60
      {changed([](auto& c) { c.elasticity = 60; }), "An elasticity of at most 50 is stable"},
  };
  runRanks(RankKind::threads, 2, [&](taccComm_t comm, int) {
    std::vector<float> weights(10);
    for (const auto& [config, sentence] : cases) {
      taccEasgd_t easgd = nullptr;
      EXPECT_EQ(taccEasgdCreate(&easgd, weights.data(), 10, comm, &config), taccInvalidArgument) << sentence;
      EXPECT_THAT(taccGetLastError(comm), HasSubstr(sentence));
      EXPECT_EQ(easgd, nullptr);
    }
    taccEasgd_t easgd = nullptr;
    const taccEasgdConfig_t allowed = changed([](auto& c) {
      c.elasticity = 60;
      c.allowUnstable = 1;
    });
    expectSuccess(taccEasgdCreate(&easgd, weights.data(), 10, comm, &allowed), comm);
    expectSuccess(taccEasgdDestroy(easgd), comm);
    // Two ranks one after the other are stable where two at once are not.
    const taccEasgdConfig_t original = changed([](auto& c) {
      c.elasticity = 60;
      c.mode = taccEasgdOriginal;
    });
    expectSuccess(taccEasgdCreate(&easgd, weights.data(), 10, comm, &original), comm);
    expectSuccess(taccEasgdDestroy(easgd), comm);
  });
}

/// The first version's configuration ended before `servers`: what lies behind it is not read.
TEST(EasgdArguments, fieldsThatAnOlderHeaderLacksGetTheirDefaults) {
  runRanks(RankKind::threads, 2, [&](taccComm_t comm, int) {
    std::vector<float> weights(10);
    const taccEasgdConfig_t older = changed([](auto& c) {
      c.size = offsetof(taccEasgdConfig_t, servers);
      put(c.servers, 77);
    });
    taccEasgd_t easgd = nullptr;
    expectSuccess(taccEasgdCreate(&easgd, weights.data(), 10, comm, &older), comm);
    expectSuccess(taccEasgdDestroy(easgd), comm);
  });
}

TEST(EasgdArguments, theHeaderIsPlainC) {
  runRanks(RankKind::threads, 1, [&](taccComm_t comm, int) { EXPECT_EQ(easgdHeaderIsC(comm), 0); });
}

TEST(EasgdArguments, pointersThatAreWrong) {
  runRanks(RankKind::threads, 1, [&](taccComm_t comm, int) {
    std::vector<float> weights(10), gradient(10);
    taccEasgd_t easgd = nullptr;
    EXPECT_EQ(taccEasgdCreate(nullptr, weights.data(), 10, comm, nullptr), taccInvalidArgument);
    EXPECT_EQ(taccEasgdCreate(&easgd, nullptr, 10, comm, nullptr), taccInvalidArgument);
    EXPECT_THAT(taccGetLastError(comm), HasSubstr("weights is NULL"));
    auto* const odd = reinterpret_cast<float*>(reinterpret_cast<char*>(weights.data()) + 1);
    EXPECT_EQ(taccEasgdCreate(&easgd, odd, 9, comm, nullptr), taccInvalidArgument);
    EXPECT_THAT(taccGetLastError(comm), HasSubstr("misaligned"));
    EXPECT_EQ(taccEasgdCreate(&easgd, weights.data(), 10, nullptr, nullptr), taccInvalidArgument);
    expectSuccess(taccEasgdCreate(&easgd, weights.data(), 10, comm, nullptr), comm);
    EXPECT_EQ(taccEasgdStep(easgd, gradient.data()), taccInvalidUsage);
    EXPECT_THAT(taccGetLastError(comm), HasSubstr("taccEasgdStart"));
    expectSuccess(taccEasgdStart(easgd), comm);
    EXPECT_EQ(taccEasgdStep(easgd, nullptr), taccInvalidArgument);
    EXPECT_EQ(taccEasgdStep(easgd, weights.data()), taccInvalidArgument);
    EXPECT_THAT(taccGetLastError(comm), HasSubstr("are the same memory"));
    EXPECT_EQ(taccEasgdStep(easgd, weights.data() + 5), taccInvalidArgument);
    EXPECT_EQ(taccEasgdCenter(easgd, nullptr), taccInvalidArgument);
    EXPECT_EQ(taccEasgdGetTensor(easgd, 0, nullptr, nullptr), taccInvalidUsage);
    EXPECT_EQ(taccEasgdSetLearningRate(easgd, -1), taccInvalidArgument);
    taccEasgdInfo_t info{};
    info.size = 1;
    EXPECT_EQ(taccEasgdInfo(easgd, &info), taccInvalidArgument);
    EXPECT_EQ(taccEasgdSave(easgd, nullptr), taccInvalidArgument);
    taccGroupStart();
    EXPECT_EQ(taccEasgdStep(easgd, gradient.data()), taccInvalidUsage);
    EXPECT_THAT(taccGetLastError(comm), HasSubstr("a group is open"));
    taccGroupEnd();
    expectSuccess(taccEasgdDestroy(easgd), comm);
    EXPECT_EQ(taccEasgdStep(easgd, gradient.data()), taccInvalidArgument);
    EXPECT_EQ(taccEasgdDestroy(nullptr), taccSuccess);
    const size_t counts[] = {SIZE_MAX / 8, SIZE_MAX / 8};
    EXPECT_EQ(taccEasgdCreateTensors(&easgd, counts, 2, comm, nullptr), taccInvalidArgument);
    EXPECT_EQ(taccEasgdCreateTensors(&easgd, counts, 0, comm, nullptr), taccInvalidArgument);
    EXPECT_EQ(taccAllReduceUpdate(gradient.data(), weights.data(), nullptr, 10, 0.1f, 0.9f, comm), taccInvalidArgument);
    EXPECT_THAT(taccGetLastError(comm), HasSubstr("velocity is NULL"));
    EXPECT_EQ(taccAllReduceUpdate(weights.data(), weights.data(), nullptr, 10, 0.1f, 0, comm), taccInvalidArgument);
  });
}

/// What all ranks sum, each for another reason: whoever takes one for another would spoil weights without a word.
TEST(EasgdArguments, callsOfOtherRanksThatAreOthers) {
  const std::vector<std::string> names{"sum", "update", "EASGD exchange"};
  const auto kinds = {RankKind::threads, RankKind::processes};
  for (const RankKind kind : kinds) {
    for (const std::size_t count : {10u, 300'000u}) {
      for (const bool hasVelocity : {false, true}) {
        for (std::size_t first = 0; first < names.size(); ++first) {
          const std::size_t second = (first + 1) % names.size();
          runRanks(kind, 2, [&](taccComm_t comm, int rank) {
            std::vector<float> weights(count, 1), gradient(count, 1), velocity(count);
            taccEasgdConfig_t config = TACC_EASGD_CONFIG_INITIALIZER;
            config.period = 1;
            config.momentum = hasVelocity ? 0.9f : 0.0f;
            taccEasgd_t easgd = nullptr;
            expectSuccess(taccEasgdCreate(&easgd, weights.data(), count, comm, &config), comm);
            expectSuccess(taccEasgdStart(easgd), comm);
            taccResult_t result = taccSuccess;
            switch (rank == 0 ? first : second) {
              case 0:
                result = taccAllReduce(gradient.data(), gradient.data(), count, taccFloat32, taccSum, comm, nullptr);
                break;
              case 1:
                result = taccAllReduceUpdate(gradient.data(), weights.data(), hasVelocity ? velocity.data() : nullptr,
                                             count, 0.1f, hasVelocity ? 0.9f : 0.0f, comm);
                break;
              default:
                result = taccEasgdStep(easgd, gradient.data());
            }
            EXPECT_EQ(result, taccInvalidUsage) << names[first] << " and " << names[second] << " of " << count;
            EXPECT_THAT(taccGetLastError(comm), AllOf(HasSubstr(", " + names[first]), HasSubstr(", " + names[second])));
          });
        }
      }
    }
  }
}

TEST(EasgdArguments, ranksThatDifferAreTold) {
  runRanks(RankKind::processes, 3, [&](taccComm_t comm, int rank) {
    std::vector<float> weights(100);
    taccEasgd_t easgd = nullptr;
    EXPECT_EQ(taccEasgdCreate(&easgd, weights.data(), rank == 2 ? 99 : 100, comm, nullptr), taccInvalidUsage);
    EXPECT_THAT(taccGetLastError(comm), AllOf(HasSubstr("rank 0 has 100 weights"), HasSubstr("rank 2 has 99 weights")));
    const taccEasgdConfig_t config = changed([&](auto& c) { c.period = rank == 1 ? 8 : 4; });
    EXPECT_EQ(taccEasgdCreate(&easgd, weights.data(), 100, comm, &config), taccInvalidUsage);
    EXPECT_THAT(taccGetLastError(comm), AllOf(HasSubstr("period 4"), HasSubstr("rank 1"), HasSubstr("period 8")));
    // The communicator goes on.
    int sum = 1;
    expectSuccess(taccAllReduce(&sum, &sum, 1, taccInt32, taccSum, comm, nullptr), comm);
    EXPECT_EQ(sum, 3);
  });
}

TEST(EasgdFaults, weightsThatAreNotFiniteEndTheExchangeOnAllRanks) {
  for (const EasgdMode& mode : easgdModes()) {
    if (!mode.isSynchronous) continue;
    runRanks(RankKind::processes, 2, [&](taccComm_t comm, int rank) {
      std::vector<float> weights(5000), gradient(5000);
      taccEasgdConfig_t config = changed([&](auto& c) {
        c.mode = mode.mode;
        c.checkFinite = 1;
      });
      taccEasgd_t easgd = nullptr;
      expectSuccess(taccEasgdCreate(&easgd, weights.data(), weights.size(), comm, &config), comm);
      expectSuccess(taccEasgdStart(easgd), comm);
      expectSuccess(taccEasgdStep(easgd, gradient.data()), comm);
      if (rank == 1) gradient[4321] = std::nanf("");
      taccResult_t result = taccSuccess;
      for (int step = 0; step < 5 && result == taccSuccess; ++step) result = taccEasgdStep(easgd, gradient.data());
      EXPECT_NE(result, taccSuccess) << mode.name;
      EXPECT_THAT(taccGetLastError(comm), HasSubstr("weight 4321 is nan")) << mode.name;
      EXPECT_EQ(taccEasgdDestroy(easgd), taccSuccess);
    });
  }
}

/// A rank that dies ends the training of synchronous modes with an error that names it.
TEST(EasgdFaults, aDeadRankIsNamed) {
  for (const EasgdMode& mode : easgdModes()) {
    if (!mode.isSynchronous) continue;
    for (const std::size_t size : {std::size_t{100}, std::size_t{500000}})
      runRanks(RankKind::processes, 3, [&](taccComm_t comm, int rank) {
        std::vector<float> weights(size), gradient(size);
        taccEasgdConfig_t config = changed([&](auto& c) { c.mode = mode.mode; });
        taccEasgd_t easgd = nullptr;
        expectSuccess(taccEasgdCreate(&easgd, weights.data(), size, comm, &config), comm);
        expectSuccess(taccEasgdStart(easgd), comm);
        taccResult_t result = taccSuccess;
        for (int step = 0; step < 1000 && result == taccSuccess; ++step) {
          if (rank == 1 && step == 3) ::_exit(0);
          result = taccEasgdStep(easgd, gradient.data());
        }
        EXPECT_EQ(result, taccRemoteError) << mode.name;
        EXPECT_THAT(taccGetLastError(comm), HasSubstr("rank 1")) << mode.name;
        taccEasgdDestroy(easgd);
      });
  }
}

TEST(EasgdFaults, aHandleOfAParentIsRefusedInItsChild) {
  runRanks(RankKind::processes, 1, [&](taccComm_t comm, int) {
    std::vector<float> weights(100), gradient(100);
    taccEasgd_t easgd = nullptr;
    expectSuccess(taccEasgdCreate(&easgd, weights.data(), 100, comm, nullptr), comm);
    expectSuccess(taccEasgdStart(easgd), comm);
    ChildProcess child([&] { return taccEasgdStep(easgd, gradient.data()) == taccInvalidUsage; });
    EXPECT_EQ(child.wait(), 0);
    expectSuccess(taccEasgdStep(easgd, gradient.data()), comm);
    expectSuccess(taccEasgdDestroy(easgd), comm);
  });
}

}  // namespace
}  // namespace tacc::test

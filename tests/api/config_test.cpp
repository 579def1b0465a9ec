// Making communicators: configurations of all versions and the arguments of the init functions and of split.
#include "api/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>

#include "core/error.hpp"
#include "fake_communicator.hpp"

namespace tacc::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

taccConfig_t goodConfig() {
  taccConfig_t config = TACC_CONFIG_INITIALIZER;
  return config;
}

/// Expects that a communicator cannot be made with this, for a reason that the message gives.
void expectRefused(const taccConfig_t& config, const ::testing::Matcher<std::string>& message) {
  taccComm_t comm = nullptr;
  EXPECT_EQ(taccCommInitRankConfig(&comm, 1, taccUniqueId{}, 0, &config), taccInvalidArgument);
  EXPECT_EQ(comm, nullptr);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), AllOf(HasSubstr("config: "), message));
}

TEST(Config, NullMeansDefaults) {
  const CommConfig config = checkConfig(nullptr);
  EXPECT_EQ(config.initTimeout, 120.0);
  EXPECT_EQ(config.operationTimeout, 600.0);
  EXPECT_TRUE(config.algorithm.empty());
  EXPECT_TRUE(config.name.empty());
  EXPECT_TRUE(config.dynamic);
  EXPECT_FALSE(config.halfPartialSums);
}

TEST(Config, AllFieldsArrive) {
  taccConfig_t config = goodConfig();
  config.initTimeout = 1.5;
  config.operationTimeout = 0.0;
  config.algorithm = "ring";
  config.name = "gradients";
  config.dynamic = 0;
  config.halfPartialSums = 1;
  const CommConfig checked = checkConfig(&config);
  EXPECT_EQ(checked.initTimeout, 1.5);
  EXPECT_EQ(checked.operationTimeout, 0.0);
  EXPECT_EQ(checked.algorithm, "ring");
  EXPECT_EQ(checked.name, "gradients");
  EXPECT_FALSE(checked.dynamic);
  EXPECT_TRUE(checked.halfPartialSums);
}

void doNothing(void* /*context*/) {}

TEST(Config, TheIdleFunctionArrivesAndIsNoneByDefault) {
  EXPECT_EQ(checkConfig(nullptr).idle.function, nullptr);
  taccConfig_t config = goodConfig();
  EXPECT_EQ(checkConfig(&config).idle.function, nullptr);
  config.idle = doNothing;
  config.idleContext = &config;
  EXPECT_EQ(checkConfig(&config).idle.function, doNothing);
  EXPECT_EQ(checkConfig(&config).idle.context, &config);
  config.size = offsetof(taccConfig_t, idle);  // of a header without it: what stands there is something else
  EXPECT_EQ(checkConfig(&config).idle.function, nullptr);
  EXPECT_EQ(checkConfig(&config).idle.context, nullptr);
}

TEST(Config, OlderHeadersKeepTheirFieldsAndGetDefaultsForTheRest) {
  taccConfig_t config = goodConfig();
  config.initTimeout = 7.0;
  config.operationTimeout = 8.0;
  config.algorithm = reinterpret_cast<const char*>(1);  // must not be read: the program's header did not have it
  config.name = config.algorithm;
  config.size = offsetof(taccConfig_t, algorithm);
  EXPECT_EQ(checkConfig(&config).operationTimeout, 8.0);
  EXPECT_EQ(checkConfig(&config).algorithm, "");
  config.size = offsetof(taccConfig_t, operationTimeout);
  EXPECT_EQ(checkConfig(&config).initTimeout, 7.0);
  EXPECT_EQ(checkConfig(&config).operationTimeout, 600.0);
  config.size = offsetof(taccConfig_t, initTimeout);
  EXPECT_EQ(checkConfig(&config).initTimeout, 120.0);
}

TEST(Config, WrongHeadsAreRefused) {
  taccConfig_t config = goodConfig();
  config.magic = 0;
  expectRefused(config, AllOf(HasSubstr("magic"), HasSubstr("TACC_CONFIG_INITIALIZER")));
  config = goodConfig();
  config.size += 8;
  config.version = 200;
  const std::string size = "size " + std::to_string(sizeof(taccConfig_t) + 8);
  expectRefused(config, AllOf(HasSubstr(size), HasSubstr("newer"), HasSubstr("200")));
  config = goodConfig();
  config.size = 4;
  expectRefused(config, HasSubstr("size 4"));
  config = goodConfig();
  config.version = 0;
  expectRefused(config, HasSubstr("version 0"));
  config = goodConfig();
  config.version = 10000 * (TACC_MAJOR + 1);
  expectRefused(config, HasSubstr("version 10000"));
}

TEST(Config, TimeoutsMustBeSensible) {
  for (const double wrong : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    taccConfig_t config = goodConfig();
    config.initTimeout = wrong;
    expectRefused(config, HasSubstr("initTimeout is "));
    config = goodConfig();
    config.operationTimeout = wrong;
    expectRefused(config, HasSubstr("operationTimeout is "));
  }
  taccConfig_t config = goodConfig();
  config.initTimeout = 0.0;
  expectRefused(config, HasSubstr("greater than 0"));
}

TEST(Config, DynamicIsOnOrOff) {
  taccConfig_t config = goodConfig();
  config.dynamic = 2;
  expectRefused(config, HasSubstr("dynamic is 2"));
  config = goodConfig();
  config.halfPartialSums = 2;
  expectRefused(config, HasSubstr("halfPartialSums is 2"));
}

TEST(Init, ArgumentsOfInitRank) {
  taccComm_t comm = nullptr;
  EXPECT_EQ(taccCommInitRank(nullptr, 1, taccUniqueId{}, 0), taccInvalidArgument);
  EXPECT_EQ(std::string(taccGetLastError(nullptr)), "taccCommInitRank: comm is NULL");
  EXPECT_EQ(taccCommInitRank(&comm, 0, taccUniqueId{}, 0), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), HasSubstr("nranks is 0"));
  EXPECT_EQ(taccCommInitRank(&comm, 2, taccUniqueId{}, 2), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), HasSubstr("rank 2"));
  EXPECT_EQ(taccCommInitRank(&comm, 2, taccUniqueId{}, -1), taccInvalidArgument);
  EXPECT_EQ(comm, nullptr);
  ASSERT_EQ(taccCommInitRank(&comm, 1, taccUniqueId{}, 0), taccSuccess);
  EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
}

TEST(Init, WhoStartedTheProcessIsTold) {
  const char* launcher = "none";
  int rank = -1, ranks = -1;
  ASSERT_EQ(unsetenv("TACC_TEST_LAUNCHED"), 0);
  ASSERT_EQ(taccGetLaunch(&launcher, &rank, &ranks), taccSuccess);
  EXPECT_EQ(launcher, nullptr);
  EXPECT_EQ(rank, 0);
  EXPECT_EQ(ranks, 1);
  ASSERT_EQ(setenv("TACC_TEST_LAUNCHED", "1", 1), 0);
  ASSERT_EQ(taccGetLaunch(&launcher, &rank, &ranks), taccSuccess);
  EXPECT_STREQ(launcher, "a launcher");
  EXPECT_EQ(rank, 2);
  EXPECT_EQ(ranks, 3);
  EXPECT_EQ(taccGetLaunch(&launcher, nullptr, nullptr), taccSuccess);
  EXPECT_EQ(taccGetLaunch(nullptr, &rank, &ranks), taccInvalidArgument);
}

TEST(Init, InitEnvJoinsAsTheLauncherSays) {
  taccComm_t comm = nullptr;
  ASSERT_EQ(unsetenv("TACC_TEST_LAUNCHED"), 0);
  EXPECT_EQ(taccCommInitEnv(&comm, nullptr), taccInvalidUsage);
  EXPECT_EQ(std::string(taccGetLastError(nullptr)), "taccCommInitEnv: no launcher");
  ASSERT_EQ(setenv("TACC_TEST_LAUNCHED", "1", 1), 0);
  EXPECT_EQ(taccCommInitEnv(nullptr, nullptr), taccInvalidArgument);
  taccConfig_t config = TACC_CONFIG_INITIALIZER;
  config.magic = 1;
  EXPECT_EQ(taccCommInitEnv(&comm, &config), taccInvalidArgument);
  ASSERT_EQ(taccCommInitEnv(&comm, nullptr), taccSuccess);
  EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  ASSERT_EQ(unsetenv("TACC_TEST_LAUNCHED"), 0);
}

TEST(Init, InitAll) {
  EXPECT_EQ(taccCommInitAll(nullptr, 2, nullptr), taccInvalidArgument);
  taccComm_t comms[3] = {};
  EXPECT_EQ(taccCommInitAll(comms, 0, nullptr), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(nullptr)), HasSubstr("ndev is 0"));
  EXPECT_EQ(comms[0], nullptr);
  ASSERT_EQ(taccCommInitAll(comms, 3, nullptr), taccSuccess);
  for (int i = 0; i < 3; ++i) {
    int rank = -1;
    EXPECT_EQ(taccCommUserRank(comms[i], &rank), taccSuccess);
    EXPECT_EQ(rank, i);
    EXPECT_EQ(taccCommDestroy(comms[i]), taccSuccess);
  }
}

TEST(Init, Split) {
  FakeWorld world;
  CommConfig own;
  own.name = "parent";
  taccComm_t comm = world.make(0, 4, own);
  taccComm_t part = nullptr;
  EXPECT_EQ(taccCommSplit(comm, -2, 0, &part, nullptr), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(comm)), HasSubstr("color is -2"));
  EXPECT_EQ(taccCommSplit(comm, 0, 0, nullptr, nullptr), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(comm)), HasSubstr("newcomm is NULL"));
  taccConfig_t config = goodConfig();
  config.magic = 1;
  EXPECT_EQ(taccCommSplit(comm, 0, 0, &part, &config), taccInvalidArgument);
  EXPECT_TRUE(world.events().empty());
  ASSERT_EQ(taccCommSplit(comm, 1, 3, &part, nullptr), taccSuccess);
  int rank = -1;
  EXPECT_EQ(taccCommUserRank(part, &rank), taccSuccess);
  EXPECT_EQ(rank, 3);
  EXPECT_EQ(world.events().back().config.name, "parent");
  EXPECT_EQ(taccCommDestroy(part), taccSuccess);
  ASSERT_EQ(taccCommSplit(comm, TACC_SPLIT_NOCOLOR, 0, &part, nullptr), taccSuccess);
  EXPECT_EQ(part, nullptr);
  config = goodConfig();
  config.name = "child";
  ASSERT_EQ(taccCommSplit(comm, TACC_SPLIT_NOCOLOR, 0, &part, &config), taccSuccess);
  EXPECT_EQ(world.events().back().config.name, "child");
  EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
}

TEST(Init, Group) {
  FakeWorld world;
  taccComm_t comm = world.make(2, 4, CommConfig());
  const auto refused = [&](const std::vector<int>& ranks, const char* why) {
    taccComm_t group = nullptr;
    EXPECT_EQ(taccCommCreateGroup(comm, ranks.data(), static_cast<int>(ranks.size()), &group, nullptr),
              taccInvalidArgument);
    EXPECT_THAT(std::string(taccGetLastError(comm)), HasSubstr(why));
  };
  refused({}, "is NULL");
  refused({2, 4}, "ranks[1] is 4; it must be in [0, 4)");
  refused({-1, 2}, "ranks[0] is -1");
  refused({2, 3, 2}, "ranks[2] is 2, which is in the list before");
  refused({0, 3}, "the list has no rank 2, which calls");
  const int members[] = {3, 2};
  taccComm_t group = nullptr;
  EXPECT_EQ(taccCommCreateGroup(comm, members, 0, &group, nullptr), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(comm)), HasSubstr("nranks is 0"));
  EXPECT_EQ(taccCommCreateGroup(comm, members, 2000000000, &group, nullptr), taccInvalidArgument);
  EXPECT_THAT(std::string(taccGetLastError(comm)), HasSubstr("nranks is 2000000000, and comm has 4 ranks"));
  EXPECT_EQ(taccCommCreateGroup(comm, members, 2, nullptr, nullptr), taccInvalidArgument);
  EXPECT_TRUE(world.events().empty());
  ASSERT_EQ(taccCommCreateGroup(comm, members, 2, &group, nullptr), taccSuccess);
  int rank = -1, ranks = 0;
  EXPECT_EQ(taccCommUserRank(group, &rank), taccSuccess);
  EXPECT_EQ(taccCommCount(group, &ranks), taccSuccess);
  EXPECT_EQ(rank, 1);
  EXPECT_EQ(ranks, 2);
  EXPECT_EQ(taccCommDestroy(group), taccSuccess);
  EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
}

}  // namespace
}  // namespace tacc::test

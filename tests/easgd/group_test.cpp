// Groups of ranks in Hierarchical: which there are, which are refused, and what a failure in one does to the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <vector>

#include "comm/rank_harness.hpp"
#include "easgd/group_color.hpp"
#include "training.hpp"

namespace tacc::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

cpu_set_t cores(const std::vector<int>& numbers) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int number : numbers) CPU_SET(number, &set);
  return set;
}

/// A chip of four domains that this machine has not, cores dealt round.
int domainOf(const cpu_set_t& set) {
  for (int domain = 0; domain < 4; ++domain)
    for (int core = domain; core < CPU_SETSIZE; core += 4)
      if (CPU_ISSET(core, &set)) return domain;
  return 0;
}

TEST(EasgdGroups, aRankIsInADomainWhereAllItsCoresAre) {
  EXPECT_TRUE(liesInOneDomain(cores({5}), domainOf));
  EXPECT_TRUE(liesInOneDomain(cores({2, 6, 1022}), domainOf));
  EXPECT_FALSE(liesInOneDomain(cores({2, 6, 1023}), domainOf));
  EXPECT_FALSE(liesInOneDomain(cores({0, 1, 2, 3}), domainOf));
}

taccEasgdConfig_t groupedBy(taccEasgdGroup_t group, int color = 0) {
  taccEasgdConfig_t config = TACC_EASGD_CONFIG_INITIALIZER;
  config.mode = taccEasgdHierarchical;
  config.group = group;
  config.color = color;
  return config;
}

TEST(EasgdGroups, aNetworkWithoutLevelsIsRefused) {
  runRanks(RankKind::processes, 2, [](taccComm_t comm, int) {
    std::vector<float> weights(10);
    taccEasgd_t easgd = nullptr;
    const taccEasgdConfig_t config = groupedBy(taccEasgdGroupNetwork);
    EXPECT_EQ(taccEasgdCreate(&easgd, weights.data(), weights.size(), comm, &config), taccInvalidUsage);
    EXPECT_THAT(taccGetLastError(comm), HasSubstr("no level above the hosts that rank 0"));
    // The communicator goes on.
    int sum = 1;
    expectSuccess(taccAllReduce(&sum, &sum, 1, taccInt32, taccSum, comm, nullptr), comm);
    EXPECT_EQ(sum, 2);
  });
}

/// In the slice of another rank too, a weight has its number in the model.
TEST(EasgdGroups, aWeightThatIsNotFiniteIsNamedAndAllAreTold) {
  runRanks(RankKind::processes, 4, [](taccComm_t comm, int rank) {
    std::vector<float> weights(5000), gradient(5000);
    taccEasgdConfig_t config = groupedBy(taccEasgdGroupColor, rank / 2);
    config.checkFinite = 1;
    taccEasgd_t easgd = nullptr;
    expectSuccess(taccEasgdCreate(&easgd, weights.data(), weights.size(), comm, &config), comm);
    expectSuccess(taccEasgdStart(easgd), comm);
    if (rank == 3) gradient[4321] = std::nanf("");
    taccResult_t result = taccSuccess;
    for (int step = 0; step < 5 && result == taccSuccess; ++step) result = taccEasgdStep(easgd, gradient.data());
    EXPECT_NE(result, taccSuccess);
    EXPECT_THAT(taccGetLastError(comm), HasSubstr("weight 4321 is nan"));
    taccEasgdDestroy(easgd);
  });
}

TEST(EasgdGroups, aDeathEndsTheTrainingOfAllGroups) {
  for (const std::size_t count : {std::size_t{100}, std::size_t{500'000}})
    runRanks(RankKind::processes, 4, [count](taccComm_t comm, int rank) {
      std::vector<float> weights(count), gradient(count);
      const taccEasgdConfig_t config = groupedBy(taccEasgdGroupColor, rank / 2);
      taccEasgd_t easgd = nullptr;
      expectSuccess(taccEasgdCreate(&easgd, weights.data(), count, comm, &config), comm);
      expectSuccess(taccEasgdStart(easgd), comm);
      taccResult_t result = taccSuccess;
      for (int step = 0; step < 1000 && result == taccSuccess; ++step) {
        if (rank == 3 && step == 3) ::_exit(0);
        result = taccEasgdStep(easgd, gradient.data());
      }
      EXPECT_EQ(result, taccRemoteError);
      EXPECT_THAT(taccGetLastError(comm), AnyOf(HasSubstr("1 is rank 3"), HasSubstr("rank 3 ")));
      taccEasgdDestroy(easgd);
    });
}

}  // namespace
}  // namespace tacc::test

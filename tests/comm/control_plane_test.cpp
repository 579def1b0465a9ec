// The control plane over a tree, 0 - 1 - {2, 3} and 0 - 4: what one rank tells reaches all, and the right one is named.
#include "comm/control/control_plane.hpp"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace tacc {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr int ranks = 5;
constexpr double patience = 10;

class Tree {
 public:
  Tree() : trees_(ranks) {
    connect(0, 1, {2, 3});
    connect(1, 2, {});
    connect(1, 3, {});
    connect(0, 4, {});
    trees_[1].route = trees_[4].route = {0};
    trees_[2].route = trees_[3].route = {1, 0};
    trees_[0].parents = {-1, 0, 1, 1, 0};
    for (int rank = 0; rank < ranks; ++rank) {
      RankIdentity identity{};
      identity.host = static_cast<std::uint64_t>(rank);
      identity.process = 100 + rank;
      identity.hostName = {'h', static_cast<char>('0' + rank)};
      who_.push_back(identity);
    }
  }
  /// By rank, without that of `missing`, whose connections stay open until closeOf().
  std::vector<std::unique_ptr<ControlPlane>> planes(int missing = -1) {
    std::vector<std::unique_ptr<ControlPlane>> planes;
    for (int rank = 0; rank < ranks; ++rank)
      planes.push_back(rank == missing ? nullptr
                                       : std::make_unique<ControlPlane>(
                                             rank, who_, std::move(trees_[static_cast<std::size_t>(rank)])));
    return planes;
  }
  void closeOf(int rank) { trees_[static_cast<std::size_t>(rank)] = ControlTree(); }

 private:
  void connect(int parent, int child, std::vector<int> behind) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
    Channel down{FileDescriptor(ends[0])}, up{FileDescriptor(ends[1])};
    down.trust();
    up.trust();
    trees_[static_cast<std::size_t>(parent)].branches.push_back({std::move(down), child, std::move(behind)});
    trees_[static_cast<std::size_t>(child)].up = std::move(up);
  }

  std::vector<ControlTree> trees_;
  std::vector<RankIdentity> who_;
};

using Planes = std::vector<std::unique_ptr<ControlPlane>>;

/// Polls all until `isDone`; what each was told, by rank.
template <class IsDone>
std::vector<std::string> pollUntil(Planes& planes, const IsDone& isDone) {
  std::vector<std::string> told(planes.size());
  for (const Deadline deadline(patience); !deadline.passed() && !isDone(told);)
    for (std::size_t rank = 0; rank < planes.size(); ++rank) {
      if (!planes[rank] || !told[rank].empty()) continue;
      try {
        planes[rank]->poll([&] { return "was in call " + std::to_string(rank); });
      } catch (const Error& error) {
        told[rank] = error.what();
      }
    }
  EXPECT_TRUE(isDone(told)) << "in " << patience << " s";
  return told;
}

TEST(ControlPlane, AFailureReachesAllAndNamesItsRank) {
  for (int failing = 0; failing < ranks; ++failing) {
    Tree tree;
    Planes planes = tree.planes();
    planes[static_cast<std::size_t>(failing)]->announce(Error(taccSystemError, "the cellar is full"));
    const auto told = pollUntil(planes, [&](const auto& texts) { return std::ranges::count(texts, "") <= 1; });
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(told[static_cast<std::size_t>(rank)],
                rank == failing ? ""
                                : fmt::format("rank {} (process {} on host h{}) reported: the cellar is full", failing,
                                              100 + failing, failing));
  }
}

TEST(ControlPlane, ADeadGatewayIsTheDeadRankToAll) {
  Tree tree;
  Planes planes = tree.planes(1);
  tree.closeOf(1);
  const auto know = [&](const auto&) {
    return std::ranges::all_of(planes, [](const auto& plane) { return !plane || plane->deadRank() == 1; });
  };
  (void)pollUntil(planes, know);
  for (const int rank : {2, 3}) EXPECT_TRUE(planes[static_cast<std::size_t>(rank)]->isAlone());
  EXPECT_FALSE(planes[0]->isAlone()) << "rank 4 is there";
  EXPECT_EQ(planes[4]->leftRank({2, 3}), std::nullopt) << "they were cut off, and did not leave";
}

TEST(ControlPlane, ADeadRankBehindAGatewayIsTheDeadRankToAll) {
  Tree tree;
  Planes planes = tree.planes(3);
  tree.closeOf(3);
  (void)pollUntil(planes, [&](const auto&) {
    return std::ranges::all_of(planes, [](const auto& plane) { return !plane || plane->deadRank() == 3; });
  });
}

TEST(ControlPlane, AGatewayThatDoesNotAnswerIsNamedAndThoseBehindItAreNot) {
  Tree tree;
  Planes planes = tree.planes(1);
  planes[4]->reportStuck("was in call 4");
  const auto told = pollUntil(planes, [](const auto& texts) { return !texts[0].empty() && !texts[4].empty(); });
  EXPECT_EQ(told[0], told[4]);
  EXPECT_THAT(told[0], HasSubstr("rank 1 (process 101 on host h1) did not answer"));
  EXPECT_THAT(told[0], Not(HasSubstr("rank 2 (")));
  EXPECT_THAT(told[0], Not(HasSubstr("rank 3 (")));
  EXPECT_THAT(planes[2]->nameOfRankZero(), HasSubstr("by way of rank 1 (process 101 on host h1)"));
}

TEST(ControlPlane, ARankBehindAGatewayThatDoesNotAnswerIsNamed) {
  Tree tree;
  Planes planes = tree.planes(3);
  planes[2]->reportStuck("was in call 2");
  const auto told = pollUntil(planes, [](const auto& texts) { return std::ranges::count(texts, "") == 1; });
  for (const int rank : {0, 1, 2, 4}) EXPECT_EQ(told[static_cast<std::size_t>(rank)], told[0]);
  EXPECT_THAT(told[0], HasSubstr("rank 3 (process 103 on host h3) did not answer"));
  EXPECT_THAT(told[0], HasSubstr("rank 2 was in call 2"));
}

TEST(ControlPlane, ARankThatTellsThatItWaitsAndHearsNothingIsNamed) {
  Tree tree;
  Planes planes = tree.planes();
  planes[4]->reportStuck("was in call 4");
  const std::unique_ptr<ControlPlane> deaf = std::move(planes[4]);
  const auto told = pollUntil(planes, [](const auto& texts) { return std::ranges::count(texts, "") == 1; });
  EXPECT_THAT(told[0], StartsWith("rank 4 (process 104 on host h4) told that it waits, and did not answer"));
  EXPECT_THAT(told[0], HasSubstr("what is sent to its host is lost"));
  EXPECT_THAT(told[0], EndsWith("; rank 4 was in call 4")) << "it has told so";
}

TEST(ControlPlane, PairsOfHostsThatLoseOnlyEachOtherAreNamedOnce) {
  Tree tree;
  Planes planes = tree.planes();
  const std::vector<std::vector<int>> unreached{{}, {3}, {4}, {1}, {-1, 5, 1 << 30}};  // some that there are not
  planes[2]->reportStuck("was in call 2");
  std::string told;
  for (const Deadline deadline(patience); !deadline.passed() && told.empty();)
    for (std::size_t rank = ranks; rank-- > 0;) try {
        planes[rank]->poll([&] { return RankState("was in a call", unreached[rank]); });
      } catch (const Error& error) {
        told = error.what();
      }
  EXPECT_THAT(told, HasSubstr("the network loses what is sent between rank 1 (process 101 on host h1) and rank 3 "
                              "(process 103 on host h3), between rank 2 (process 102 on host h2) and rank 4 (process "
                              "104 on host h4) (cable, firewall, MTU); rank 0 was in a call; rank 1"));
}

TEST(ControlPlane, AllLeaveInPeace) {
  Tree tree;
  Planes planes = tree.planes();
  for (const auto& plane : planes) plane->sayFarewell();
  const auto told = pollUntil(planes, [&](const auto&) {
    return std::ranges::all_of(planes, [](const auto& plane) { return plane->isAlone(); });
  });
  EXPECT_EQ(told, std::vector<std::string>(ranks));
  for (const auto& plane : planes) EXPECT_EQ(plane->deadRank(), std::nullopt);
}

}  // namespace
}  // namespace tacc

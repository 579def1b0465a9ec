// Ranks that stand in groups inside their host: calls run over the groups, and give the same results.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "api/handles.hpp"
#include "comm/bootstrap/unique_id.hpp"
#include "comm/membership.hpp"
#include "comm/node/node_communicator.hpp"
#include "comm/node/node_survey.hpp"
#include "rank_harness.hpp"
#include "trials.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;

/// Threads that stand in pretended groups. `direct`: they reach each other's memory; else all is staged.
class PlacedTeam {
 public:
  PlacedTeam(const NodePlaces& places, bool direct, const CommConfig& config = {}) {
    const int ranks = static_cast<int>(places.order.size());
    std::vector<Membership> members = makeThreadNode(ranks, Environment());
    std::vector<std::unique_ptr<Communicator>> made;
    for (int rank = 0; rank < ranks; ++rank) {
      Membership& member = members[static_cast<std::size_t>(rank)];
      member.access.sameProcess = direct;
      member.places = places;
      member.figures = assumedFigures(places);
      auto one = std::make_unique<NodeCommunicator>(std::move(member), rank, ranks, config, Environment());
      nodes_.push_back(one.get());
      made.push_back(std::move(one));
    }
    comms_ = makeHandles(std::move(made));
  }
  ~PlacedTeam() {
    for (taccComm_t comm : comms_) EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  }
  PlacedTeam(const PlacedTeam&) = delete;
  PlacedTeam& operator=(const PlacedTeam&) = delete;

  NodeCommunicator& node(int rank) { return *nodes_[static_cast<std::size_t>(rank)]; }
  void each(const std::function<void(taccComm_t comm, int rank, int ranks)>& act) {
    std::vector<std::thread> threads;
    const int ranks = static_cast<int>(comms_.size());
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] { act(comms_[static_cast<std::size_t>(rank)], rank, ranks); });
    for (std::thread& thread : threads) thread.join();
  }
  void run(const std::vector<Trial>& trials) {
    each([&](taccComm_t comm, int rank, int ranks) { runAll(comm, rank, ranks, trials); });
  }

 private:
  std::vector<NodeCommunicator*> nodes_;
  std::vector<taccComm_t> comms_;
};

/// Library memory is handed round by processes, which these ranks are not.
std::vector<Trial> inPrivateMemory(std::vector<Trial> trials) {
  std::erase_if(trials, [](const Trial& trial) { return trial.libraryMemory; });
  return trials;
}

const NodePlaces inOrder = {{0, 1, 2, 3, 4, 5}, {{LevelKind::numa, {0, 3}}}};
const NodePlaces dealtRound = {{0, 2, 4, 1, 3, 5}, {{LevelKind::numa, {0, 3}}}};
const NodePlaces nested = {{7, 3, 0, 4, 1, 5, 2, 6}, {{LevelKind::cache, {0, 2, 4, 6}}, {LevelKind::socket, {0, 4}}}};
const NodePlaces uneven = {{1, 0, 4, 2, 3}, {{LevelKind::numa, {0, 2}}}};

/// Where a place has a partner at a tier, they meet there.
TEST(Survey, partnersMeetAtTheirTier) {
  for (const NodePlaces* places : {&inOrder, &nested, &uneven}) {
    const NodeMachine machine(*places, assumedFigures(*places), 1 << 20);
    for (int tier = 0; tier < static_cast<int>(machine.tiers().size()); ++tier)
      for (int place = 0; place < machine.ranks(); ++place)
        if (const int partner = partnerAt(*places, tier, place); partner != place) {
          EXPECT_EQ(machine.meet(place, partner), tier);
        }
    for (int place = 0; place < machine.ranks(); ++place)
      EXPECT_NE(partnerAt(*places, static_cast<int>(machine.tiers().size()) - 1, place), place);
  }
}

TEST(Survey, figuresAreTheSlowestBorderAndTheBestCopies) {
  std::vector<NodeSamples> samples(8);
  for (NodeSamples& one : samples) {
    one.ownCopy = 9e9;
    one.tiers[0] = {1e-7, 0, 8e9};
    one.tiers[1] = {0, 6e9, 5e9};
    one.tiers[2] = {3e-7, 4e9, 2e9};
  }
  samples[7].tiers[2].together = 1e9;  // in the first group
  samples[3].ownCopy = 1e10;
  const NodeFigures figures = figuresOf(samples, nested);
  EXPECT_TRUE(figures.isMeasured);
  EXPECT_EQ(figures.ownCopy, 1e10);
  EXPECT_EQ(figures.tiers[0].copy, assumedFigures(nested).tiers[0].copy) << "nobody measured it";
  EXPECT_EQ(figures.tiers[1].copy, 6e9);
  EXPECT_EQ(figures.tiers[1].latency, assumedFigures(nested).tiers[1].latency);
  EXPECT_EQ(figures.tiers[2].latency, 3e-7);
  EXPECT_EQ(figures.tiers[0].uplink, 1e10);  // two ranks of a cache
  EXPECT_EQ(figures.tiers[1].uplink, 7e9);   // four of a socket, one of which was slow
}

TEST(Survey, aPartTakesOverWhatIsKnownOfTheTiersAtWhichItsRanksMeet) {
  NodeFigures figures = assumedFigures(nested);
  figures.tiers = {{1e-7, 8e9, 1e10}, {2e-7, 6e9, 7e9}, {4e-7, 3e9, 0}};
  figures.ownCopy = 9e9;
  figures.isMeasured = true;
  // All in another order, two of each socket, four of one socket.
  const NodeFigures turned =
      figuresOfPart(nested, figures, {{0, 4, 7, 3, 5, 1, 6, 2}, nested.levels}, {7, 6, 5, 4, 3, 2, 1, 0});
  EXPECT_EQ(turned.tiers, figures.tiers);
  EXPECT_EQ(turned.ownCopy, 9e9);
  EXPECT_TRUE(turned.isMeasured);
  const NodePlaces halves = {{0, 1, 2, 3}, {{LevelKind::socket, {0, 2}}}};
  EXPECT_EQ(figuresOfPart(nested, figures, halves, {7, 0, 1, 2}).tiers,
            (std::vector<TierFigures>{figures.tiers[1], figures.tiers[2]}));
  const NodePlaces caches = {{0, 1, 2, 3}, {{LevelKind::cache, {0, 2}}}};
  EXPECT_EQ(figuresOfPart(nested, figures, caches, {7, 3, 0, 4}).tiers,
            (std::vector<TierFigures>{figures.tiers[0], figures.tiers[1]}));
  const NodeFigures flat = figuresOfPart(nested, figures, placesUnknown(2), {7, 3});
  EXPECT_EQ(flat.tiers, assumedFigures(placesUnknown(2)).tiers);
}

/// Ranks as threads of this process that have met: whatever the machine does meanwhile, all end with the same figures.
TEST(Survey, allRanksAgree) {
  const NodePlaces places = {{0, 2, 1, 3}, {{LevelKind::numa, {0, 2}}}};
  const std::vector<Membership> members = makeThreadNode(4, Environment());
  const taccUniqueId id = makeHostUniqueId();
  std::vector<NodeFigures> figures(4);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank] {
      Bootstrap bootstrap(id, 4, rank, 20);
      figures[static_cast<std::size_t>(rank)] = measureNode(bootstrap, members[0].segment, places, rank, false);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(figures[0].isMeasured);
  EXPECT_GT(figures[0].ownCopy, 0);
  for (const TierFigures& tier : figures[0].tiers) {
    EXPECT_GT(tier.copy, 0);
    EXPECT_LE(tier.copy, figures[0].ownCopy);
    EXPECT_GT(tier.latency, 0);
  }
  for (const NodeFigures& other : figures) {
    EXPECT_EQ(other.tiers, figures[0].tiers);
    EXPECT_EQ(other.ownCopy, figures[0].ownCopy);
  }
}

class Places : public testing::TestWithParam<bool> {};

TEST_P(Places, everyCollectiveIsRightWhereverRanksStand) {
  for (const NodePlaces* places : {&inOrder, &dealtRound, &nested, &uneven}) {
    const int ranks = static_cast<int>(places->order.size());
    PlacedTeam team(*places, GetParam());
    team.run(inPrivateMemory(trialsOfRoots(ranks)));
    team.run(inPrivateMemory(trialsOfElements(ranks, 100'000)));
    if (HasFailure()) return;
  }
}

TEST_P(Places, everyAlgorithmThatLooksAtGroupsRuns) {
  for (const char* algorithm : {"hierarchical", "hierarchical_ring", "multilane", "group_chains", "ring", "circulant"})
    for (const NodePlaces* places : {&dealtRound, &nested, &uneven}) {
      const int ranks = static_cast<int>(places->order.size());
      CommConfig config;
      config.algorithm = algorithm;
      PlacedTeam team(*places, GetParam(), config);
      std::vector<Trial> trials = inPrivateMemory(trialsOfRoots(ranks));
      const auto serves = [&](Collective collective) {
        const std::vector<CallRoute> routes = team.node(0).routes(collective, 1 << 20);
        return std::ranges::find(routes, algorithm, &CallRoute::name) != routes.end();
      };
      std::set<Collective> served;
      for (int c = 0; c < collectiveCount; ++c) {
        const auto collective = static_cast<Collective>(c);
        try {
          if (serves(collective)) served.insert(collective);
        } catch (const Error& error) {
          EXPECT_THAT(error.what(), HasSubstr("does not serve"));
        }
      }
      std::erase_if(trials, [&](const Trial& trial) { return !served.contains(trial.collective); });
      team.run(trials);
      if (HasFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(Memory, Places, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& suite) { return suite.param ? "direct" : "staged"; });

TEST(PlacesOfThreads, allRanksExplainAlikeAndSayWhatTheyPriced) {
  PlacedTeam team(nested, false);
  for (const Collective collective : {Collective::allReduce, Collective::broadcast, Collective::allGather}) {
    const std::string text = team.node(0).explain(collective, 1 << 24);
    EXPECT_THAT(text, HasSubstr("groups that share a socket"));
    EXPECT_THAT(text, HasSubstr("twoshot"));
    EXPECT_THAT(text, HasSubstr("(cache, socket)"));
    EXPECT_THAT(text, HasSubstr("-> "));
    for (int rank = 1; rank < 8; ++rank) EXPECT_EQ(team.node(rank).explain(collective, 1 << 24), text);
  }
  PlacedTeam flat(placesUnknown(4), false);
  const std::string text = flat.node(0).explain(Collective::allReduce, 1 << 20);
  EXPECT_THAT(text, HasSubstr("-> twoshot"));
  EXPECT_THAT(text, HasSubstr("ring"));
}

TEST(PlacesOfThreads, reproducibleSumsStayInTheOrderOfTheRanks) {
  CommConfig config;
  config.isReproducible = true;
  PlacedTeam team(dealtRound, false, config);
  EXPECT_THAT(team.node(0).explain(Collective::allReduce, 1 << 24), HasSubstr("one host: twoshot"));
  team.run(inPrivateMemory(trialsOfElements(6, 50'000)));
}

// What follows places serves equal blocks in groups, but not blocks of unequal lengths, nor an order of the ranks.
TEST(PlacesOfThreads, aWishHoldsForWhatItServes) {
  for (const char* name : {"hierarchical_ring", "group_ring", "ring"}) {
    CommConfig config;
    config.algorithm = name;
    config.isAlgorithmWish = true;
    PlacedTeam team(dealtRound, false, config);
    team.run(inPrivateMemory(trialsOfElements(6, 50'000)));
    team.each([](taccComm_t comm, int rank, int ranks) {
      const std::size_t count = 4000;
      std::vector<std::size_t> counts, places;
      for (int r = 0; r < ranks; ++r) {
        places.push_back(places.empty() ? 0 : places.back() + counts.back());
        counts.push_back(count + static_cast<std::size_t>(r));
      }
      std::vector<int> mine(counts.back(), rank), all(places.back() + counts.back(), -1);
      EXPECT_EQ(taccAllGatherV(mine.data(), all.data(), counts.data(), places.data(), taccInt32, comm, nullptr),
                taccSuccess)
          << taccGetLastError(comm);
      for (int r = 0; r < ranks; ++r) EXPECT_EQ(all[places[static_cast<std::size_t>(r)] + count - 1], r);
      // Of the last rank, and so of none that an order of its own would end with.
      taccRedOp_t last{};
      const auto takeLast = [](void* inout, const void* in, std::size_t n, taccDataType_t, void*) {
        std::memcpy(inout, in, n * sizeof(int));
      };
      ASSERT_EQ(taccRedOpCreateUser(&last, takeLast, nullptr, 0, comm), taccSuccess) << taccGetLastError(comm);
      std::vector<int> result(count, -1);
      EXPECT_EQ(taccAllReduce(mine.data(), result.data(), count, taccInt32, last, comm, nullptr), taccSuccess)
          << taccGetLastError(comm);
      EXPECT_EQ(result[count - 1], ranks - 1);
      EXPECT_EQ(taccRedOpDestroy(last, comm), taccSuccess);
    });
  }
}

/// The ranks' own cores, in a host that a file describes: its two cores pretend to be two NUMA domains.
TEST(PlacesOfProcesses, comeFromTheirCores) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  if (!CPU_ISSET(0, &allowed) || !CPU_ISSET(1, &allowed)) GTEST_SKIP() << "needs cores 0 and 1";
  constexpr int ranks = 4;
  const std::filesystem::path file = std::filesystem::temp_directory_path() / fmt::format("tacc-places-{}", ::getpid());
  std::ofstream(file) << "numa:2 core:1 pu:1\n";
  taccUniqueId id;
  ASSERT_EQ(taccGetUniqueId(&id), taccSuccess);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    ::setenv("TACC_TOPO_FILE", file.c_str(), 1);
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(static_cast<unsigned>(rank % 2), &own);  // dealt round
    sched_setaffinity(0, sizeof own, &own);
    taccComm_t comm = nullptr;
    expectSuccess(taccCommInitRank(&comm, ranks, id, rank), nullptr);
    if (comm == nullptr) ::_exit(1);
    const char* text = taccExplain(comm, "allreduce", 1 << 24);
    EXPECT_NE(text, nullptr);
    if (text == nullptr) ::_exit(1);
    EXPECT_THAT(std::string(text), HasSubstr("2 groups that share a NUMA domain"));
    EXPECT_THAT(std::string(text), HasSubstr("(numa)"));
    runAll(comm, rank, ranks, trialsOfRoots(ranks));
    runAll(comm, rank, ranks, trialsOfElements(ranks, 200'000));
    // A part of them, in the opposite order, knows the same of the host.
    const std::string whole = text;
    taccComm_t part = nullptr;
    expectSuccess(taccCommSplit(comm, 0, -rank, &part, nullptr), comm);
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
    if (part == nullptr) ::_exit(1);
    EXPECT_EQ(std::string(taccExplain(part, "allreduce", 1 << 24)), whole);
    runAll(part, ranks - 1 - rank, ranks, trialsOfElements(ranks, 200'000));
    EXPECT_EQ(taccCommDestroy(part), taccSuccess);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  for (const pid_t child : children) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace tacc::test

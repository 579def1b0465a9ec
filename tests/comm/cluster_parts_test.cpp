// Communicators that are split off another one over several hosts: they may share its connections, and are its equals
// all the same. Over whichever transport TACC_TRANSPORT names; that connections are shared holds over TCP alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "drawn_program.hpp"
#include "fault_team.hpp"
#include "rank_harness.hpp"
#include "support/child_process.hpp"
#include "support/host_ranks_test.hpp"

namespace tacc::test {
namespace {

bool sharesConnections() {
  const char* transport = std::getenv("TACC_TRANSPORT");
  return transport != nullptr && std::string_view(transport) == "tcp";
}

taccComm_t split(taccComm_t comm, int color, int key) {
  taccComm_t part = nullptr;
  EXPECT_EQ(taccCommSplit(comm, color, key, &part, nullptr), taccSuccess) << taccGetLastError(comm);
  return part;
}

int rankIn(taccComm_t comm) {
  int rank = -1;
  EXPECT_EQ(taccCommUserRank(comm, &rank), taccSuccess);
  return rank;
}

int ranksOf(taccComm_t comm) {
  int ranks = 0;
  EXPECT_EQ(taccCommCount(comm, &ranks), taccSuccess);
  return ranks;
}

/// Every rank's connections to all others are made: by messages, as a collective's plan may go by way of some.
void talkToAll(taccComm_t comm) {
  const int mine = rankIn(comm);
  std::vector<int> in(static_cast<std::size_t>(ranksOf(comm)), mine);
  EXPECT_EQ(taccGroupStart(), taccSuccess);
  for (int peer = 0; peer < ranksOf(comm); ++peer) {
    if (peer == mine) continue;
    EXPECT_EQ(taccSend(&mine, 1, taccInt32, peer, comm, nullptr), taccSuccess);
    EXPECT_EQ(taccRecv(&in[static_cast<std::size_t>(peer)], 1, taccInt32, peer, comm, nullptr), taccSuccess);
  }
  EXPECT_EQ(taccGroupEnd(), taccSuccess) << taccGetLastError(comm);
  for (std::size_t peer = 0; peer < in.size(); ++peer) EXPECT_EQ(in[peer], static_cast<int>(peer));
}

/// Some programs on one communicator, with a seed for each. "" or what was wrong.
std::string runPrograms(taccComm_t comm, std::uint64_t seed, int programs) {
  const int ranks = ranksOf(comm), rank = rankIn(comm);
  DrawnBuffers buffers(ranks);
  for (int i = 0; i < programs; ++i, ++seed) {
    const std::string wrong = runProgram(drawProgram(seed, ranks), seed, Pace::prompt, comm, rank, ranks, buffers);
    if (!wrong.empty()) return fmt::format("seed {}: {}", seed, wrong);
  }
  return "";
}

class HostParts : public HostRanksTest {};

TEST_P(HostParts, takeFewDescriptors) {
  constexpr int parts = 8;
  const VirtualCluster& cluster = fourHosts();
  runOnHosts(cluster, hosts(), [&](taccComm_t comm, int rank) {
    talkToAll(comm);
    const int before = countOpenDescriptors();
    std::vector<taccComm_t> made;
    for (int i = 0; i < parts; ++i) {
      made.push_back(split(i % 2 == 0 || made.empty() ? comm : made.back(), 0, i % 3 == 0 ? -rank : rank));
      talkToAll(made.back());
    }
    const int taken = countOpenDescriptors() - before;
    std::printf("rank %d of %d: %d parts take %d descriptors\n", rank, ranks(), parts, taken);
    if (sharesConnections()) {
      // Of the control plane: its star, which has another centre where the order is turned, and a door; and what the
      // ranks of one host share.
      int most = 0;
      for (const taccComm_t part : made) most += (rankIn(part) == 0 ? ranks() - 1 : 1) + 2;
      EXPECT_LE(taken, most);
    }
    for (const taccComm_t part : made) EXPECT_EQ(taccCommDestroy(part), taccSuccess);
  });
}

/// Made by their ranks alone, on one host and on several, over the connections of the whole.
TEST_P(HostParts, canBeMadeOfSomeRanks) {
  const VirtualCluster& cluster = fourHosts();
  runOnHosts(cluster, hosts(), [&](taccComm_t comm, int rank) {
    talkToAll(comm);
    std::vector<taccComm_t> made;
    // Every second rank backwards, all but the first, and pairs of neighbours in a ring.
    std::vector<std::vector<int>> groups(2);
    for (int other = ranks() - 1; other >= 0; --other) {
      if (other % 2 == 0) groups[0].push_back(other);
      if (other > 0) groups[1].insert(groups[1].begin(), other);
      if (ranks() > 2) groups.push_back({other, (other + 1) % ranks()});
    }
    std::uint64_t seed = 0;
    for (const std::vector<int>& members : groups) {
      ++seed;
      const auto place = std::ranges::find(members, rank) - members.begin();
      if (place == std::ssize(members)) continue;
      taccComm_t group = nullptr;
      ASSERT_EQ(taccCommCreateGroup(comm, members.data(), static_cast<int>(members.size()), &group, nullptr),
                taccSuccess)
          << taccGetLastError(comm);
      EXPECT_EQ(rankIn(group), place);
      EXPECT_EQ(ranksOf(group), std::ssize(members));
      EXPECT_EQ(runPrograms(group, seed, 1), "");
      made.push_back(group);
    }
    talkToAll(comm);
    for (const taccComm_t group : made) EXPECT_EQ(taccCommDestroy(group), taccSuccess);
  });
}

/// Those of one host, made by a split or by their ranks alone, take no descriptors, and what is wrong with one of them
/// ends nothing on other hosts.
TEST_P(HostParts, ofOneHostStayThere) {
  const VirtualCluster& cluster = fourHosts();
  runOnHosts(cluster, hosts(), [&](taccComm_t comm, int rank) {
    const int host = hosts()[static_cast<std::size_t>(rank)];
    std::vector<int> here;
    for (int other = 0; other < ranks(); ++other)
      if (hosts()[static_cast<std::size_t>(other)] == host) here.push_back(other);
    const auto group = [&](taccResult_t expected) {
      taccComm_t made = nullptr;
      EXPECT_EQ(taccCommCreateGroup(comm, here.data(), static_cast<int>(here.size()), &made, nullptr), expected)
          << taccGetLastError(comm);
      return made;
    };
    talkToAll(comm);
    std::vector<taccComm_t> made;
    int before = 0;
    for (int i = 0; i < 12; ++i) {
      made.push_back(i % 2 == 0 ? split(comm, host, rank) : group(taccSuccess));
      talkToAll(made.back());
      if (i == 1) before = countOpenDescriptors();
    }
    if (here.size() > 1) {
      EXPECT_EQ(countOpenDescriptors(), before);
    }
    if (here.size() > 1 && host == hosts()[0]) {
      ASSERT_EQ(::setenv("TACC_TUNE_FILE", "/nowhere/tune.toml", 1), 0);
      EXPECT_EQ(group(taccInvalidArgument), nullptr);
      ASSERT_EQ(::unsetenv("TACC_TUNE_FILE"), 0);
    }
    talkToAll(comm);
    for (const taccComm_t part : made) EXPECT_EQ(taccCommDestroy(part), taccSuccess);
  });
}

/// A part that is to have other settings has connections of its own, and shares them with its own parts.
TEST_P(HostParts, withOtherSettingsHaveTheirOwnConnections) {
  if (!sharesConnections()) GTEST_SKIP();
  const VirtualCluster& cluster = fourHosts();
  runOnHosts(cluster, hosts(), [&](taccComm_t comm, int rank) {
    talkToAll(comm);
    ASSERT_EQ(::unsetenv("TACC_TRANSPORT"), 0);
    const auto takes = [&](taccComm_t from, taccComm_t& made) {
      const int before = countOpenDescriptors();
      made = split(from, 0, rank);
      // Where two ranks connect to each other at once, one of the connections goes when either is used again.
      int least = std::numeric_limits<int>::max();
      for (int round = 0; round < 5; ++round) {
        talkToAll(made);
        least = std::min(least, countOpenDescriptors());
      }
      return least - before;
    };
    taccComm_t first = nullptr, second = nullptr;
    const int ofItsOwn = takes(comm, first), shared = takes(first, second);
    std::printf("rank %d of %d: %d descriptors for a part with connections of its own, %d for a part of it\n", rank,
                ranks(), ofItsOwn, shared);
    const auto near = std::ranges::count(hosts(), hosts()[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(ofItsOwn - shared, 2 + ranks() - near) << "a listener, what is slept on, and connections to other hosts";
    EXPECT_EQ(taccCommDestroy(first), taccSuccess);
    EXPECT_EQ(runPrograms(second, 9, 1), "");
    EXPECT_EQ(taccCommDestroy(second), taccSuccess);
  });
}

/// Threads that compute on the whole, its parts and parts of parts at once, and split them once more meanwhile.
TEST_P(HostParts, runBesideTheWholeInThreadsOfTheirOwn) {
  const int programs = isQuick() ? 1 : 4;
  const VirtualCluster& cluster = fourHosts();
  runOnHosts(cluster, hosts(), [&](taccComm_t comm, int rank) {
    std::vector<taccComm_t> comms{comm};
    comms.push_back(split(comm, 0, -rank));
    comms.push_back(split(comm, rank % 2, rank));
    comms.push_back(split(comms[1], rank % 2 == 0 ? 0 : TACC_SPLIT_NOCOLOR, 0));
    std::vector<std::string> wrong(comms.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < comms.size(); ++i) {
      if (comms[i] == nullptr) continue;
      threads.emplace_back([&, i] {
        const std::uint64_t seed = 1000 * i;
        wrong[i] = runPrograms(comms[i], seed, programs);
        taccComm_t part = nullptr;
        if (taccCommSplit(comms[i], 0, rank, &part, nullptr) != taccSuccess) wrong[i] += taccGetLastError(comms[i]);
        if (part == nullptr) return;
        wrong[i] += runPrograms(part, seed + 500, programs);
        wrong[i] += runPrograms(comms[i], seed + 700, programs);
        if (taccCommDestroy(part) != taccSuccess) wrong[i] += "destroy";
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < comms.size(); ++i) EXPECT_EQ(wrong[i], "") << "rank " << rank << ", communicator " << i;
    for (std::size_t i = 1; i < comms.size(); ++i)
      if (comms[i] != nullptr) {
        EXPECT_EQ(taccCommDestroy(comms[i]), taccSuccess);
      }
  });
}

TEST_P(HostParts, outliveTheWhole) {
  const VirtualCluster& cluster = fourHosts();
  Team team(cluster, hosts(), [&](const taccUniqueId& id, int rank, Report&) {
    const taccComm_t comm = joinTeam(id, ranks(), rank, configOf(20, 60));
    ASSERT_NE(comm, nullptr);
    taccComm_t part = split(comm, 0, -rank);
    EXPECT_EQ(runPrograms(part, 1, 1), "");
    EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
    EXPECT_EQ(runPrograms(part, 2, 2), "");
    taccComm_t other = split(part, 0, 0);
    EXPECT_EQ(taccCommDestroy(part), taccSuccess);
    EXPECT_EQ(runPrograms(other, 4, 2), "");
    EXPECT_EQ(taccCommDestroy(other), taccSuccess);
  });
  team.join(-1, 60);
}

/// A thread that calls on the whole until it is told to stop, alike on all ranks: "" or what was wrong.
class Companion {
 public:
  explicit Companion(taccComm_t comm) : thread_([this, comm] { run(comm); }) {}
  std::string end() {
    isEnding_ = true;
    thread_.join();
    return wrong_;
  }
  int calls() const { return calls_; }

 private:
  void run(taccComm_t comm) {
    const std::int64_t ranks = ranksOf(comm);
    std::vector<std::int64_t> values(40'000);
    for (std::int64_t going = ranks; going > 0; ++calls_) {
      // The first says how many go on.
      values.assign(calls_ % 4 == 0 ? values.size() : 9, rankIn(comm));
      values[0] = isEnding_ ? 0 : 1;
      const std::size_t count = calls_ % 4 == 0 ? values.size() : 9;
      const taccResult_t result = taccAllReduce(values.data(), values.data(), count, taccInt64, taccSum, comm, nullptr);
      if (result != taccSuccess) wrong_ = taccGetLastError(comm);
      if (std::any_of(values.begin() + 1, values.begin() + static_cast<std::ptrdiff_t>(count),
                      [&](std::int64_t value) { return value != ranks * (ranks - 1) / 2; }))
        wrong_ += " wrong sums";
      if (!wrong_.empty()) return;
      going = values[0];
      values.resize(40'000);
    }
  }

  std::string wrong_;
  std::atomic<bool> isEnding_{false};
  std::atomic<int> calls_{0};
  std::thread thread_;
};

/// Parts end in the middle of calls, again and again; the whole and later parts get on, with the right data, and
/// nothing is written into memory of a call that has failed.
TEST_P(HostParts, aPartThatFailsEndsNothingElse) {
  constexpr std::size_t count = 1 << 18;
  const int rounds = isQuick() ? 4 : 20;
  const VirtualCluster& cluster = fourHosts();
  runOnHosts(cluster, hosts(), [&](taccComm_t comm, int rank) {
    const taccComm_t whole = split(comm, 0, rank);
    Companion companion(whole);
    std::vector<float> out(count), in(count);
    for (int round = 0; round < rounds; ++round) {
      SCOPED_TRACE(fmt::format("rank {}, round {}", rank, round));
      const taccComm_t part = split(comm, 0, round % 2 == 0 ? rank : -rank);
      const int victim = round % ranks();
      std::atomic<int> calls{0};
      std::thread culprit;
      if (rank == victim && round % 3 != 2)
        culprit = std::thread([&] {
          while (calls < 2 + round % 5) std::this_thread::yield();
          EXPECT_EQ(taccCommRevoke(part), taccSuccess);
        });
      taccResult_t result = taccSuccess;
      for (; result == taccSuccess; ++calls) {
        std::ranges::fill(out, static_cast<float>(rank + 1));
        // In every third round one rank calls something else.
        const std::size_t some = round % 3 == 2 && rank == victim && calls >= 3 ? count / 2 : count;
        // A 16-bit type is summed in memory that goes with the call.
        if (calls % 3 == 2)
          result = taccAllReduce(out.data(), in.data(), some, taccBfloat16, taccMax, part, nullptr);
        else if (calls % 2 == 0)
          result = taccAllReduce(out.data(), in.data(), some, taccFloat32, taccSum, part, nullptr);
        else
          result =
              taccAllToAll(out.data(), in.data(), some / static_cast<std::size_t>(ranks()), taccFloat32, part, nullptr);
        if (result == taccSuccess && calls % 2 == 0 && calls % 3 != 2) {
          EXPECT_EQ(in[count - 1], static_cast<float>(ranks() * (ranks() + 1) / 2));
        }
      }
      std::ranges::fill(in, -1.0F);
      std::ranges::fill(out, -2.0F);
      if (culprit.joinable()) culprit.join();
      EXPECT_EQ(taccBarrier(comm, nullptr), taccSuccess) << taccGetLastError(comm);
      const int before = companion.calls();
      while (companion.calls() < before + 3) std::this_thread::yield();  // late messages have their chance
      EXPECT_TRUE(std::ranges::all_of(in, [](float value) { return value == -1.0F; }));
      EXPECT_EQ(taccCommDestroy(part), taccSuccess);
      if (HasFailure()) break;
    }
    const std::string wrong = companion.end();
    EXPECT_EQ(wrong, "");
    EXPECT_EQ(taccCommDestroy(whole), taccSuccess);
  });
}

/// Which communicators see a death: those that contain the rank, and no other.
TEST_P(HostParts, aKilledRankIsSeenByThoseThatContainIt) {
  const VirtualCluster& cluster = fourHosts();
  const int victim = ranks() - 1;
  Team team(cluster, hosts(), [&](const taccUniqueId& id, int rank, Report& report) {
    const taccComm_t comm = joinTeam(id, ranks(), rank, configOf(20, 30));
    ASSERT_NE(comm, nullptr);
    const taccComm_t all = split(comm, 0, -rank);
    const taccComm_t without = split(comm, rank == victim ? TACC_SPLIT_NOCOLOR : 0, rank);
    const taccComm_t part = split(all, rank % 2 == victim % 2 ? 1 : TACC_SPLIT_NOCOLOR, rank);
    std::atomic<bool> isOver{false};
    std::string errors[3];
    std::vector<std::thread> threads;
    const taccComm_t with[] = {comm, all, part};
    for (std::size_t i = 0; i < std::size(with); ++i) {
      if (with[i] == nullptr) continue;
      threads.emplace_back([&, i] {
        std::vector<float> data(i == 1 ? 100'000 : 3);
        while (taccAllReduce(data.data(), data.data(), data.size(), taccFloat32, taccMax, with[i], nullptr) ==
               taccSuccess)
          report.stage = 1;
        errors[i] = taccGetLastError(with[i]);
      });
    }
    std::string wrong;
    std::thread survivor([&] {
      if (without != nullptr) wrong = Companion(without).end();
    });
    survivor.join();
    std::unique_ptr<Companion> companion;
    if (without != nullptr) companion = std::make_unique<Companion>(without);
    for (std::thread& thread : threads) thread.join();
    const double dead = now();
    ASSERT_NE(rank, victim);
    // It goes on well after the others have failed.
    const int before = companion->calls();
    while (companion->calls() < before + 50 && now() - dead < 20) std::this_thread::yield();
    wrong += companion->end();
    EXPECT_EQ(wrong, "");
    for (std::size_t i = 0; i < std::size(with); ++i) {
      if (with[i] == nullptr) continue;
      const int number = i == 1 ? 0 : i == 0 ? victim : ranksOf(part) - 1;
      EXPECT_NE(errors[i].find(fmt::format("rank {}", number)), std::string::npos) << i << ": " << errors[i];
      EXPECT_EQ(taccCommDestroy(with[i]), taccSuccess);
    }
    EXPECT_EQ(runPrograms(without, 5, 1), "");
    EXPECT_EQ(taccCommDestroy(without), taccSuccess);
    report.stage = 2;
  });
  team.awaitStage(1);
  team.signal(victim, SIGKILL);
  team.join(victim, 60);
  for (int rank = 0; rank < victim; ++rank) EXPECT_EQ(team.report(rank).stage, 2) << "rank " << rank;
}

/// One rank runs far ahead in a part while another thread of its peer waits for it in the whole: what it sends takes
/// bounded memory there.
TEST_P(HostParts, aRankThatRunsAheadInAPartFillsNoMemory) {
  if (!sharesConnections()) GTEST_SKIP() << "what a library keeps is not bounded by tacc";
  constexpr std::size_t count = std::size_t{1} << 18;  // of bytes
  constexpr int calls = 400;                           // 100 MiB in all
  [[maybe_unused]] constexpr long most = 48 << 10;     // KiB
  const VirtualCluster& cluster = fourHosts();
  runOnHosts(cluster, hosts(), [&](taccComm_t comm, int rank) {
    const taccComm_t part = split(comm, 0, rank);
    talkToAll(part);
    std::vector<std::uint8_t> data(count, static_cast<std::uint8_t>(rank));
    std::atomic<bool> mayGoOn{rank == 0};
    std::thread reader([&] {
      while (!mayGoOn) std::this_thread::yield();
      for (int i = 0; i < calls; ++i) {
        if (rank == 0) data[0] = static_cast<std::uint8_t>(i);
        if (rank == 0) {
          ASSERT_EQ(taccSend(data.data(), count, taccUint8, ranks() - 1, part, nullptr), taccSuccess);
        }
        if (rank == ranks() - 1) {
          ASSERT_EQ(taccRecv(data.data(), count, taccUint8, 0, part, nullptr), taccSuccess);
        }
        if (rank == ranks() - 1) {
          ASSERT_EQ(data[0], static_cast<std::uint8_t>(i));
        }
      }
    });
    const auto resident = [] {
      long pages = 0;
      if (FILE* file = std::fopen("/proc/self/statm", "r")) {
        EXPECT_EQ(std::fscanf(file, "%*d %ld", &pages), 1);
        std::fclose(file);
      }
      return pages * 4;
    };
    const long before = resident();
    Companion companion(comm);
    while (companion.calls() < 1000) std::this_thread::yield();
    const long grown = resident() - before;
    std::printf("rank %d: %ld KiB more\n", rank, grown);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LT(grown, most);
#endif  // a sanitizer keeps what was freed
    mayGoOn = true;
    reader.join();
    EXPECT_EQ(companion.end(), "");
    EXPECT_EQ(taccCommDestroy(part), taccSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Placements, HostParts,
                         testing::Values(Layout{"oneEach", {1, 2, 3, 4}}, Layout{"blocks", {1, 1, 2, 2}}), layoutName);

}  // namespace
}  // namespace tacc::test

// How survivors meet: whoever lives, whoever leads, and whatever has happened to the others.
#include "comm/muster.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "comm/connect.hpp"
#include "transports/tcp.hpp"

namespace tacc {
namespace {

const InetAddress loopback(InetAddress::V4{127, 0, 0, 1});
constexpr double patience = 60;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Somebody who listens and whom nobody reaches, as on a host that has gone: no attempt to connect is answered.
class Abyss {
 public:
  Abyss() : listener_(bindTcp(0)), place_{{}, loopback.v6(), portOf(listener_.get())} {
    EXPECT_EQ(::listen(listener_.get(), 0), 0);
    const Interrupt none(0);
    for (;;) {  // until the kernel has no more room for connections
      Attempt attempt = connectTcp(InetAddress(place_.address, place_.port), 0.1, Deadline(1), none);
      if (!attempt.socket.valid()) break;
      fill_.push_back(std::move(attempt.socket));
    }
  }
  const MusterPlace& place() const { return place_; }

 private:
  FileDescriptor listener_;
  MusterPlace place_;
  std::vector<FileDescriptor> fill_;
};

/// The sockets of all ranks of a communicator.
class Ranks {
 public:
  Ranks(int count, bool overTcp) {
    for (int rank = 0; rank < count; ++rank) {
      musters_.push_back(std::make_unique<Muster>(rank, overTcp ? &loopback : nullptr));
      places_.push_back(musters_.back()->place());
    }
  }

  void lose(int rank, const MusterPlace* place = nullptr) {
    musters_[static_cast<std::size_t>(rank)].reset();
    if (place != nullptr) places_[static_cast<std::size_t>(rank)] = *place;
  }
  Muster& at(int rank) { return *musters_[static_cast<std::size_t>(rank)]; }
  std::vector<int> living() const {
    std::vector<int> result;
    for (std::size_t rank = 0; rank < musters_.size(); ++rank)
      if (musters_[rank]) result.push_back(static_cast<int>(rank));
    return result;
  }

  /// Begins to gather all that live. `excluded`: those that nobody wants, who do not come.
  void gather(const std::vector<int>& excluded = {}) {
    outcomes_.resize(musters_.size());
    Secret secret{};
    secret.fill(7);
    std::vector<bool> isExcluded(musters_.size());
    for (const int rank : excluded) isExcluded[static_cast<std::size_t>(rank)] = true;
    for (const int rank : living()) {
      at(rank).setPlaces(places_, secret);
      if (isExcluded[static_cast<std::size_t>(rank)]) continue;
      threads_.emplace_back([this, rank, isExcluded] {
        try {
          outcomes_[static_cast<std::size_t>(rank)] = at(rank).gather(isExcluded, patience);
        } catch (const Error&) {
          lose(rank);  // as its process would
        }
      });
    }
  }
  /// All of `expected` have found each other, and nobody else.
  void expectMet(const std::vector<int>& expected) {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    const auto& first = outcomes_[static_cast<std::size_t>(expected.front())];
    for (const int rank : expected) {
      const auto& outcome = outcomes_[static_cast<std::size_t>(rank)];
      ASSERT_TRUE(outcome.has_value()) << "rank " << rank;
      EXPECT_EQ(outcome->survivors, expected) << "rank " << rank;
      EXPECT_EQ(std::memcmp(&outcome->id, &first->id, sizeof first->id), 0) << "rank " << rank;
    }
  }

 private:
  std::vector<std::unique_ptr<Muster>> musters_;
  std::vector<MusterPlace> places_;
  std::vector<std::optional<Muster::Outcome>> outcomes_;
  std::vector<std::thread> threads_;
};

class MusterOver : public testing::TestWithParam<bool> {};

TEST_P(MusterOver, survivorsAgreeWhoeverDied) {
  for (const std::vector<int>& dead : std::vector<std::vector<int>>{
           {}, {0}, {18}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {1, 3, 8, 9, 17}, {0, 2, 4, 16, 18}}) {
    Ranks ranks(19, GetParam());
    for (const int rank : dead) ranks.lose(rank);
    const std::vector<int> living = ranks.living();
    ranks.gather();
    ranks.expectMet(living);
  }
}

TEST_P(MusterOver, whoIsNotWantedIsLeftOutThoughItLives) {
  Ranks ranks(6, GetParam());
  ranks.lose(1);
  ranks.gather({0, 4});
  ranks.expectMet({2, 3, 5});
}

TEST_P(MusterOver, aLeaderThatEndsIsFollowedByTheNext) {
  Ranks ranks(5, GetParam());
  ranks.at(0).interrupt();  // it leads for no longer than it takes to notice
  ranks.gather();
  ranks.expectMet({1, 2, 3, 4});
}

INSTANTIATE_TEST_SUITE_P(Kinds, MusterOver, testing::Bool(), [](const testing::TestParamInfo<bool>& kind) {
  return std::string(kind.param ? "Tcp" : "Unix");
});

// A host that has gone refuses nothing: each attempt to reach one of its ranks takes its whole second.
TEST(Muster, hostsThatHaveGoneCostSecondsNotOneForEachRank) {
  const Abyss abyss;
  Ranks ranks(64, true);
  for (int rank = 0; rank < 20; ++rank) ranks.lose(rank, &abyss.place());
  for (int rank = 24; rank < 64; ++rank) ranks.lose(rank, &abyss.place());
  const double start = now();
  ranks.gather();
  ranks.expectMet({20, 21, 22, 23});
  EXPECT_LT(now() - start, 12);
}

}  // namespace
}  // namespace tacc

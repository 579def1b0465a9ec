// How the ranks of a communicator agree: whoever lives, whoever leads, whoever is late, and whoever else comes.
#include <gtest/gtest.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/bootstrap/connect.hpp"
#include "comm/recovery/survivor_rendezvous.hpp"
#include "core/error.hpp"
#include "transports/shm/presence.hpp"
#include "transports/shm/shared_memory.hpp"
#include "transports/tcp/tcp.hpp"

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
  const SurvivorPlace& place() const { return place_; }

 private:
  FileDescriptor listener_;
  SurvivorPlace place_;
  std::vector<FileDescriptor> fill_;
};

struct Result {
  std::optional<Decision> decision;
  std::optional<Error> error;
  double end = 0;
};

/// How ranks reach each other: at sockets from the beginning, or, in a part of a communicator of one host, at such that
/// are opened with the first agreement.
enum class Kind { unixSockets, tcp, part };

Secret secretOfAll() {
  Secret secret{};
  secret.fill(7);
  return secret;
}

/// Memory and claims as ranks of a host share them.
class SharedHost {
 public:
  explicit SharedHost(int ranks) : geometry_{.ranks = ranks} {
    memory_ = std::make_shared<SharedMemory>(SharedMemory::create(NodeSegment::bytesFor(geometry_), "agreement"));
  }
  std::shared_ptr<Presence> presenceOf(int rank) const {
    std::vector<int> claims(static_cast<std::size_t>(geometry_.ranks));
    std::iota(claims.begin(), claims.end(), 0);
    return std::make_shared<Presence>(NodeSegment(memory_->data(), geometry_), memory_, rank,
                                      std::make_shared<const Liveness>(memory_->fd(), rank), std::move(claims));
  }

 private:
  NodeGeometry geometry_;
  std::shared_ptr<SharedMemory> memory_;
};

/// The sockets of all ranks of a communicator.
class Ranks {
 public:
  Ranks(int count, Kind kind) : results_(static_cast<std::size_t>(count)) {
    const SharedHost host(count);
    if (kind == Kind::part) randombytes_buf(secret_.data(), secret_.size());  // names that nobody else has
    for (int rank = 0; rank < count; ++rank) {
      presences_.push_back(kind == Kind::part ? host.presenceOf(rank) : nullptr);
      rendezvous_.push_back(kind == Kind::part
                                ? std::make_unique<SurvivorRendezvous>(rank, count, secret_, false, presences_.back())
                                : std::make_unique<SurvivorRendezvous>(rank, kind == Kind::tcp ? &loopback : nullptr));
      if (kind != Kind::part) places_.push_back(rendezvous_.back()->place());
    }
    places_.resize(static_cast<std::size_t>(count));
  }
  ~Ranks() { join(); }

  void lose(int rank, const SurvivorPlace* place = nullptr) {
    if (const auto& presence = presences_[static_cast<std::size_t>(rank)]) presence->leave();
    rendezvous_[static_cast<std::size_t>(rank)].reset();
    if (place != nullptr) places_[static_cast<std::size_t>(rank)] = *place;
  }
  /// Its door is no more, whoever may still want to see it.
  void endProcess(int rank) {
    at(rank).forget();
    lose(rank);
  }
  SurvivorRendezvous& at(int rank) { return *rendezvous_[static_cast<std::size_t>(rank)]; }
  const std::vector<SurvivorPlace>& places() const { return places_; }
  const Result& result(int rank) const { return results_[static_cast<std::size_t>(rank)]; }
  std::vector<int> living() const {
    std::vector<int> result;
    for (std::size_t rank = 0; rank < rendezvous_.size(); ++rank)
      if (rendezvous_[rank]) result.push_back(static_cast<int>(rank));
    return result;
  }
  AgreementRequest request(std::vector<int> excluded = {}, double seconds = patience) const {
    AgreementRequest request{AgreementPurpose::shrink, ~0U, std::vector<bool>(places_.size()), seconds};
    for (const int rank : excluded) request.excluded[static_cast<std::size_t>(rank)] = true;
    return request;
  }

  void prepare(int rank) {
    if (!presences_[static_cast<std::size_t>(rank)]) at(rank).setPlaces(places_, secret_);
  }
  void begin(int rank, const AgreementRequest& request, double delay = 0) {
    prepare(rank);
    results_[static_cast<std::size_t>(rank)] = {};
    threads_.emplace_back(rank, [this, rank, request, delay] {
      std::this_thread::sleep_for(std::chrono::duration<double>(delay));
      Result& result = results_[static_cast<std::size_t>(rank)];
      try {
        result.decision = at(rank).agree(request);
      } catch (const Error& error) {
        result.error = error;
        if (losesWhoFails) lose(rank);  // as its process would
      }
      result.end = now();
    });
  }
  void beginAll(const AgreementRequest& request) {
    for (const int rank : living())
      if (!request.excluded[static_cast<std::size_t>(rank)]) begin(rank, request);
  }
  void join() {
    for (auto& [rank, thread] : threads_) thread.join();
    threads_.clear();
  }
  /// Until what it began has ended, and no other rank's.
  void join(int rank) {
    std::erase_if(threads_, [rank](auto& one) {
      if (one.first == rank) one.second.join();
      return one.first == rank;
    });
  }
  /// Whether all of `expected` have found each other, and nobody else.
  bool haveMet(const std::vector<int>& expected) {
    join();
    return std::ranges::all_of(expected, [&](int rank) {
      const auto& decision = result(rank).decision;
      const auto count = decision ? std::ranges::count(decision->members, true) : 0;
      return count == std::ssize(expected) &&
             std::ranges::all_of(expected, [&](int one) { return decision->members[static_cast<std::size_t>(one)]; });
    });
  }
  /// All of `expected` have found each other, and nobody else.
  void expectMet(const std::vector<int>& expected) {
    join();
    std::vector<bool> members(places_.size());
    for (const int rank : expected) members[static_cast<std::size_t>(rank)] = true;
    for (const int rank : expected) {
      ASSERT_TRUE(result(rank).decision) << "rank " << rank << ": "
                                         << (result(rank).error ? result(rank).error->what() : "");
      EXPECT_EQ(result(rank).decision->members, members) << "rank " << rank;
      EXPECT_EQ(*result(rank).decision, *result(expected.front()).decision) << "rank " << rank;
    }
  }

  bool losesWhoFails = true;

 private:
  std::vector<std::unique_ptr<SurvivorRendezvous>> rendezvous_;
  std::vector<std::shared_ptr<Presence>> presences_;  // null where the sockets are open from the beginning
  Secret secret_ = secretOfAll();
  std::vector<SurvivorPlace> places_;
  std::vector<Result> results_;
  std::vector<std::pair<int, std::thread>> threads_;
};

/// Ranks that have gone on without one, which listens and does not come. They wait for it until the last tenth of their
/// time, which on a busy machine may be too little for the rest of the agreement: then they get twice the time.
std::unique_ptr<Ranks> goneOnWithout(int silent, int count, Kind kind) {
  constexpr double longest = 16;
  std::vector<int> others;
  for (int rank = 0; rank < count; ++rank)
    if (rank != silent) others.push_back(rank);
  for (double seconds = 1;; seconds *= 2) {
    auto ranks = std::make_unique<Ranks>(count, kind);
    ranks->prepare(silent);
    for (const int rank : others) ranks->begin(rank, ranks->request({}, seconds - 0.02 * rank), 0.01 * rank);
    if (!ranks->haveMet(others) && seconds < longest) continue;
    ranks->expectMet(others);
    ranks->losesWhoFails = false;
    return ranks;
  }
}

class AgreementOver : public testing::TestWithParam<Kind> {};

TEST_P(AgreementOver, survivorsAgreeWhoeverDied) {
  for (const std::vector<int>& dead : std::vector<std::vector<int>>{
           {}, {0}, {18}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {1, 3, 8, 9, 17}, {0, 2, 4, 16, 18}}) {
    Ranks ranks(19, GetParam());
    for (const int rank : dead) ranks.lose(rank);
    const std::vector<int> living = ranks.living();
    const double start = now();
    ranks.beginAll(ranks.request());
    ranks.expectMet(living);
    EXPECT_LT(now() - start, 10);
  }
}

TEST_P(AgreementOver, whoIsNotWantedIsLeftOutThoughItLives) {
  Ranks ranks(6, GetParam());
  ranks.lose(1);
  ranks.beginAll(ranks.request({0, 4}));
  ranks.expectMet({2, 3, 5});
}

TEST_P(AgreementOver, aLeaderThatEndsIsFollowedByTheNext) {
  Ranks ranks(5, GetParam());
  ranks.at(0).interrupt();  // it leads for no longer than it takes to notice
  ranks.beginAll(ranks.request());
  ranks.expectMet({1, 2, 3, 4});
}

TEST_P(AgreementOver, flagsAreJoinedAndTheNextAgreementIsANewOne) {
  Ranks ranks(4, GetParam());
  for (std::uint32_t round = 0; round < 20; ++round) {
    for (int rank = 0; rank < 4; ++rank) {
      AgreementRequest request = ranks.request();
      request.purpose = AgreementPurpose::flags;
      request.flags = ~(1U << ((static_cast<std::uint32_t>(rank) + round) % 5));
      ranks.begin(rank, request);
    }
    ranks.expectMet({0, 1, 2, 3});
    EXPECT_EQ(ranks.result(2).decision->flags, ~0x1FU | 1U << ((4 + round) % 5));
  }
}

// One that never comes, as a process that is stopped: it listens, and is waited for until time is nearly over.
TEST_P(AgreementOver, aSilentRankIsLeftOutWhoeverItIs) {
  for (const int silent : {0, 1, 2}) (void)goneOnWithout(silent, 3, GetParam());
}

TEST_P(AgreementOver, withoutAMajorityNobodyGoesOn) {
  constexpr double longest = 16;
  bool areNamed = false;
  for (double seconds = 1; !areNamed && seconds <= longest; seconds *= 2) {  // until those who come find each other
    Ranks ranks(4, GetParam());
    ranks.losesWhoFails = false;
    ranks.prepare(0);
    ranks.prepare(3);
    for (const int rank : {1, 2}) ranks.begin(rank, ranks.request({}, seconds));
    ranks.join();
    for (const int rank : {1, 2}) {
      ASSERT_TRUE(ranks.result(rank).error) << "rank " << rank;
      const std::string what = ranks.result(rank).error->what();
      EXPECT_EQ(ranks.result(rank).error->result(), taccTimeout) << what;
      areNamed = areNamed || what.find("0, 3 did not come") != std::string::npos;
    }
  }
  EXPECT_TRUE(areNamed);
}

TEST_P(AgreementOver, whoComesTooLateIsTold) {
  const std::unique_ptr<Ranks> ranks = goneOnWithout(3, 4, GetParam());
  // The others are in their next agreement, and know how the last one ended. It does not end before the late one has.
  AgreementRequest next = ranks->request({3});
  next.purpose = AgreementPurpose::joined;
  for (int rank = 0; rank < 2; ++rank) ranks->begin(rank, next);
  ranks->begin(3, ranks->request());
  ranks->join(3);
  ranks->begin(2, next);
  ranks->join();
  ASSERT_TRUE(ranks->result(3).error);
  EXPECT_EQ(ranks->result(3).error->result(), taccRemoteError) << ranks->result(3).error->what();
  EXPECT_NE(std::string(ranks->result(3).error->what()).find("without it"), std::string::npos)
      << ranks->result(3).error->what();
  for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(ranks->result(rank).decision) << "rank " << rank;
}

// As a process that was stopped while the others went on, and have ended since.
TEST_P(AgreementOver, whoWasLeftBehindDoesNotTakeTheOthersForDead) {
  for (const int late : {0, 2}) {
    const std::unique_ptr<Ranks> ranks = goneOnWithout(late, 3, GetParam());
    for (int rank = 0; rank < 3; ++rank)
      if (rank != late) ranks->endProcess(rank);
    ranks->begin(late, ranks->request());
    ranks->join();
    ASSERT_TRUE(ranks->result(late).error);
    EXPECT_EQ(ranks->result(late).error->result(), taccRemoteError) << ranks->result(late).error->what();
  }
}

TEST_P(AgreementOver, differentRequestsAreAnErrorForAll) {
  Ranks ranks(3, GetParam());
  ranks.losesWhoFails = false;
  ranks.begin(0, ranks.request());
  ranks.begin(1, ranks.request());
  AgreementRequest other = ranks.request();
  other.purpose = AgreementPurpose::flags;
  ranks.begin(2, other);
  ranks.join();
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(ranks.result(rank).error) << "rank " << rank;
    EXPECT_EQ(ranks.result(rank).error->result(), taccInvalidUsage) << ranks.result(rank).error->what();
  }
}

/// Connects to all doors, again and again, and says nothing, or what nobody understands.
class Strangers {
 public:
  explicit Strangers(const std::vector<SurvivorPlace>& places) {
    for (int kind = 0; kind < 2; ++kind)
      threads_.emplace_back([this, places, kind] {
        const std::string garbage(300, 'x');
        while (!stop_) {
          for (const SurvivorPlace& place : places) {
            Attempt attempt = place.port == 0
                                  ? connectUnix(place.name.data())
                                  : connectTcp(InetAddress(place.address, place.port), 0.1, Deadline(1), Interrupt(0));
            if (!attempt.socket.valid()) continue;
            ++visits;
            if (kind == 0) (void)::send(attempt.socket.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
            kept_.at(static_cast<std::size_t>(kind)).push_back(std::move(attempt.socket));
          }
          if (kept_[static_cast<std::size_t>(kind)].size() > 150) kept_[static_cast<std::size_t>(kind)].clear();
        }
      });
  }
  ~Strangers() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  std::atomic<int> visits{0};

 private:
  std::atomic<bool> stop_{false};
  std::array<std::vector<FileDescriptor>, 2> kept_;
  std::vector<std::thread> threads_;
};

TEST_P(AgreementOver, strangersHoldUpNobody) {
  if (GetParam() == Kind::part) GTEST_SKIP() << "nobody else can know the names of its sockets";
  Ranks ranks(6, GetParam());
  ranks.lose(0);
  ranks.lose(4);
  const Strangers strangers(ranks.places());
  while (strangers.visits < 100) std::this_thread::yield();
  ranks.beginAll(ranks.request());
  ranks.expectMet({1, 2, 3, 5});
}

INSTANTIATE_TEST_SUITE_P(Kinds, AgreementOver, testing::Values(Kind::unixSockets, Kind::tcp, Kind::part),
                         [](const testing::TestParamInfo<Kind>& kind) {
                           return std::string(kind.param == Kind::tcp    ? "Tcp"
                                              : kind.param == Kind::part ? "Part"
                                                                         : "Unix");
                         });

// A host that has gone refuses nothing: that its ranks cannot be reached is found out for all of them at a time.
TEST(Agreement, hostsThatHaveGoneCostSecondsNotOneForEachRank) {
  const Abyss abyss;
  Ranks ranks(64, Kind::tcp);
  for (int rank = 0; rank < 20; ++rank) ranks.lose(rank, &abyss.place());
  for (int rank = 60; rank < 64; ++rank) ranks.lose(rank, &abyss.place());
  const double start = now();
  ranks.beginAll(ranks.request());
  std::vector<int> others;
  for (int rank = 20; rank < 60; ++rank) others.push_back(rank);
  ranks.expectMet(others);
  EXPECT_LT(now() - start, 30);
}

}  // namespace
}  // namespace tacc

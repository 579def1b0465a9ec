// HandRound: drawn offers of 2 to 16 ranks, strangers that send whatever they like, ranks that do not come or have no
// descriptor left.
#include "transports/shm/hand_round.hpp"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "support/child_process.hpp"
#include "support/stranger_datagram.hpp"
#include "transports/shm/shared_memory.hpp"

namespace tacc {
namespace {

using testing::HasSubstr;

constexpr std::size_t pieceBytes = 4096;
constexpr auto patience = std::chrono::seconds(60);

Key makeKey() {
  const Nonce random = makeNonce();
  Key key;
  std::ranges::copy(random, key.begin());
  return key;
}

/// Fails the test instead of waiting for ever.
HandRound::Look lookUntil(std::chrono::steady_clock::time_point end) {
  return [end](int missing, const std::function<bool()>&) {
    if (std::chrono::steady_clock::now() > end)
      throw std::runtime_error("rank " + std::to_string(missing) + " is late");
  };
}

/// What a piece holds, so that whoever is handed it knows whose it is.
std::uint64_t markOf(unsigned round, int rank, std::size_t piece) {
  return (std::uint64_t{round} << 32) + static_cast<std::uint64_t>(rank) * 16 + piece + 1;
}

/// How many pieces each rank offers in each round, equal on all ranks.
std::vector<std::vector<std::size_t>> drawOffers(std::mt19937& draw, int ranks, unsigned rounds) {
  std::vector<std::vector<std::size_t>> offers(rounds, std::vector<std::size_t>(static_cast<std::size_t>(ranks)));
  for (auto& round : offers)
    for (std::size_t& pieces : round) pieces = draw() % (HandRound::mostOffered + 1);
  return offers;
}

/// A rank's part of one round: its own pieces are offered, the others' are what they should be.
void takePart(HandRound& self, int rank, unsigned number, const std::vector<std::size_t>& counts) {
  std::vector<SharedMemory> own;
  std::vector<OfferedMemory> offered;
  std::vector<bool> givers;
  for (const std::size_t count : counts) givers.push_back(count > 0);
  for (std::size_t piece = 0; piece < counts[static_cast<std::size_t>(rank)]; ++piece) {
    own.push_back(SharedMemory::create(pieceBytes, "piece"));
    const std::uint64_t mark = markOf(number, rank, piece);
    std::memcpy(own.back().data(), &mark, sizeof mark);
    offered.push_back({mark, own.back().fd(), pieceBytes});
  }
  auto received = self.run(offered, givers, lookUntil(std::chrono::steady_clock::now() + patience));
  std::vector<std::size_t> found(counts.size());
  for (ReceivedMemory& one : received) {
    ASSERT_NE(one.rank, rank);
    const std::uint64_t expected = markOf(number, one.rank, found[static_cast<std::size_t>(one.rank)]++);
    EXPECT_EQ(one.id, expected);
    EXPECT_EQ(one.bytes, pieceBytes);
    const SharedMemory theirs = SharedMemory::map(std::move(one.fd), one.bytes, "piece");
    std::uint64_t mark;
    std::memcpy(&mark, theirs.data(), sizeof mark);
    EXPECT_EQ(mark, expected);
  }
  found[static_cast<std::size_t>(rank)] = counts[static_cast<std::size_t>(rank)];
  EXPECT_EQ(found, counts);
}

void runDrawn(unsigned seed, int ranks, unsigned rounds) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(ranks) + " ranks");
  std::mt19937 draw(seed);
  const auto offers = drawOffers(draw, ranks, rounds);
  const Key key = makeKey();
  std::vector<std::thread> team;
  for (int rank = 0; rank < ranks; ++rank) {
    team.emplace_back([&, rank, pauses = std::mt19937(seed + static_cast<unsigned>(rank))]() mutable {
      HandRound self(key, ranks, rank);
      for (unsigned round = 0; round < rounds; ++round) {
        if (pauses() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(pauses() % 3000));
        takePart(self, rank, round, offers[round]);
      }
    });
  }
  for (std::thread& one : team) one.join();
}

/// Names that are bound for a round now, by anybody.
std::vector<std::string> boundNames() {
  std::vector<std::string> names;
  std::ifstream table("/proc/net/unix");
  for (std::string line; std::getline(table, line);)
    if (const auto at = line.find("@tacc-h-"); at != std::string::npos) names.push_back(line.substr(at + 1));
  return names;
}

TEST(HandRound, EveryRankGetsWhatTheOthersOffer) {
  const int before = test::countOpenDescriptors();
  for (unsigned seed = 1; seed <= 30; ++seed) runDrawn(seed, 2 + static_cast<int>(seed % 15), 20);
  EXPECT_EQ(test::countOpenDescriptors(), before);
}

TEST(HandRound, OneRankHandsItsMemoryToNobody) {
  HandRound alone(makeKey(), 1, 0);
  const SharedMemory memory = SharedMemory::create(pieceBytes, "piece");
  const std::vector<OfferedMemory> offered{{1, memory.fd(), pieceBytes}};
  EXPECT_TRUE(alone.run(offered, {true}, lookUntil({})).empty());
}

TEST(HandRound, StrangersAreDroppedWithWhatTheyBring) {
  const int before = test::countOpenDescriptors();
  std::atomic<bool> isOver = false;
  std::atomic<int> sent = 0;
  std::thread stranger([&] {
    std::mt19937 draw(7);
    const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    while (!isOver) {
      for (const std::string& name : boundNames()) {
        std::vector<char> bytes(draw() % 3 == 0 ? 72 : draw() % 300);  // 72: as long as one of a rank
        for (char& byte : bytes) byte = static_cast<char>(draw());
        sent += test::sendAsStranger(socket, AbstractAddress(name), std::as_bytes(std::span(bytes)),
                                     draw() % 2 == 0 ? 0 : draw() % 40);
      }
    }
    ::close(socket);
  });
  for (unsigned seed = 1; seed <= 20 || (sent < 1000 && seed <= 2000); ++seed)
    runDrawn(seed, 2 + static_cast<int>(seed % 5), 20);
  isOver = true;
  stranger.join();
  EXPECT_GE(sent, 1000);
  EXPECT_EQ(test::countOpenDescriptors(), before);
}

TEST(HandRound, AFloodDoesNotKeepARankFromLooking) {
  const int before = test::countOpenDescriptors();
  std::atomic<bool> isOver = false;
  std::thread flood([&] {
    const std::array<std::byte, 1> byte{};
    const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    while (!isOver)
      for (const std::string& name : boundNames())
        while (!isOver && test::sendAsStranger(socket, AbstractAddress(name), byte, 1)) {
        }
    ::close(socket);
  });
  HandRound self(makeKey(), 2, 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  EXPECT_THROW(self.run({}, {false, true}, lookUntil(end)), std::runtime_error);
  EXPECT_LT(std::chrono::steady_clock::now() - end, std::chrono::seconds(10));
  isOver = true;
  flood.join();
  EXPECT_EQ(test::countOpenDescriptors(), before);
}

TEST(HandRound, AnotherCommunicatorsRanksAreStrangers) {
  const SharedMemory memory = SharedMemory::create(pieceBytes, "piece");
  const std::vector<OfferedMemory> offered{{1, memory.fd(), pieceBytes}};
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  std::thread other([&] {
    HandRound self(makeKey(), 2, 1);
    EXPECT_THROW(self.run(offered, {false, true}, lookUntil(end)), std::runtime_error);
  });
  HandRound self(makeKey(), 2, 0);
  EXPECT_THROW(self.run({}, {false, true}, lookUntil(end)), std::runtime_error);
  other.join();
}

TEST(HandRound, WhatARankLeftBehindIsSeenOnceItHasGone) {
  const Key key = makeKey();
  const SharedMemory memory = SharedMemory::create(pieceBytes, "piece");
  const std::vector<OfferedMemory> offered{{5, memory.fd(), pieceBytes}};
  std::thread giver;
  bool wasLookedFor = false;
  HandRound self(key, 2, 0);
  const auto received = self.run({}, {false, true}, [&](int missing, const std::function<bool()>& hasCome) {
    EXPECT_EQ(missing, 1);
    if (wasLookedFor) return;
    wasLookedFor = true;
    EXPECT_FALSE(hasCome());
    giver = std::thread([&] {
      HandRound rank(key, 2, 1);
      (void)rank.run(offered, {false, true}, lookUntil(std::chrono::steady_clock::now() + patience));
    });
    giver.join();
    EXPECT_TRUE(hasCome());
  });
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].id, 5u);
}

TEST(HandRound, ARankThatDoesNotTakeIsLookedFor) {
  const SharedMemory memory = SharedMemory::create(pieceBytes, "piece");
  const std::vector<OfferedMemory> offered{{1, memory.fd(), pieceBytes}};
  std::vector<int> missing;
  HandRound self(makeKey(), 3, 1);
  EXPECT_THROW(self.run(offered, {false, true, false},
                        [&](int rank, const std::function<bool()>&) {
                          missing.push_back(rank);
                          if (rank == 2) throw std::runtime_error("dead");
                        }),
               std::runtime_error);
  EXPECT_EQ(missing, (std::vector<int>{0, 2}));
}

TEST(HandRound, MoreThanTheMostIsRefused) {
  const SharedMemory memory = SharedMemory::create(pieceBytes, "piece");
  const std::vector<OfferedMemory> offered(HandRound::mostOffered + 1, {1, memory.fd(), pieceBytes});
  HandRound self(makeKey(), 2, 0);
  EXPECT_THROW((void)self.run(offered, {true, false}, lookUntil({})), Error);
}

/// With `left` descriptors to spare: what the rank that is handed two pieces says; empty when all goes well.
std::string takeWith(int left) {
  const Key key = makeKey();
  test::ChildProcess giver([&] {
    const SharedMemory memory = SharedMemory::create(pieceBytes, "piece");
    const std::vector<OfferedMemory> offered{{1, memory.fd(), pieceBytes}, {2, memory.fd(), pieceBytes}};
    HandRound self(key, 2, 1);
    (void)self.run(offered, {false, true}, lookUntil(std::chrono::steady_clock::now() + patience));
    return true;
  });
  int told[2];
  EXPECT_EQ(::pipe(told), 0);
  test::ChildProcess taker([&] {
    const rlimit limit{64, 64};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    std::vector<int> taken;
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) taken.push_back(fd);
    for (int i = 0; i < left; ++i) ::close(taken[taken.size() - 1 - static_cast<std::size_t>(i)]);
    HandRound self(key, 2, 0);
    try {
      const auto received = self.run({}, {false, true}, lookUntil(std::chrono::steady_clock::now() + patience));
      return received.size() == 2;
    } catch (const Error& error) {
      return ::write(told[1], error.what(), std::strlen(error.what())) > 0;
    }
  });
  EXPECT_EQ(taker.wait(), 0);
  giver.kill();  // where the other one could not even bind its name, it still waits
  ::close(told[1]);
  std::string text(1024, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(told[0], text.data(), text.size()))));
  ::close(told[0]);
  return text;
}

TEST(HandRound, WithoutADescriptorItSaysSo) {
  for (int left = 0; left <= 2; ++left) {
    SCOPED_TRACE(left);
    EXPECT_THAT(takeWith(left), HasSubstr("Too many open files"));
  }
  EXPECT_EQ(takeWith(3), "");
}

}  // namespace
}  // namespace tacc

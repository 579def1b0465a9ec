// Pipes between ranks that are threads here, each with pipes of its own to all others: drawn lengths and orders, and
// what ends their use.
#include "transports/shm/page_pipes.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/index.hpp"
#include "transports/shm/shared_memory.hpp"

namespace tacc {
namespace {

using State = PagePipes::State;

/// The descriptors of this process that are pipes.
std::set<int> pipesOfProcess() {
  std::set<int> pipes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    struct stat status {};
    if (::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode)) pipes.insert(fd);
  }
  return pipes;
}

class PagePipesTest : public testing::Test {
 protected:
  struct Rank {
    Rank(const NodeSegment& segment, int rank, int ranks)
        : waiter(segment, rank, std::vector<int>(at(ranks), ::getpid()), nullptr, {}, 20,
                 [] { return std::string("a call"); }),
          pipes(segment, rank, waiter, std::vector<int>(at(ranks), ::getpid())) {}
    Waiter waiter;
    PagePipes pipes;
  };

  void make(int ranks) {
    const NodeGeometry geometry{
        .ranks = ranks, .eagerBytes = 4096, .arenaBytes = 4096, .pairBytes = 4096, .hasMessages = false};
    ranks_.clear();
    memory_ = SharedMemory::create(NodeSegment::bytesFor(geometry), "pipes", Reserve::onTouch);
    segment_ = NodeSegment(memory_.data(), geometry);
    for (int rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<Rank>(segment_, rank, ranks));
  }
  State least() {
    State least = State::open;
    for (const auto& rank : ranks_) {
      rank->pipes.check();
      least = std::min(least, rank->pipes.state());
    }
    return least;
  }
  void open() {
    for (int step = 0; step < 2; ++step) {
      const State all = least();
      for (const auto& rank : ranks_) rank->pipes.advance(all);
    }
  }
  PagePipes& pipesOf(int rank) { return ranks_[at(rank)]->pipes; }

  SharedMemory memory_;
  NodeSegment segment_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

/// What a rank gives to another one, by a generator that both have.
std::vector<std::byte> drawMessage(std::mt19937& random) {
  const std::size_t most = random() % 4 == 0 ? std::size_t{3} << 20 : std::size_t{20'000};
  std::vector<std::byte> message(1 + random() % most);
  const auto salt = random();
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = static_cast<std::byte>(salt + i * 7 + (i >> 12) * 13);
  return message;
}

TEST_F(PagePipesTest, carryWhatIsGivenInItsOrder) {
  constexpr int ranks = 2, rounds = 60;
  make(ranks);
  open();
  ASSERT_EQ(least(), State::open);
  const auto seedOf = [](int from, int to) { return static_cast<unsigned>(from * 10 + to); };
  const auto play = [&](int rank) {
    std::vector<std::mt19937> giving, reading;
    for (int peer = 0; peer < ranks; ++peer) {
      giving.emplace_back(seedOf(rank, peer));
      reading.emplace_back(seedOf(peer, rank));
    }
    std::mt19937 random(static_cast<unsigned>(rank));
    std::vector<std::byte> read;
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      std::vector<std::vector<std::byte>> given;  // stays as it is until all have read it
      for (int peer = 0; peer < ranks; ++peer) {
        if (peer == rank) continue;
        given.push_back(drawMessage(giving[at(peer)]));
        pipesOf(rank).give(peer, given.back().data(), given.back().size());
        if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
      }
      for (int i = 1; i < ranks; ++i) {
        const int peer = (rank + i) % ranks;
        const std::vector<std::byte> expected = drawMessage(reading[at(peer)]);
        read.assign(expected.size(), std::byte{0});
        const std::size_t first = random() % read.size();
        pipesOf(rank).read(peer, read.data(), first);
        pipesOf(rank).read(peer, read.data() + first, read.size() - first);
        EXPECT_TRUE(read == expected) << "rank " << rank << " from " << peer << ", round " << round;
      }
      Waiter& waiter = ranks_[at(rank)]->waiter;
      waiter.publish(segment_.clock(rank).ticks, round);
      for (int peer = 0; peer < ranks; ++peer)
        if (peer != rank) pipesOf(rank).wait(segment_.clock(peer).ticks, round, peer);
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(play, rank);
  for (std::thread& thread : threads) thread.join();
}

TEST_F(PagePipesTest, areThereOnceAllHaveOpenedThem) {
  make(2);
  EXPECT_EQ(least(), State::none);
  pipesOf(0).advance(State::none);
  EXPECT_EQ(pipesOf(0).state(), State::offered);
  pipesOf(0).advance(State::none);  // the other one has offered nothing yet
  EXPECT_EQ(pipesOf(0).state(), State::offered);
  pipesOf(1).advance(State::none);
  pipesOf(1).advance(State::offered);
  EXPECT_EQ(pipesOf(1).state(), State::open);
  EXPECT_EQ(least(), State::offered);
  pipesOf(0).advance(State::offered);
  EXPECT_EQ(least(), State::open);
}

/// As of a process that becomes a daemon: numbers may be those of the program's files by then, which stay open.
TEST_F(PagePipesTest, endWhereTheProgramHasClosedThem) {
  make(2);
  const std::set<int> before = pipesOfProcess();
  open();
  ASSERT_EQ(least(), State::open);
  std::vector<int> numbers;
  std::ranges::set_difference(pipesOfProcess(), before, std::back_inserter(numbers));
  ASSERT_EQ(numbers.size(), 4U);  // of two pipes, by who gives and who reads
  const int file = ::memfd_create("of the program", MFD_CLOEXEC);
  for (const int fd : numbers) ASSERT_EQ(::dup2(file, fd), fd);
  EXPECT_EQ(least(), State::refused);
  open();  // and are not made again
  EXPECT_EQ(least(), State::refused);
  ranks_.clear();
  const auto haveFile = [&] {
    return std::ranges::all_of(numbers, [&](int fd) { return identify(fd) == identify(file); });
  };
  EXPECT_TRUE(haveFile());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(haveFile() ? 0 : 1);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "a child has lost them";
  for (const int fd : numbers) ::close(fd);
  ::close(file);
}

/// A user's pipes have room for so many pages, and other programs want some too.
TEST_F(PagePipesTest, areFewInAProcess) {
  std::vector<std::unique_ptr<Rank>> kept;
  make(2);
  int opened = 0;
  for (; opened < 100; ++opened) {
    open();
    if (least() != State::open) {
      // One rank has room for its own, and gives it up as the other one has none.
      open();
      EXPECT_EQ(pipesOf(0).state(), State::refused);
      EXPECT_EQ(pipesOf(1).state(), State::refused);
      break;
    }
    for (auto& rank : ranks_) kept.push_back(std::move(rank));
    ranks_.clear();
    for (int rank = 0; rank < 2; ++rank) ranks_.push_back(std::make_unique<Rank>(segment_, rank, 2));
  }
  EXPECT_GE(opened, 1);
  EXPECT_LE(opened, 4);
  kept.clear();
  make(2);
  open();
  EXPECT_EQ(least(), State::open);
  make(mostPiped + 1);
  open();
  EXPECT_EQ(least(), State::refused);
}

TEST_F(PagePipesTest, tellWhatCannotBeGiven) {
  make(2);
  open();
  ASSERT_EQ(least(), State::open);
  void* const closed = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  try {
    pipesOf(0).give(1, closed, 100);
    FAIL() << "memory that nobody may read was given";
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccSystemError);
    EXPECT_THAT(error.what(), testing::HasSubstr("cannot give rank 1 the 100 bytes at"));
    EXPECT_THAT(error.what(), testing::HasSubstr("TACC_CMA=off"));
  }
  ::munmap(closed, 4096);
}

TEST_F(PagePipesTest, tellThatWhoGivesHasGone) {
  make(2);
  open();
  ASSERT_EQ(least(), State::open);
  const char word = 'a';
  pipesOf(0).give(1, &word, 1);
  ranks_[0].reset();
  char read[2] = {};
  try {
    pipesOf(1).read(0, read, sizeof read);
    FAIL() << "more was read than was given";
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccRemoteError);
    EXPECT_THAT(error.what(), testing::HasSubstr("rank 0"));
  }
  EXPECT_EQ(read[0], 'a');
}

/// As a batch system does it with a whole job: time in which no rank ran is none in which one waited for others.
TEST(SuspendedPipes, GoOnAfterLongerThanTheirTimeOut) {
  constexpr NodeGeometry geometry{
      .ranks = 2, .eagerBytes = 4096, .arenaBytes = 4096, .pairBytes = 4096, .hasMessages = false};
  constexpr double timeout = 0.5;
  const SharedMemory memory = SharedMemory::create(NodeSegment::bytesFor(geometry), "pipes", Reserve::onTouch);
  const NodeSegment segment(memory.data(), geometry);
  const int parent = ::getpid();
  // Meets the other rank so often, and has pipes then.
  const auto open = [&](int rank, Waiter& waiter, PagePipes& pipes) {
    for (std::uint32_t step = 1; step <= 3; ++step) {
      if (step > 1) pipes.advance(step == 2 ? State::none : State::offered);
      waiter.publish(segment.clock(rank).ticks, step);
      waiter.wait(segment.clock(1 - rank).ticks, step, 1 - rank);
    }
  };
  const auto play = [&](int rank, int child, double limit, const auto& body) {
    Waiter waiter(segment, rank, {parent, child}, nullptr, {}, limit, [] { return std::string("a call"); });
    PagePipes pipes(segment, rank, waiter, {parent, child});
    open(rank, waiter, pipes);
    ASSERT_EQ(pipes.state(), State::open);
    body(pipes);
  };
  const int child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    char read = 0;
    try {
      play(1, ::getpid(), timeout, [&](PagePipes& pipes) { pipes.read(0, &read, 1); });
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    ::_exit(read == 'a' ? 0 : 1);
  }
  play(0, child, 20, [&](PagePipes& pipes) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::kill(child, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(1300));
    ::kill(child, SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const char word = 'a';
    pipes.give(1, &word, 1);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
}

}  // namespace
}  // namespace tacc

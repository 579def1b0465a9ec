// Copies that two processes make together: drawn lengths, places and delays, and what a failure leaves.
#include "engine/shm/shared_copies.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "transports/shm/cma.hpp"
#include "transports/shm/shared_memory.hpp"

namespace tacc {
namespace {

constexpr NodeGeometry geometry{
    .ranks = 2, .eagerBytes = 4096, .arenaBytes = 4096, .pairBytes = 4096, .hasMessages = false};
constexpr int reader = 0, owner = 1;
constexpr std::size_t memoryBytes = std::size_t{5} << 20;

std::byte patternOf(std::size_t at) { return static_cast<std::byte>(at * 7 + (at >> 8) * 13); }

/// One end of the copies.
struct End {
  End(const NodeSegment& segment, int rank, const std::vector<int>& processes)
      : waiter(segment, rank, processes, nullptr, {}, 20, [] { return std::string("a copy"); }),
        memory(rank, waiter, processes),
        copies(segment, rank, waiter, memory) {}
  Waiter waiter;
  RemoteMemory memory;
  SharedCopies copies;
};

/// The owner's process: the memory of that name is its own, with the pattern in it.
class SharedCopiesTest : public testing::Test {
 protected:
  void SetUp() override {
    memory_ = SharedMemory::create(NodeSegment::bytesFor(geometry), "copies", Reserve::onTouch);
    segment_ = NodeSegment(memory_.data(), geometry);
    from_.assign(memoryBytes, std::byte{0});
    to_.assign(memoryBytes, std::byte{0xff});
    std::uint64_t word = 1;
    if (!probeCma(::getpid(), &word, word) || !mayWriteRemote()) GTEST_SKIP() << "the kernel moves no memory here";
  }

  /// `body(end)` in the owner's process, until it returns.
  void startOwner(const std::function<void(End&)>& body) {
    const int parent = ::getpid();
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
      for (std::size_t i = 0; i < from_.size(); ++i) from_[i] = patternOf(i);
      End end(segment_, owner, {parent, ::getpid()});
      end.waiter.publish(ready(), 1);
      int code = 0;
      try {
        body(end);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "owner: %s\n", error.what());
        code = 1;
      }
      ::_exit(code);
    }
    end_ = std::make_unique<End>(segment_, reader, std::vector<int>{parent, child_});
    end_->waiter.wait(ready(), 1, owner);
  }
  /// The owner, that helps until it is told to stop, now and then only after a while.
  void startHelper(unsigned seed) {
    startOwner([this, seed](End& end) {
      std::mt19937 random(seed);
      while (stop().load() == 0) {
        if (!end.copies.help(reader, {OwnMemory{from_.data(), from_.size()}, {}})) continue;
        if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
      }
    });
  }
  int endOwner() {
    stop() = 1;
    int status = 0;
    ::waitpid(std::exchange(child_, -1), &status, 0);
    return status;
  }
  void TearDown() override {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
  }

  std::atomic<std::uint32_t>& ready() const { return segment_.clock(owner).ticks; }
  std::atomic<std::uint32_t>& stop() const { return segment_.clock(reader).ticks; }
  std::size_t countWrong(std::size_t from, std::size_t to, std::size_t bytes) const {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bytes; ++i) wrong += to_[to + i] != patternOf(from + i) ? 1 : 0;
    return wrong;
  }

  SharedMemory memory_;
  NodeSegment segment_;
  std::vector<std::byte> from_, to_;
  std::unique_ptr<End> end_;  // the reader's
  pid_t child_ = -1;
};

struct Drawn {
  std::size_t from, to, bytes;
};

/// Copies side by side, with gaps of a few bytes at which nothing may be written.
std::vector<Drawn> drawCopies(std::mt19937& random) {
  std::vector<Drawn> drawn(1 + random() % openCopies);
  std::size_t at = random() % 100;
  for (Drawn& one : drawn) {
    one = {random() % 4096, at, 1 + random() % (std::size_t{1} << (4 + random() % 17))};
    at += one.bytes + 1 + random() % 100;
  }
  return drawn;
}

TEST_F(SharedCopiesTest, areWholeWhoeverComesWhen) {
  startHelper(7);
  std::mt19937 random(11);
  std::uint32_t writtenByOwner = 0;
  for (int round = 0; round < 400; ++round) {
    const std::vector<Drawn> copies = drawCopies(random);
    std::ranges::fill(to_, std::byte{0xff});
    for (const Drawn& one : copies)
      end_->copies.open(Collective::allToAll, owner, from_.data() + one.from, to_.data() + one.to, one.bytes);
    ASSERT_EQ(end_->copies.hasRoom(), copies.size() < openCopies);
    if (random() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    end_->copies.finish();
    std::size_t behind = 0;
    for (const Drawn& one : copies) {
      ASSERT_EQ(countWrong(one.from, one.to, one.bytes), 0u) << "round " << round << ", " << one.bytes << " bytes";
      ASSERT_TRUE(std::all_of(to_.begin() + static_cast<std::ptrdiff_t>(behind),
                              to_.begin() + static_cast<std::ptrdiff_t>(one.to),
                              [](std::byte b) { return b == std::byte{0xff}; }));
      behind = one.to + one.bytes;
    }
  }
  for (int i = 0; i < openCopies; ++i) writtenByOwner += segment_.openCopy(reader, i).written.load();
  EXPECT_GT(writtenByOwner, 0u) << "the owner has made no part";
  EXPECT_EQ(endOwner(), 0);
}

TEST_F(SharedCopiesTest, lastUntilASlowOwnerHasWritten) {
  startOwner([this](End& end) {
    OpenCopy& copy = segment_.openCopy(reader, 0);
    while (copy.claims.load() == 0) std::this_thread::yield();
    const std::size_t begin = memoryBytes - 2 * copy.pieceBytes.load();
    copy.claims.fetch_sub(2);  // two pieces at the back
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (!end.memory.tryWrite(reader, to_.data() + begin, from_.data() + begin, memoryBytes - begin))
      throw std::runtime_error("the kernel does not write");
    end.waiter.publish(copy.written, 2);
    while (stop().load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // others still read from it
  });
  end_->copies.open(Collective::allToAll, owner, from_.data(), to_.data(), memoryBytes);
  while (segment_.openCopy(reader, 0).claims.load() % 65536 == memoryBytes / segment_.openCopy(reader, 0).pieceBytes)
    std::this_thread::yield();
  end_->copies.finish();
  EXPECT_EQ(countWrong(0, 0, memoryBytes), 0u);
  EXPECT_EQ(endOwner(), 0);
}

TEST_F(SharedCopiesTest, areReadWhereNobodyHelps) {
  startOwner([this](End&) {
    while (stop().load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  end_->copies.open(Collective::allToAll, owner, from_.data() + 3, to_.data() + 5, memoryBytes - 8);
  end_->copies.finish();
  EXPECT_EQ(countWrong(3, 5, memoryBytes - 8), 0u);
  EXPECT_EQ(endOwner(), 0);
}

TEST_F(SharedCopiesTest, whatIsAbandonedIsNobodysToWrite) {
  startOwner([this](End& end) {
    while (stop().load() == 0) end.copies.help(reader, {OwnMemory{from_.data(), from_.size()}, {}});
  });
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    std::ranges::fill(to_, std::byte{0xff});
    end_->copies.open(Collective::allToAll, owner, from_.data(), to_.data(), memoryBytes);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
    ASSERT_EQ(end_->copies.abandon(), "");
    std::ranges::fill(to_, std::byte{0xff});
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
    ASSERT_TRUE(std::ranges::all_of(to_, [](std::byte b) { return b == std::byte{0xff}; })) << "round " << round;
  }
  EXPECT_GT(segment_.openCopy(reader, 0).written.load(), 0u) << "the owner has made no part";
  EXPECT_EQ(endOwner(), 0);
}

// As of an owner that is stopped between its claim and its last byte.
TEST_F(SharedCopiesTest, whoMayStillWriteIsNamed) {
  startOwner([this](End&) {
    while (stop().load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  end_->copies.open(Collective::allToAll, owner, from_.data(), to_.data(), memoryBytes);
  OpenCopy& copy = segment_.openCopy(reader, 0);
  copy.claims.fetch_sub(2);  // two pieces at the back
  EXPECT_NE(end_->copies.abandon().find("of which rank 1 was writing a part"), std::string::npos);
  end_->copies.open(Collective::allToAll, owner, from_.data(), to_.data(), memoryBytes);
  copy.claims.fetch_sub(2);
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    copy.written.fetch_add(2);
  });
  EXPECT_EQ(end_->copies.abandon(), "");
  late.join();
  EXPECT_EQ(endOwner(), 0);
}

TEST_F(SharedCopiesTest, whatTheOwnerCannotWriteIsRead) {
  startOwner([this](End&) {
    OpenCopy& copy = segment_.openCopy(reader, 0);
    while (copy.claims.load() == 0) std::this_thread::yield();
    copy.claims.fetch_sub(2);
    copy.refused = 1;  // the number of the first copy
    copy.written.fetch_add(2);
    while (stop().load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  end_->copies.open(Collective::allToAll, owner, from_.data(), to_.data(), memoryBytes);
  while (segment_.openCopy(reader, 0).written.load() == 0) std::this_thread::yield();
  end_->copies.finish();
  EXPECT_EQ(countWrong(0, 0, memoryBytes), 0u);
  EXPECT_EQ(endOwner(), 0);
}

TEST_F(SharedCopiesTest, claimsThatCannotBeAreErrors) {
  startOwner([this](End&) {
    while (stop().load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  for (const std::uint64_t wrong : {std::uint64_t{7}, std::uint64_t{60000} << 16 | 60001, std::uint64_t{1} << 40}) {
    end_->copies.open(Collective::allToAll, owner, from_.data(), to_.data(), memoryBytes);
    segment_.openCopy(reader, 0).claims.fetch_xor(wrong << (wrong == 7 ? 32 : 0));
    try {
      end_->copies.finish();
      ADD_FAILURE() << "a copy with claims of " << wrong << " has ended";
    } catch (const Error& error) {
      EXPECT_EQ(error.result(), taccInternalError) << error.what();
    }
    segment_.openCopy(reader, 0).written.fetch_add(100);  // nobody writes
    EXPECT_EQ(end_->copies.abandon(), "");
  }
  EXPECT_EQ(endOwner(), 0);
}

TEST_F(SharedCopiesTest, memoryThatIsNotOfTheCallIsRefused) {
  startOwner([this](End& end) {
    const std::array<OwnMemory, 2> half{OwnMemory{from_.data(), memoryBytes / 2}, {}};
    try {
      while (!end.copies.help(reader, half)) {
      }
    } catch (const Error& error) {
      if (error.result() == taccInternalError) return;
    }
    throw std::runtime_error("it was written");
  });
  end_->copies.open(Collective::allToAll, owner, from_.data() + 1, to_.data(), memoryBytes / 2);
  int status = 0;
  ::waitpid(std::exchange(child_, -1), &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(std::ranges::all_of(to_, [](std::byte b) { return b == std::byte{0xff}; }));
}

}  // namespace
}  // namespace tacc

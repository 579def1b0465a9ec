// Whole calls through the kernel, in which ranks that only give have a part in the others' copies, or that go through
// pipes: several readers of one owner, several owners of one reader. The ranks are processes, with as many cores as
// they need or not.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/registry.hpp"
#include "core/collective.hpp"
#include "engine/schedule.hpp"
#include "engine/shm/executor.hpp"
#include "transports/shm/cma.hpp"
#include "transports/shm/shared_memory.hpp"

namespace tacc {
namespace {

constexpr int ranks = 6;
constexpr std::size_t mostBytes = std::size_t{1} << 20;  // of a block
constexpr NodeGeometry geometry{
    .ranks = ranks, .eagerBytes = 4096, .arenaBytes = 4096, .pairBytes = 4096, .hasMessages = false};

std::byte valueOf(int rank, int call, std::size_t at) {
  return static_cast<std::byte>(rank * 31 + call * 7 + static_cast<int>(at % 251) + static_cast<int>(at >> 12));
}

struct Drawn {
  Collective collective;
  int root;
  std::size_t bytes;  // of a block
};

constexpr std::array rooted{Collective::broadcast, Collective::gather, Collective::scatter};
constexpr std::array all{Collective::broadcast, Collective::gather, Collective::scatter, Collective::allGather,
                         Collective::allToAll};

std::vector<Drawn> drawCalls(unsigned seed, int calls, std::span<const Collective> collectives) {
  std::mt19937 random(seed);
  std::vector<Drawn> drawn;
  for (int i = 0; i < calls; ++i) {
    const Collective collective = collectives[random() % collectives.size()];
    drawn.push_back({collective, static_cast<int>(random() % ranks), 1 + random() % mostBytes});
  }
  return drawn;
}

/// One rank's process. Buffers lie at the same addresses in all.
class Rank {
 public:
  Rank(const NodeSegment& segment, int rank, const std::vector<int>& processes, std::byte* send, std::byte* receive)
      : segment_(segment),
        rank_(rank),
        send_(send),
        receive_(receive),
        waiter_(segment, rank, processes, nullptr, {.spins = 20000}, 60, [] { return std::string("a call"); }),
        pipes_(segment, rank, waiter_, processes),
        executor_(segment, rank, waiter_, processes, pipes_) {}

  /// Whether the ranks have pipes from now on.
  bool openPipes() {
    meet();
    pipes_.advance(PagePipes::State::none);
    meet();
    pipes_.advance(PagePipes::State::offered);
    meet();
    return pipes_.state() == PagePipes::State::open;
  }

  static bool givesAll(const Drawn& call) {
    return call.collective == Collective::scatter || call.collective == Collective::allToAll;
  }
  /// Returns how many bytes of the result are wrong.
  std::size_t run(const Drawn& call, int number) {
    const bool takesAll = call.collective != Collective::broadcast && call.collective != Collective::scatter;
    const std::size_t given = call.bytes * (givesAll(call) ? ranks : 1), taken = call.bytes * (takesAll ? ranks : 1);
    for (std::size_t i = 0; i < given; ++i) send_[i] = valueOf(rank_, number, i);
    std::fill_n(receive_, taken + 64, std::byte{0xff});
    meet();
    const PlanRequest request{call.collective, ranks, call.root};
    const Program program = lower(makePlan(*findAlgorithm("oneshot"), request), rank_,
                                  {.input = Access::cma, .pipes = pipes_.state() == PagePipes::State::open});
    CallBuffers buffers{send_, receive_, given, taken, {}, {}};
    buffers.remoteSend.assign(ranks, send_);
    buffers.remoteReceive.assign(ranks, receive_);
    const Schedule schedule = makeSchedule(program, call.bytes, 1, {geometry.arenaBytes, 1});
    executor_.run(program, schedule, buffers, {.count = call.bytes, .elementBytes = 1, .reduce = {}});
    // What was given is this rank's again.
    std::fill_n(send_, given, std::byte{0xfe});
    meet();
    return countWrong(call, number);
  }

 private:
  void meet() {
    ++met_;
    waiter_.publish(wordOf(rank_), met_);
    for (int rank = 0; rank < ranks; ++rank) waiter_.wait(wordOf(rank), met_, rank);
  }
  std::atomic<std::uint32_t>& wordOf(int rank) const { return segment_.callLine(rank, 0).sequence; }
  std::size_t countWrong(const Drawn& call, int number) const {
    const auto wrong = [&](const std::byte* at, int from, std::size_t offset) {
      std::size_t count = 0;
      for (std::size_t i = 0; i < call.bytes; ++i) count += at[i] != valueOf(from, number, offset + i) ? 1 : 0;
      return count;
    };
    std::size_t sum = 0;
    switch (call.collective) {
      case Collective::broadcast:
        sum = wrong(receive_, call.root, 0);
        break;
      case Collective::scatter:
        sum = wrong(receive_, call.root, call.bytes * static_cast<std::size_t>(rank_));
        break;
      default:
        for (int from = 0; (rank_ == call.root || call.collective != Collective::gather) && from < ranks; ++from)
          sum += wrong(receive_ + call.bytes * static_cast<std::size_t>(from), from,
                       givesAll(call) ? call.bytes * static_cast<std::size_t>(rank_) : 0);
    }
    return sum;
  }

  NodeSegment segment_;
  int rank_;
  std::byte *send_, *receive_;
  Waiter waiter_;
  PagePipes pipes_;
  Executor executor_;
  std::uint32_t met_ = 0;
};

/// Runs the calls in a process a rank. Returns how many pieces of copies were written by who owned their sources.
std::uint32_t runAll(const std::vector<Drawn>& calls, bool usesPipes) {
  const SharedMemory memory = SharedMemory::create(NodeSegment::bytesFor(geometry), "runs", Reserve::onTouch);
  const NodeSegment segment(memory.data(), geometry);
  const auto allocate = [] {
    return static_cast<std::byte*>(
        ::mmap(nullptr, ranks * mostBytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  };
  std::byte *const send = allocate(), *const receive = allocate();
  // Each child learns the others' numbers from the segment, where it first puts its own.
  std::vector<int> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const int child = ::fork();
    EXPECT_GE(child, 0);
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    const auto numberOf = [&](int of) -> std::atomic<std::uint64_t>& { return segment.postTime(of).rows[0]; };
    numberOf(rank) = static_cast<std::uint64_t>(::getpid());
    std::vector<int> processes;
    for (int of = 0; of < ranks; ++of) {
      while (numberOf(of) == 0) ::usleep(100);
      processes.push_back(static_cast<int>(numberOf(of).load()));
    }
    int code = 0;
    try {
      Rank self(segment, rank, processes, send, receive);
      if (usesPipes && !self.openPipes()) throw std::runtime_error("no pipes");
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const std::size_t wrong = self.run(calls[i], static_cast<int>(i));
        if (wrong == 0) continue;
        std::fprintf(stderr, "rank %d, call %zu (%s of %zu bytes, root %d): %zu wrong\n", rank, i,
                     std::string(nameOf(calls[i].collective)).c_str(), calls[i].bytes, calls[i].root, wrong);
        code = 1;
      }
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      code = 1;
    }
    ::_exit(code);
  }
  for (const int child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::uint32_t written = 0;
  for (int rank = 0; rank < ranks; ++rank)
    for (int index = 0; index < openCopies; ++index) written += segment.openCopy(rank, index).written.load();
  ::munmap(send, ranks * mostBytes + 4096);
  ::munmap(receive, ranks * mostBytes + 4096);
  return written;
}

bool movesMemory() {
  std::uint64_t word = 1;
  return probeCma(::getpid(), &word, word) && mayWriteRemote();
}

TEST(SharedRuns, areRightAndRanksThatOnlyGiveHaveAPart) {
  if (!movesMemory()) GTEST_SKIP() << "the kernel moves no memory here";
  EXPECT_GT(runAll(drawCalls(20261129, 60, rooted), false), 0u) << "no owner has had a part";
}

/// Blocks are larger than a pipe, so that all ranks give and read at once.
TEST(PipedRuns, areRight) { EXPECT_EQ(runAll(drawCalls(20261130, 20, all), true), 0u); }

}  // namespace
}  // namespace tacc

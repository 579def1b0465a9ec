// Counters that come round: a communicator whose ranks have made almost 2^32 calls, ticks and messages goes on.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "api/handles.hpp"
#include "comm/membership.hpp"
#include "comm/node/node_communicator.hpp"
#include "drawn_program.hpp"

namespace tacc::test {
namespace {

constexpr int ranks = 3;
constexpr std::uint32_t half = 0x8000'0000;

/// Threads whose shared memory can be got at. `direct`: they know that they are threads, and read each other's memory.
class WrappingTeam {
 public:
  /// As if each of the counters had come to just before its end.
  explicit WrappingTeam(bool direct) : direct_(direct) {
    constexpr std::uint32_t calls = 0u - 6 * callSlots, ticks = 0u - 100, messages = 0u - 3;
    std::vector<Membership> members = makeThreadNode(ranks, Environment());
    segment_ = members[0].segment;
    memory_ = members[0].memory;
    for (int rank = 0; rank < ranks; ++rank) {
      for (std::uint32_t back = 0; back < callSlots; ++back) {
        segment_.callLine(rank, calls - back).sequence = calls - back;
        segment_.callNote(rank, calls - back).sequence = calls - back;
      }
      segment_.clock(rank).ticks = ticks;
    }
    passMessages(messages);
    std::vector<std::unique_ptr<Communicator>> made;
    for (int rank = 0; rank < ranks; ++rank) {
      Membership& member = members[static_cast<std::size_t>(rank)];
      member.access.sameProcess = direct;
      CommConfig config;
      config.operationTimeout = 20;
      made.push_back(std::make_unique<NodeCommunicator>(std::move(member), rank, ranks, config, Environment()));
      buffers_.push_back(std::make_unique<DrawnBuffers>(ranks));
    }
    comms_ = makeHandles(std::move(made));
  }
  ~WrappingTeam() {
    for (taccComm_t comm : comms_) EXPECT_EQ(taccCommDestroy(comm), taccSuccess);
  }
  WrappingTeam(const WrappingTeam&) = delete;
  WrappingTeam& operator=(const WrappingTeam&) = delete;

  const NodeSegment& segment() const { return segment_; }
  taccComm_t comm(int rank) const { return comms_[static_cast<std::size_t>(rank)]; }
  /// As if every pair had exchanged so many messages more. Between programs.
  void passMessages(std::uint32_t messages) {
    for (int sender = 0; sender < ranks; ++sender)
      for (int receiver = 0; receiver < ranks; ++receiver) {
        segment_.pairSend(sender, receiver).posted += messages;
        segment_.pairReceive(receiver, sender).taken += messages;
      }
  }
  void run(std::uint64_t seed) {
    std::vector<DrawnCall> calls = drawProgram(seed, ranks);
    // Library memory is handed round by processes, which these ranks are not.
    for (DrawnCall& call : calls) call.library = call.library && direct_;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        const auto i = static_cast<std::size_t>(rank);
        EXPECT_EQ(runProgram(calls, seed, Pace::drifting, comms_[i], rank, ranks, *buffers_[i]), "");
      });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  bool direct_;
  NodeSegment segment_;
  std::shared_ptr<void> memory_;
  std::vector<std::unique_ptr<DrawnBuffers>> buffers_;
  std::vector<taccComm_t> comms_;
};

class Counters : public testing::TestWithParam<bool> {};

TEST_P(Counters, comeRound) {
  WrappingTeam team(GetParam());
  for (std::uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed) team.run(seed);
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_LT(team.segment().callLine(rank, 0).sequence.load(), half);
    EXPECT_LT(team.segment().clock(rank).ticks.load(), half);
    for (int peer = 0; peer < ranks; ++peer)
      if (peer != rank) {
        EXPECT_LT(team.segment().pairSend(rank, peer).posted.load(), half);
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, Counters, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& suite) { return suite.param ? "direct" : "staged"; });

/// All pieces of a pair buffer have been used and taken; half of all numbers later, which went another way, they are
/// free.
TEST(Pieces, areFreeHoweverManyMessagesWentAnotherWay) {
  WrappingTeam team(false);
  const std::size_t bytes = team.segment().geometry().pairBytes / 2;  // for each of two receivers
  const std::vector<std::byte> data(bytes, std::byte{7});
  const auto send = [&] {
    const taccComm_t comm = team.comm(0);
    EXPECT_EQ(taccGroupStart(), taccSuccess);
    for (const int peer : {1, 2}) {
      EXPECT_EQ(taccSend(data.data(), bytes, taccUint8, peer, comm, nullptr), taccSuccess);
    }
    EXPECT_EQ(taccGroupEnd(), taccSuccess) << taccGetLastError(comm);
  };
  const auto receive = [&](int rank) {
    std::vector<std::byte> to(bytes);
    const taccComm_t comm = team.comm(rank);
    EXPECT_EQ(taccRecv(to.data(), bytes, taccUint8, 0, comm, nullptr), taccSuccess) << taccGetLastError(comm);
    EXPECT_EQ(to, data);
  };
  for (int round = 0; round < 2; ++round) {
    const auto isFull = [&](int peer) {
      const std::uint32_t taken = team.segment().pairReceive(peer, 0).taken.load(std::memory_order_acquire);
      return team.segment().pairSend(0, peer).posted.load(std::memory_order_acquire) - taken == pairWindow;
    };
    std::thread sender(send);
    while (round == 0 && !(isFull(1) && isFull(2))) std::this_thread::yield();
    std::thread one(receive, 1), other(receive, 2);
    for (std::thread* thread : {&sender, &one, &other}) thread->join();
    team.passMessages(half + 100);
  }
}

}  // namespace
}  // namespace tacc::test

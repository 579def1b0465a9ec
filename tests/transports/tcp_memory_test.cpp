// A rank that has no memory for what moves over shared TCP connections, and so has to end one: it says so at once in
// every channel that the connection was for, and not that it has lost the other rank.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "comm/allocation_fault.hpp"
#include "core/error.hpp"
#include "transports/transport_functions.hpp"

namespace tacc::test {
namespace {

constexpr std::chrono::seconds longestWait{20};

/// Two ranks, the whole and a part in which both have the same numbers; each rank waits for the other in the whole.
class TcpMemory : public testing::Test {
 protected:
  TcpMemory() : whole_(2), part_(2) {
    for (int rank = 0; rank < 2; ++rank)
      whole_[at(rank)] = makeTcpTransport({.rank = rank, .ranks = 2, .interfaces = "lo", .secret = {}});
    for (const auto& end : whole_) end->setPeers({whole_[0]->address(), whole_[1]->address()});
    for (int rank = 0; rank < 2; ++rank) part_[at(rank)] = whole_[at(rank)]->openChannel(1, rank, {0, 1}, 20);
    NetworkRequest sent, received;
    int out = 1, in = 0;
    whole_[1]->receive(0, 0, &in, sizeof in, received);
    whole_[0]->send(1, 0, &out, sizeof out, sent);
    progressUntil([&] { return static_cast<bool>(received.done); });
    for (int rank = 0; rank < 2; ++rank)
      whole_[at(rank)]->receive(1 - rank, 1, &awaited_[at(rank)], sizeof(int), waits_[at(rank)]);
  }
  ~TcpMemory() override { failAllocation(0); }

  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  void progressUntil(const std::function<bool()>& isDone) {
    for (const auto end = std::chrono::steady_clock::now() + longestWait; !isDone();) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      for (const auto& one : whole_) one->progress();
    }
  }
  /// The Error of rank 1's whole, which cannot know why.
  void expectLost(int rank) {
    std::string error;
    for (const auto end = std::chrono::steady_clock::now() + longestWait; error.empty();) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      try {
        whole_[at(rank)]->progress();
      } catch (const Error& found) {
        error = found.what();
      }
    }
    EXPECT_EQ(error.find("rank " + std::to_string(rank) + " has lost rank " + std::to_string(1 - rank)), 0U) << error;
  }

  std::vector<std::unique_ptr<NetworkTransport>> whole_, part_;
  int awaited_[2] = {};
  NetworkRequest waits_[2];
};

TEST_F(TcpMemory, ThatAPartLacksForTheRestOfAMessageIsToldToTheWhole) {
  const std::vector<std::byte> data(std::size_t{64} << 20);  // more than a socket takes
  NetworkRequest send;
  part_[0]->send(1, 0, data.data(), data.size(), send);
  ASSERT_FALSE(send.done);
  failAllocation(1, true);
  part_[0]->cancelReceives();
  failAllocation(0);
  EXPECT_THROW(whole_[0]->progress(), std::bad_alloc);
  expectLost(1);
}

TEST_F(TcpMemory, ThatOneLacksForWhatItReadsIsToldToTheOther) {
  const std::vector<std::byte> data(1000);
  NetworkRequest send, never;
  int in = 0;
  part_[1]->receive(0, 7, &in, sizeof in, never);
  part_[0]->send(1, 0, data.data(), data.size(), send);  // nobody has asked for it
  const auto isOut = [&] {
    failAllocation(1, true);
    try {
      whole_[1]->progress();
    } catch (const std::bad_alloc&) {
      failAllocation(0);
      return true;
    }
    failAllocation(0);
    return false;
  };
  for (const auto end = std::chrono::steady_clock::now() + longestWait; !isOut();)
    ASSERT_LT(std::chrono::steady_clock::now(), end);
  EXPECT_THROW(part_[1]->progress(), std::bad_alloc);
  expectLost(0);
}

}  // namespace
}  // namespace tacc::test

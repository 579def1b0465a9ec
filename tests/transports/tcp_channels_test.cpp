// Transports that share TCP connections: two ranks in one thread, over the loopback interface.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "transports/tcp/tcp_inbox.hpp"
#include "transports/transport_functions.hpp"

namespace tacc::test {
namespace {

constexpr std::chrono::seconds longestWait{20};
constexpr double silence = 20;

class TcpChannelsTest : public testing::TestWithParam<bool> {
 protected:
  TcpChannelsTest() {
    for (int rank = 0; rank < 2; ++rank)
      whole_.push_back(
          makeTcpTransport({.rank = rank, .ranks = 2, .interfaces = "lo", .secret = {}, .encrypts = GetParam()}));
    const std::vector<std::vector<std::byte>> addresses = {whole_[0]->address(), whole_[1]->address()};
    for (const auto& end : whole_) end->setPeers(addresses);
  }

  /// A channel in which the ranks are numbered the other way round.
  std::vector<std::unique_ptr<NetworkTransport>> turned(std::uint32_t number) {
    std::vector<std::unique_ptr<NetworkTransport>> ends(2);
    for (int rank = 0; rank < 2; ++rank)
      ends[static_cast<std::size_t>(1 - rank)] =
          whole_[static_cast<std::size_t>(rank)]->openChannel(number, 1 - rank, {1, 0}, silence);
    return ends;
  }

  static void until(const std::function<bool()>& isDone, const std::vector<NetworkTransport*>& all) {
    for (const auto end = std::chrono::steady_clock::now() + longestWait; !isDone();) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      for (NetworkTransport* one : all) one->progress();
    }
  }
  std::vector<NetworkTransport*> whole() const { return {whole_[0].get(), whole_[1].get()}; }

  std::vector<std::unique_ptr<NetworkTransport>> whole_;
};

std::optional<Error> errorIn(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

/// Progress of one brings the messages of the other, which is called for them once.
TEST_P(TcpChannelsTest, EachGetsItsOwnAndIsCalledForIt) {
  EXPECT_EQ(whole_[0]->nextChannel(std::vector{0, 1}), 1U);
  auto part = turned(1);
  ASSERT_TRUE(part[0] && part[1]);
  EXPECT_EQ(whole_[0]->nextChannel(std::vector{0, 1}), 2U);
  EXPECT_EQ(whole_[0]->openChannel(1, 0, {0, 1}, silence), nullptr);
  int calls = 0;
  part[0]->onNews([&] { ++calls; });
  // The same numbers in both.
  int sent[2] = {11, 22}, received[2] = {};
  NetworkRequest sends[2], receives[2];
  part[0]->receive(1, 7, &received[0], sizeof(int), receives[0]);
  whole_[1]->receive(0, 7, &received[1], sizeof(int), receives[1]);
  part[1]->send(0, 7, &sent[0], sizeof(int), sends[0]);
  whole_[0]->send(1, 7, &sent[1], sizeof(int), sends[1]);
  until([&] { return receives[0].done && receives[1].done; }, whole());
  EXPECT_EQ(received[0], 11);
  EXPECT_EQ(received[1], 22);
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(part[0]->arm()) << "something is there";
  EXPECT_TRUE(part[0]->progress());
  EXPECT_TRUE(part[0]->drain() && part[1]->drain());
}

TEST_P(TcpChannelsTest, AnErrorIsOfOneChannel) {
  auto part = turned(5);
  int small = 0;
  const std::vector<int> large(100, 3);
  NetworkRequest receive, send, others[2];
  part[0]->receive(1, 0, &small, sizeof small, receive);
  part[1]->send(0, 0, large.data(), large.size() * sizeof(int), send);
  until([&] { return static_cast<bool>(send.done); }, whole());
  int sent = 5, received = 0;
  whole_[1]->receive(0, 0, &received, sizeof received, others[0]);
  whole_[0]->send(1, 0, &sent, sizeof sent, others[1]);
  until([&] { return static_cast<bool>(others[0].done); }, whole());
  // The whole has read it, or does so now; who hears of it is the part.
  std::optional<Error> error;
  until(
      [&] {
        error = errorIn([&] { part[0]->progress(); });
        return error.has_value();
      },
      whole());
  EXPECT_STREQ(error->what(), "rank 0 expected at most 4 bytes from rank 1, which sent 400 (message 0)");
  EXPECT_FALSE(receive.done);
  part[0]->cancelReceives();
  part.clear();
  // A later channel has nothing of the old one's.
  part = turned(6);
  int got = 0;
  NetworkRequest next[2];
  part[0]->receive(1, 0, &got, sizeof got, next[0]);
  part[1]->send(0, 0, &sent, sizeof sent, next[1]);
  until([&] { return static_cast<bool>(next[0].done); }, whole());
  EXPECT_EQ(got, 5);
}

/// What is late for a channel that has been closed is dropped, and what was begun there is finished.
TEST_P(TcpChannelsTest, LateMessagesReachNoLaterChannel) {
  std::vector<std::byte> data(3'000'000, std::byte{1}), landing(data.size());
  for (std::uint32_t number = 1; number < 20; ++number) {
    auto part = turned(number);
    ASSERT_TRUE(part[0] && part[1]);
    NetworkRequest sends[3], receives[2];
    std::ranges::fill(data, static_cast<std::byte>(number));
    part[0]->receive(1, 0, landing.data(), landing.size(), receives[0]);
    for (std::uint32_t m = 0; m < 3; ++m) part[1]->send(0, m, data.data(), data.size(), sends[m]);
    if (number % 3 == 0) {
      until([&] { return static_cast<bool>(receives[0].done); }, whole());
      EXPECT_EQ(landing, data);
    } else {
      for (std::uint32_t look = 0; look < number % 7; ++look) whole_[number % 2]->progress();
    }
    part[number % 2].reset();
    std::ranges::fill(number % 2 == 0 ? landing : data, std::byte{99});
    for (std::uint32_t look = 0; look < number; ++look) whole_[0]->progress();
    part.clear();
    std::ranges::fill(data, std::byte{77});
    std::ranges::fill(landing, std::byte{77});
    int sent = static_cast<int>(number), got = 0;
    whole_[0]->receive(1, number, &got, sizeof got, receives[1]);
    whole_[1]->send(0, number, &sent, sizeof sent, sends[2]);
    until([&] { return static_cast<bool>(receives[1].done); }, whole());
    EXPECT_EQ(got, sent);
    EXPECT_EQ(landing, std::vector(landing.size(), std::byte{77}));
  }
}

/// A rank that has been told to wait goes on when nobody will receive what it sends any more, and that fills no memory.
TEST_P(TcpChannelsTest, ARankThatRunsAheadGoesOnWhenTheOtherEndIsOver) {
  const std::vector<std::byte> data(std::size_t{1} << 20);
  for (std::uint32_t number = 1; number < 3; ++number) {
    auto part = turned(number);
    std::vector<NetworkRequest> sends(40);  // far more than there is room for
    for (std::uint32_t m = 0; m < sends.size(); ++m) part[1]->send(0, m, data.data(), data.size(), sends[m]);
    const auto isStill = [&] {
      for (int look = 0; look < 100; ++look)
        for (const auto& end : whole_)
          if (end->progress()) return false;
      return true;
    };
    until(isStill, whole());
    ASSERT_FALSE(part[1]->drain()) << "nothing holds it back";
    if (number == 1)
      part[0].reset();
    else
      part[0]->cancelReceives();
    until([&] { return part[1]->drain(); }, whole());
    EXPECT_TRUE(std::ranges::all_of(sends, [](const NetworkRequest& send) { return static_cast<bool>(send.done); }));
  }
}

/// Whose messages the kernel takes at once never waits for anything, but has to hear that there is no room for more.
TEST_P(TcpChannelsTest, ARankThatOnlySendsIsHeldBack) {
  const std::vector<std::byte> data(std::size_t{64} << 10);
  auto part = turned(1);
  int word = 0;
  NetworkRequest greeting[2];
  whole_[0]->receive(1, 0, &word, sizeof word, greeting[0]);
  whole_[1]->send(0, 0, &word, sizeof word, greeting[1]);
  until([&] { return greeting[0].done && greeting[1].done; }, whole());
  std::vector<NetworkRequest> sends(1000);
  std::size_t sent = 0;
  for (bool isTaken = true; isTaken && sent < sends.size(); ++sent) {
    part[1]->send(0, static_cast<std::uint32_t>(sent), data.data(), data.size(), sends[sent]);
    for (int look = 0; look < 100; ++look) whole_[1]->progress();
    isTaken = sends[sent].done;
  }
  EXPECT_LT(sent * data.size(), 3 * TcpInbox::keptLimit);
  part[0]->cancelReceives();
  until([&] { return part[1]->drain(); }, whole());
}

/// A rank that goes is an Error for who waits for it, by its number there, and for no other.
TEST_P(TcpChannelsTest, ALostRankIsAnErrorForThoseWhoWaitForIt) {
  auto part = turned(1);
  int sent = 1, got = 0, never = 0;
  NetworkRequest sending, receiving, waiting;
  whole_[1]->receive(0, 0, &got, sizeof got, receiving);
  whole_[0]->send(1, 0, &sent, sizeof sent, sending);
  until([&] { return static_cast<bool>(receiving.done); }, whole());
  part[1]->receive(0, 3, &never, sizeof never, waiting);  // rank 0 of the whole
  part[0].reset();
  whole_[1].reset();
  for (int look = 0; look < 100; ++look) whole_[0]->progress();
  EXPECT_EQ(whole_[0]->nextChannel(std::vector{0, 1}), 0U) << "nobody should share a connection that has ended";
  const std::optional<Error> error = errorIn([&] { part[1]->progress(); });
  ASSERT_TRUE(error);
  EXPECT_NE(std::string(error->what()).find("rank 1 has lost rank 0: "), std::string::npos) << error->what();
  const std::optional<Error> later = errorIn([&] { whole_[0]->receive(1, 9, &never, sizeof never, receiving); });
  ASSERT_TRUE(later);
  EXPECT_NE(std::string(later->what()).find("rank 0 has lost rank 1: "), std::string::npos) << later->what();
}

INSTANTIATE_TEST_SUITE_P(Encrypted, TcpChannelsTest, testing::Bool(),
                         [](const auto& information) { return information.param ? "sealed" : "clear"; });

}  // namespace
}  // namespace tacc::test

// Messages over a real connection that takes and gives bytes in pieces of its own choice.
#include "transports/tcp/tcp_stream.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <random>
#include <span>
#include <string>

#include "core/error.hpp"

namespace tacc::test {
namespace {

/// Both ends of a connection with little room in between.
std::pair<FileDescriptor, FileDescriptor> connectedPair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) throw std::bad_alloc();
  const int room = 4096;
  for (const int end : ends) ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

class TcpStreamTest : public testing::TestWithParam<bool> {};

void sealBoth(TcpStream& one, TcpStream& other) {
  const LinkKeys keys{makeNonce(), makeNonce()};
  one.seal(keys);
  other.seal({keys.receiving, keys.sending});
}

TEST_P(TcpStreamTest, MessagesOfAllSizesArriveWhole) {
  std::mt19937 random(1);
  auto [left, right] = connectedPair();
  TcpStream sender, receiver;
  TcpInbox inbox(1);
  TcpChannels channels;
  TcpChannel& channel = channels.open(0, 0, {0, 1});
  constexpr std::size_t sizes[] = {0, 1, 15, 16, 17, 1000, 65'536, 65'537, 300'000};
  constexpr std::uint32_t count = 300;
  std::deque<std::vector<std::byte>> sent, received;
  std::vector<NetworkRequest> sends(count), receives(count);
  sender.open(std::move(left));
  receiver.open(std::move(right));
  if (GetParam()) sealBoth(sender, receiver);
  bool moved = false;
  for (std::uint32_t m = 0; m < count; ++m) {
    sent.emplace_back(sizes[random() % std::size(sizes)]);
    for (std::byte& byte : sent.back()) byte = static_cast<std::byte>(random());
    received.emplace_back(sent.back().size());
    if (m % 2 == 0) inbox.post(channel, m, received[m].data(), received[m].size(), receives[m]);
    sender.send(channel, m, sent[m].data(), sent[m].size(), 0, sends[m]);
    ASSERT_EQ(sender.flush(), TcpStream::State::open);
    ASSERT_EQ(receiver.receive(inbox, channels, false, moved), TcpStream::State::open);
    if (m % 2 == 1) inbox.post(channel, m, received[m].data(), received[m].size(), receives[m]);
  }
  for (int turn = 0; inbox.isAwaited(); ++turn) {
    ASSERT_LT(turn, 1'000'000);
    ASSERT_EQ(sender.flush(), TcpStream::State::open);
    ASSERT_EQ(receiver.receive(inbox, channels, false, moved), TcpStream::State::open);
  }
  EXPECT_FALSE(sender.hasOutput());
  for (std::uint32_t m = 0; m < count; ++m) {
    EXPECT_TRUE(sends[m].done && receives[m].done) << m;
    EXPECT_EQ(received[m], sent[m]) << m;
  }
}

TEST_P(TcpStreamTest, WhatWasSentArrivesThoughTheSenderCloses) {
  auto [left, right] = connectedPair();
  TcpStream sender, receiver;
  TcpInbox inbox(1);
  TcpChannels channels;
  TcpChannel& channel = channels.open(0, 0, {0, 1});
  sender.open(std::move(left));
  receiver.open(std::move(right));
  if (GetParam()) sealBoth(sender, receiver);
  int sent = 42, unread = 43, received = 0;
  NetworkRequest send, unasked, receive;
  bool moved = false;
  receiver.send(channel, 9, &unread, sizeof unread, 0, unasked);
  ASSERT_EQ(receiver.flush(), TcpStream::State::open);
  sender.send(channel, 1, &sent, sizeof sent, 0, send);
  ASSERT_EQ(sender.flush(), TcpStream::State::open);
  sender.close();
  inbox.post(channel, 1, &received, sizeof received, receive);
  EXPECT_EQ(receiver.receive(inbox, channels, true, moved), TcpStream::State::closed);
  EXPECT_TRUE(receive.done);
  EXPECT_EQ(received, 42);
}

/// A channel ends while its message is half on the way: what was sent is the message all the same, and the memory of
/// the other half is free.
TEST_P(TcpStreamTest, AChannelThatEndsLeavesTheConnectionToOthers) {
  auto [left, right] = connectedPair();
  TcpStream sender, receiver;
  TcpInbox inbox(1);
  TcpChannels sending, receiving;
  TcpChannel &ending = sending.open(0, 0, {0, 1}), &staying = sending.open(1, 0, {0, 1});
  TcpChannel &whole = receiving.open(0, 1, {0, 1}), &other = receiving.open(1, 1, {0, 1});
  sender.open(std::move(left));
  receiver.open(std::move(right));
  if (GetParam()) sealBoth(sender, receiver);
  constexpr std::size_t bytes = 1'000'000;
  std::vector<std::byte> first(bytes, std::byte{1}), second(bytes, std::byte{2}), third(bytes, std::byte{3});
  std::vector<std::byte> gotFirst(bytes), gotSecond(bytes), gotThird(bytes);
  NetworkRequest sends[3], receives[3];
  sender.send(ending, 0, first.data(), bytes, 0, sends[0]);
  sender.send(ending, 1, second.data(), bytes, 0, sends[1]);
  sender.send(staying, 0, third.data(), bytes, 0, sends[2]);
  ASSERT_EQ(sender.flush(), TcpStream::State::open);
  ASSERT_TRUE(sender.hasOutputOf(ending));
  ASSERT_TRUE(sender.abandon(ending));
  std::ranges::fill(first, std::byte{9});
  std::ranges::fill(second, std::byte{9});
  inbox.post(whole, 0, gotFirst.data(), bytes, receives[0]);
  inbox.post(whole, 1, gotSecond.data(), bytes, receives[1]);
  inbox.post(other, 0, gotThird.data(), bytes, receives[2]);
  bool moved = false;
  for (int turn = 0; sender.hasOutput() || !receives[2].done; ++turn) {
    ASSERT_LT(turn, 1'000'000);
    ASSERT_EQ(sender.flush(), TcpStream::State::open);
    ASSERT_EQ(receiver.receive(inbox, receiving, false, moved), TcpStream::State::open);
  }
  EXPECT_TRUE(receives[0].done);
  EXPECT_EQ(gotFirst, std::vector<std::byte>(bytes, std::byte{1}));
  EXPECT_EQ(gotThird, third);
  EXPECT_TRUE(sends[2].done);
  EXPECT_FALSE(sends[0].done || sends[1].done || receives[1].done);
}

TEST_P(TcpStreamTest, AChannelThatHasToWaitHoldsUpNoOther) {
  auto [left, right] = connectedPair();
  TcpStream sender, receiver;
  TcpInbox inbox(1), back(0);
  TcpChannels sending, receiving;
  TcpChannel &waiting = sending.open(3, 0, {0, 1}), &other = sending.open(4, 0, {0, 1});
  TcpChannel &waitingThere = receiving.open(3, 1, {0, 1}), &otherThere = receiving.open(4, 1, {0, 1});
  sender.open(std::move(left));
  receiver.open(std::move(right));
  if (GetParam()) sealBoth(sender, receiver);
  bool moved = false;
  const auto move = [&] {
    for (int turn = 0; turn < 50; ++turn) {
      ASSERT_EQ(receiver.flush(), TcpStream::State::open);
      ASSERT_EQ(sender.receive(back, sending, false, moved), TcpStream::State::open);
      ASSERT_EQ(sender.flush(), TcpStream::State::open);
      ASSERT_EQ(receiver.receive(inbox, receiving, false, moved), TcpStream::State::open);
    }
  };
  receiver.send(TcpPause{3, true});
  receiver.send(TcpPause{77, true});  // of no channel
  move();
  std::uint32_t values[3] = {10, 11, 12}, got[3] = {};
  NetworkRequest sends[3], receives[3];
  for (std::uint32_t m = 0; m < 3; ++m) {
    inbox.post(m == 1 ? otherThere : waitingThere, m, &got[m], sizeof got[m], receives[m]);
    sender.send(m == 1 ? other : waiting, m, &values[m], sizeof values[m], 0, sends[m]);
  }
  move();
  EXPECT_TRUE(receives[1].done);
  EXPECT_FALSE(receives[0].done || receives[2].done || sends[0].done);
  EXPECT_TRUE(sender.hasOutputOf(waiting));
  receiver.send(TcpPause{3, false});
  move();
  EXPECT_TRUE(receives[0].done && receives[2].done && sends[0].done && sends[2].done);
  EXPECT_EQ(got[0] + got[2], 22U);
}

INSTANTIATE_TEST_SUITE_P(Encrypted, TcpStreamTest, testing::Bool(),
                         [](const auto& information) { return information.param ? "sealed" : "clear"; });

/// All that a sender writes for some messages.
std::vector<std::byte> writtenFor(std::span<const std::vector<std::byte>> messages, const LinkKeys& keys) {
  auto [left, right] = connectedPair();
  TcpStream sender;
  TcpChannel channel;
  sender.open(std::move(left));
  sender.seal(keys);
  std::vector<NetworkRequest> requests(messages.size());
  std::vector<std::byte> wire;
  for (std::uint32_t m = 0; m < messages.size(); ++m)
    sender.send(channel, m, messages[m].data(), messages[m].size(), 0, requests[m]);
  while (sender.hasOutput()) {
    EXPECT_EQ(sender.flush(), TcpStream::State::open);
    std::byte piece[4096];
    for (ssize_t got; (got = ::recv(right.get(), piece, sizeof piece, MSG_DONTWAIT)) > 0;)
      wire.insert(wire.end(), piece, piece + got);
  }
  return wire;
}

TEST(SealedTcpStream, NoTextIsOnTheWireAndNoChangedByteIsTaken) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const Key key = makeNonce();
  std::vector<std::vector<std::byte>> messages;
  for (const std::size_t bytes : {40, 0, 3000, 100}) messages.emplace_back(bytes, std::byte{0x5A});
  const std::vector<std::byte> wire = writtenFor(messages, {key, makeNonce()});
  const std::vector<std::byte> clear(16, std::byte{0x5A});
  EXPECT_TRUE(std::ranges::search(wire, clear).empty());
  for (int turn = 0; turn < 300; ++turn) {
    std::vector<std::byte> changed = wire;
    const std::size_t bit = random() % (changed.size() * 8);
    const bool isCut = turn % 3 == 2;
    if (isCut)
      changed.resize(bit / 8);
    else
      changed[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    auto [left, right] = connectedPair();
    TcpStream receiver;
    receiver.open(std::move(right));
    receiver.seal({makeNonce(), key});
    TcpInbox inbox(5);
    TcpChannels channels;
    TcpChannel& channel = channels.open(0, 3, {0, 1, 2, 3, 4, 5});
    std::vector<std::vector<std::byte>> received;
    std::vector<NetworkRequest> requests(messages.size());
    for (std::uint32_t m = 0; m < messages.size(); ++m) {
      received.emplace_back(messages[m].size());
      inbox.post(channel, m, received[m].data(), received[m].size(), requests[m]);
    }
    bool moved = false;
    try {
      for (std::size_t at = 0; at < changed.size();) {
        const ssize_t sent = ::send(left.get(), changed.data() + at, changed.size() - at, MSG_DONTWAIT);
        if (sent > 0) at += static_cast<std::size_t>(sent);
        ASSERT_EQ(receiver.receive(inbox, channels, false, moved), TcpStream::State::open);
      }
      left.reset();
      EXPECT_EQ(receiver.receive(inbox, channels, true, moved), TcpStream::State::closed);
    } catch (const Error& error) {
      EXPECT_EQ(error.result(), taccRemoteError);
      EXPECT_NE(std::string(error.what()).find("they were changed, repeated or left out"), std::string::npos)
          << error.what();
      EXPECT_FALSE(isCut);
    }
    EXPECT_TRUE(inbox.isAwaited()) << "all was taken";
    for (std::size_t m = 0; m < messages.size(); ++m)
      if (requests[m].done) {
        EXPECT_EQ(received[m], messages[m]);
      }
  }
}

}  // namespace
}  // namespace tacc::test

// Messages over a real connection that takes and gives bytes in pieces of its own choice.
#include "transports/tcp_stream.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <random>

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

TEST(TcpStream, MessagesOfAllSizesArriveWhole) {
  std::mt19937 random(1);
  auto [left, right] = connectedPair();
  TcpStream sender, receiver;
  TcpInbox inbox(0, 1);
  constexpr std::size_t sizes[] = {0, 1, 15, 16, 17, 1000, 65'536, 65'537, 300'000};
  constexpr std::uint32_t count = 300;
  std::deque<std::vector<std::byte>> sent, received;
  std::vector<NetworkRequest> sends(count), receives(count);
  sender.open(std::move(left));
  receiver.open(std::move(right));
  bool moved = false;
  for (std::uint32_t m = 0; m < count; ++m) {
    sent.emplace_back(sizes[random() % std::size(sizes)]);
    for (std::byte& byte : sent.back()) byte = static_cast<std::byte>(random());
    received.emplace_back(sent.back().size());
    if (m % 2 == 0) inbox.post(m, received[m].data(), received[m].size(), receives[m]);
    sender.send(m, sent[m].data(), sent[m].size(), 0, sends[m]);
    ASSERT_EQ(sender.flush(), TcpStream::State::open);
    ASSERT_EQ(receiver.receive(inbox, false, moved), TcpStream::State::open);
    if (m % 2 == 1) inbox.post(m, received[m].data(), received[m].size(), receives[m]);
  }
  for (int turn = 0; inbox.isAwaited(); ++turn) {
    ASSERT_LT(turn, 1'000'000);
    ASSERT_EQ(sender.flush(), TcpStream::State::open);
    ASSERT_EQ(receiver.receive(inbox, false, moved), TcpStream::State::open);
  }
  EXPECT_FALSE(sender.hasOutput());
  for (std::uint32_t m = 0; m < count; ++m) {
    EXPECT_TRUE(sends[m].done && receives[m].done) << m;
    EXPECT_EQ(received[m], sent[m]) << m;
  }
}

TEST(TcpStream, WhatWasSentArrivesThoughTheSenderCloses) {
  auto [left, right] = connectedPair();
  TcpStream sender, receiver;
  TcpInbox inbox(0, 1);
  sender.open(std::move(left));
  receiver.open(std::move(right));
  int sent = 42, unread = 43, received = 0;
  NetworkRequest send, unasked, receive;
  bool moved = false;
  receiver.send(9, &unread, sizeof unread, 0, unasked);
  ASSERT_EQ(receiver.flush(), TcpStream::State::open);
  sender.send(1, &sent, sizeof sent, 0, send);
  ASSERT_EQ(sender.flush(), TcpStream::State::open);
  sender.close();
  inbox.post(1, &received, sizeof received, receive);
  EXPECT_EQ(receiver.receive(inbox, true, moved), TcpStream::State::closed);
  EXPECT_TRUE(receive.done);
  EXPECT_EQ(received, 42);
}

}  // namespace
}  // namespace tacc::test

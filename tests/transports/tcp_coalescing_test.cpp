// What is held, and that it comes when its reader acknowledges.
#include "transports/tcp/tcp_coalescing.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "transports/file_descriptor.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc::test {
namespace {

constexpr std::uint64_t reads = 7;

/// Both ends of a TCP connection of this host.
class TcpCoalescingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(::bind(listener.get(), any, length), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    ASSERT_EQ(::getsockname(listener.get(), any, &length), 0);
    sender_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(sender_.get(), any, length), 0);
    reader_ = FileDescriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(reader_.valid());
    tuneTcpForData(sender_.get());
    tuneTcpForData(reader_.get());
  }

  int fd() const { return sender_.get(); }
  bool leavesAtOnce() const {
    int value = -1;
    socklen_t length = sizeof value;
    EXPECT_EQ(::getsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &value, &length), 0);
    return value != 0;
  }
  /// Bytes that come within some time.
  std::size_t readWithin(int milliseconds) const {
    pollfd socket{reader_.get(), POLLIN, 0};
    char bytes[256];
    std::size_t all = 0;
    while (::poll(&socket, 1, milliseconds) == 1) {
      const ssize_t got = ::recv(reader_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (got <= 0) break;
      all += static_cast<std::size_t>(got);
    }
    return all;
  }

  FileDescriptor sender_, reader_;
};

TEST_F(TcpCoalescingTest, HoldsSmallMessagesOfOneWhoReadsNothing) {
  TcpCoalescing coalescing;
  for (int i = 1; i <= 20; ++i) {
    const bool tells = coalescing.beforeSend(fd(), 8, reads);
    EXPECT_EQ(tells, i >= TcpCoalescing::leastSent) << "a message that is held comes after one that said so";
    EXPECT_EQ(leavesAtOnce(), i <= TcpCoalescing::leastSent) << i;
  }
}

TEST_F(TcpCoalescingTest, WhoHasReadSomethingSendsAtOnce) {
  TcpCoalescing coalescing;
  for (int i = 0; i < 20; ++i) coalescing.beforeSend(fd(), 8, reads);
  EXPECT_FALSE(coalescing.beforeSend(fd(), 8, reads + 1));
  EXPECT_TRUE(leavesAtOnce());
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_FALSE(coalescing.beforeSend(fd(), 8, reads + 2 + i)) << i;
  EXPECT_TRUE(leavesAtOnce());
}

TEST_F(TcpCoalescingTest, LongMessagesLeaveAtOnce) {
  TcpCoalescing coalescing;
  for (int i = 0; i < 20; ++i) coalescing.beforeSend(fd(), 8, reads);
  EXPECT_FALSE(coalescing.beforeSend(fd(), TcpCoalescing::smallBytes + 1, reads));
  EXPECT_TRUE(leavesAtOnce());
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(coalescing.beforeSend(fd(), TcpCoalescing::smallBytes + 1, reads));
  EXPECT_TRUE(leavesAtOnce());
}

/// The kernel of a new connection acknowledges at once for a while, so all this goes on until it does not.
TEST_F(TcpCoalescingTest, WhatIsHeldComesWithTheAcknowledgement) {
  TcpCoalescing sender, reader;
  const char message[8] = {};
  bool wasHeld = false;
  std::size_t sent = 0, got = 0;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 5; ++i) {
      const bool tells = sender.beforeSend(fd(), sizeof message, reads);
      ASSERT_EQ(::send(fd(), message, sizeof message, 0), static_cast<ssize_t>(sizeof message));
      sent += sizeof message;
      if (i == 0) got += readWithin(0);
      reader.onRead(reader_.get(), tells);
      EXPECT_EQ(reader.isOwing(), tells);
    }
    got += readWithin(1);
    wasHeld |= got < sent;
    if (reader.isOwing()) reader.acknowledge(reader_.get());
    EXPECT_FALSE(reader.isOwing());
    // Acknowledgements that come by themselves take 40 ms.
    for (int i = 0; i < 4 && got < sent; ++i) {
      got += readWithin(5);
      reader.acknowledge(reader_.get());
    }
    ASSERT_EQ(got, sent) << round;
  }
  EXPECT_TRUE(wasHeld) << "nothing was ever held";
}

TEST_F(TcpCoalescingTest, WhatIsHeldComesWhenItsSenderHasReadSomething) {
  TcpCoalescing sender, reader;
  const char message[8] = {};
  std::size_t sent = 0;
  for (int i = 0; i < 200; ++i) {
    reader.onRead(reader_.get(), sender.beforeSend(fd(), sizeof message, reads + static_cast<std::uint64_t>(i == 199)));
    ASSERT_EQ(::send(fd(), message, sizeof message, 0), static_cast<ssize_t>(sizeof message));
    sent += sizeof message;
  }
  EXPECT_EQ(readWithin(20), sent);
}

}  // namespace
}  // namespace tacc::test

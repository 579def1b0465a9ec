// Who is let in at a rank's TCP port.
#include "transports/tcp_visitors.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>

#include "transports/tcp.hpp"

namespace tacc::test {
namespace {

constexpr int self = 2;
constexpr std::size_t ranks = 4;

class TcpVisitorsTest : public testing::Test {
 protected:
  TcpVisitorsTest() : key_(makeTcpKey()), listener_(bindTcp(0)), visitors_(self, key_, ranks) {
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
  }

  /// A connection to the port; `bytes` have been sent over it.
  FileDescriptor visit(const void* bytes, std::size_t count) {
    FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_storage storage;
    const socklen_t length = InetAddress(InetAddress::V4{127, 0, 0, 1}, portOf(listener_.get())).fill(storage);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&storage), length), 0);
    EXPECT_EQ(::send(socket.get(), bytes, count, MSG_NOSIGNAL), static_cast<ssize_t>(count));
    return socket;
  }

  TcpHello hello(std::uint32_t from) const {
    TcpHello greeting;
    greeting.from = from;
    greeting.to = self;
    greeting.key = key_;
    return greeting;
  }

  /// The guest that the next visitor becomes, if it does.
  std::optional<TcpVisitors::Guest> serve() {
    pollfd waiting{listener_.get(), POLLIN, 0};
    ::poll(&waiting, 1, 2000);
    const std::optional<int> visitor = visitors_.accept(listener_.get());
    if (!visitor) return std::nullopt;
    pollfd speaking{visitors_.descriptorOf(*visitor), POLLIN, 0};
    ::poll(&speaking, 1, 2000);
    return visitors_.listen(*visitor);
  }

  static bool isClosed(const FileDescriptor& socket) {
    char byte;
    pollfd waiting{socket.get(), POLLIN, 0};
    ::poll(&waiting, 1, 2000);
    return ::recv(socket.get(), &byte, 1, MSG_DONTWAIT) <= 0 && errno != EAGAIN;
  }

  TcpKey key_;
  FileDescriptor listener_;
  TcpVisitors visitors_;
};

TEST_F(TcpVisitorsTest, WhoKnowsTheKeyIsLetIn) {
  const TcpHello greeting = hello(3);
  const FileDescriptor rank = visit(&greeting, sizeof greeting);
  const auto guest = serve();
  ASSERT_TRUE(guest.has_value());
  EXPECT_EQ(guest->rank, 3);
  EXPECT_TRUE(visitors_.isEmpty());
}

TEST_F(TcpVisitorsTest, OthersAreNot) {
  TcpHello wrong[5] = {hello(3), hello(3), hello(4), hello(self), hello(3)};
  wrong[0].key[15] ^= 1;
  wrong[1].to = 1;
  wrong[4].magic[0] = 'x';
  for (const TcpHello& greeting : wrong) {
    const FileDescriptor stranger = visit(&greeting, sizeof greeting);
    EXPECT_FALSE(serve().has_value());
    EXPECT_TRUE(visitors_.isEmpty());
    EXPECT_TRUE(isClosed(stranger));
  }
}

TEST_F(TcpVisitorsTest, HalfAGreetingHindersNobody) {
  const TcpHello greeting = hello(3);
  const FileDescriptor half = visit(&greeting, sizeof greeting / 2);
  EXPECT_FALSE(serve().has_value());
  const FileDescriptor whole = visit(&greeting, sizeof greeting);
  EXPECT_TRUE(serve().has_value());
  EXPECT_FALSE(visitors_.isEmpty());
}

TEST_F(TcpVisitorsTest, ManySilentOnesPushOutTheOldest) {
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(visit("", 0));
    pollfd waiting{listener_.get(), POLLIN, 0};
    ::poll(&waiting, 1, 2000);
    EXPECT_TRUE(visitors_.accept(listener_.get()).has_value());
  }
  EXPECT_TRUE(isClosed(strangers.front()));
  char byte;
  EXPECT_EQ(::recv(strangers.back().get(), &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(TcpGreeting, AddressesSurvivePackingAndNothingElseIsOne) {
  TcpAddress address{4711, makeTcpKey(), {InetAddress(InetAddress::V4{192, 0, 2, 2}).v6(), InetAddress::V6{1}}};
  const std::vector<std::byte> packed = packTcpAddress(address);
  const auto unpacked = unpackTcpAddress(packed);
  ASSERT_TRUE(unpacked.has_value());
  EXPECT_EQ(unpacked->port, address.port);
  EXPECT_EQ(unpacked->key, address.key);
  EXPECT_EQ(unpacked->hosts, address.hosts);
  for (std::size_t bytes = 0; bytes < packed.size(); ++bytes) {
    const bool isWhole = bytes >= 18 && (bytes - 18) % 16 == 0;
    EXPECT_EQ(unpackTcpAddress({packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(bytes)}).has_value(),
              isWhole);
  }
}

}  // namespace
}  // namespace tacc::test

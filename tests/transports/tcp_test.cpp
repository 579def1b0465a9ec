// How long a TCP connection waits for a host that is silent, and what its kernel has confirmed.
#include "transports/tcp/tcp.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "../support/child_process.hpp"
#include "../support/loopback.hpp"

namespace tacc::test {
namespace {

int optionOf(const FileDescriptor& socket, int level, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  EXPECT_EQ(::getsockopt(socket.get(), level, option, &value, &length), 0);
  return value;
}

/// Seconds until the kernel calls an idle connection to such a host dead.
int secondsOf(const FileDescriptor& socket) {
  EXPECT_EQ(optionOf(socket, SOL_SOCKET, SO_KEEPALIVE), 1);
  return optionOf(socket, IPPROTO_TCP, TCP_KEEPIDLE) +
         optionOf(socket, IPPROTO_TCP, TCP_KEEPINTVL) * optionOf(socket, IPPROTO_TCP, TCP_KEEPCNT);
}

TEST(TcpSilence, LastsAsLongAsAnOperationMayWait) {
  for (const double timeout : {0.5, 2.0, 20.0, 30.0, 59.9, 600.0, 3600.0, 86400.0}) {
    const FileDescriptor data = bindTcp(0), control = bindTcp(0);
    ASSERT_TRUE(data.valid() && control.valid());
    const double silence = silenceFor(timeout);
    tuneTcpForData(data.get(), silence);
    tuneTcp(control.get(), silence);
    for (const FileDescriptor* socket : {&data, &control}) {
      EXPECT_GE(secondsOf(*socket), static_cast<int>(timeout)) << "a shorter break than the time-out is called a death";
      EXPECT_GE(secondsOf(*socket), 20);
      EXPECT_LE(secondsOf(*socket), std::max(20.0, timeout + 6));
    }
    EXPECT_EQ(optionOf(control, IPPROTO_TCP, TCP_USER_TIMEOUT), static_cast<int>(silence * 1000));
    EXPECT_EQ(optionOf(data, IPPROTO_TCP, TCP_USER_TIMEOUT), 0) << "a rank that computes may not read for long";
  }
}

TEST(TcpSilence, AHostThatHasGoneIsNoticedThoughAnOperationMayWaitForEver) {
  const FileDescriptor socket = bindTcp(0);
  tuneTcpForData(socket.get(), silenceFor(0));
  EXPECT_EQ(secondsOf(socket), 7200);
  tuneTcpForData(socket.get(), silenceFor(1e9));
  EXPECT_NEAR(secondsOf(socket), 5 * 24 * 3600, 60);
}

/// A loopback connection whose other end never reads, in a network that is cut between two messages.
bool tellsWhatIsConfirmed() {
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); };
  const InetAddress self(InetAddress::V4{127, 0, 0, 1}, 0);
  const FileDescriptor listener = bindTcp(0, self), sender = bindTcp(0, self);
  sockaddr_in place{};
  socklen_t bytes = sizeof place;
  if (::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&place), &bytes) != 0)
    return false;
  (void)::connect(sender.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place);
  const auto say = [&] { EXPECT_EQ(::send(sender.get(), "query", 5, 0), 5); };
  pause();
  EXPECT_FALSE(isUnconfirmed(sender.get(), 0)) << "nothing was sent";
  const auto asked = std::chrono::steady_clock::now();
  say();
  pause();
  EXPECT_FALSE(isUnconfirmed(sender.get(), 0)) << "the kernel has it, though nobody has read it";
  if (!setLoopback(false)) return false;
  say();
  EXPECT_FALSE(
      isUnconfirmed(sender.get(), std::chrono::duration<double>(std::chrono::steady_clock::now() - asked).count()))
      << "a confirmation came since then";
  pause();
  EXPECT_TRUE(isUnconfirmed(sender.get(), 0.1));
  return !testing::Test::HasFailure();
}

TEST(TcpConfirmation, IsTheKernelsAndNotTheProgramsThatReads) {
  constexpr int noNetwork = 77;
  ChildProcess child([] {
    if (::unshare(CLONE_NEWNET) != 0 || !setLoopback(true)) ::_exit(noNetwork);
    return tellsWhatIsConfirmed();
  });
  const int status = child.wait();
  if (status == noNetwork) GTEST_SKIP() << "this process may not make networks";
  EXPECT_EQ(status, 0);
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const FileDescriptor one(ends[0]), other(ends[1]);
  EXPECT_EQ(::send(one.get(), "query", 5, 0), 5);
  EXPECT_FALSE(isUnconfirmed(one.get(), -1)) << "between processes of a host nothing is lost";
}

class TcpPorts : public testing::Test {
 protected:
  void TearDown() override { ::unsetenv("TACC_PORT_RANGE"); }
};

TEST_F(TcpPorts, AreThoseThatAreAllowedAndNobodyElseHas) {
  // A range that the kernel has just given, so that it is free most likely.
  const std::uint16_t first = [] { return portOf(bindTcp(0).get()); }();
  const std::uint16_t last = static_cast<std::uint16_t>(std::min(65535, first + 7));
  ::setenv("TACC_PORT_RANGE", fmt::format("{}-{}", first, last).c_str(), 1);
  std::vector<FileDescriptor> sockets;
  std::set<std::uint16_t> ports;
  for (;;) {
    FileDescriptor socket = bindTcp(0);
    if (!socket.valid()) break;
    const std::uint16_t port = portOf(socket.get());
    EXPECT_GE(port, first);
    EXPECT_LE(port, last);
    EXPECT_TRUE(ports.insert(port).second) << "port " << port << " was given twice";
    sockets.push_back(std::move(socket));
  }
  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_NE(describeNoPort(EADDRINUSE).find(fmt::format("TACC_PORT_RANGE={}-{} ", first, last)), std::string::npos);
  EXPECT_EQ(describeNoPort(EMFILE), "");
  ASSERT_FALSE(ports.empty());
  // Who was given one may listen there beside its reservation, as rank 0 does.
  const FileDescriptor listener = bindTcp(*ports.begin());
  ASSERT_TRUE(listener.valid());
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  sockets.clear();
  ::unsetenv("TACC_PORT_RANGE");
  EXPECT_EQ(describeNoPort(EADDRINUSE), "");
}

}  // namespace
}  // namespace tacc::test

// TCP between ranks while there is no route from one to the other: in a network of its own, which has nothing but the
// loopback interface.
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "support/child_process.hpp"
#include "transports/file_descriptor.hpp"
#include "transports/inet_address.hpp"
#include "transports/tcp/tcp.hpp"
#include "transports/tcp/tcp_greeting.hpp"
#include "transports/transport_functions.hpp"

namespace tacc::test {
namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;

constexpr InetAddress::V4 away{10, 77, 9, 9};
constexpr int noNetwork = 77;

bool configure(const char* name, unsigned long request, const std::function<void(ifreq&)>& fill) {
  ifreq interface {};
  std::strncpy(interface.ifr_name, name, sizeof interface.ifr_name - 1);
  fill(interface);
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return ::ioctl(socket.get(), request, &interface) == 0;
}

void isAway(TcpAddress& address) { address.hosts = {InetAddress(away, 0).v6()}; }

bool bringUpLoopback() {
  return configure("lo", SIOCSIFFLAGS, [](ifreq& interface) { interface.ifr_flags = IFF_UP | IFF_RUNNING; });
}

/// From now on `away` is this host.
bool addAddress() {
  return configure("lo:1", SIOCSIFADDR, [](ifreq& interface) {
    sockaddr_storage storage{};
    const socklen_t bytes = InetAddress(away, 0).fill(storage);
    std::memcpy(&interface.ifr_addr, &storage, bytes);
  });
}

/// Rank 1 connects to rank 0, of whose address `believe` makes what it believes, and sends a word; the error that comes
/// instead. `meanwhile` gets the seconds since the beginning.
std::optional<Error> sendWord(const std::function<void(TcpAddress&)>& believe,
                              const std::function<void(double)>& meanwhile) {
  const Key secret = makeNonce();
  std::vector<std::unique_ptr<NetworkTransport>> ends;
  std::vector<Bytes> addresses;
  for (int rank = 0; rank < 2; ++rank) {
    ends.push_back(makeTcpTransport({.rank = rank, .ranks = 2, .interfaces = "", .secret = secret}));
    addresses.push_back(ends.back()->address());
  }
  ends[0]->setPeers(addresses);
  TcpAddress elsewhere = *unpackTcpAddress(addresses[0]);
  believe(elsewhere);
  addresses[0] = packTcpAddress(elsewhere);
  ends[1]->setPeers(addresses);

  int word = 4711, heard = 0;
  NetworkRequest out, in;
  const auto start = Clock::now();
  try {
    ends[0]->receive(1, 1, &heard, sizeof heard, in);
    ends[1]->send(0, 1, &word, sizeof word, out);
    while (!in.done || !ends[1]->drain()) {
      for (const auto& end : ends) end->progress();
      meanwhile(std::chrono::duration<double>(Clock::now() - start).count());
    }
  } catch (const Error& error) {
    return error;
  }
  EXPECT_EQ(heard, word);
  return std::nullopt;
}

/// Runs `body` where there is no network. Skips the test where there cannot be such a place.
void runApart(const std::function<bool()>& body) {
  ChildProcess child([&]() -> bool {
    if (::unshare(CLONE_NEWNET) != 0 || !bringUpLoopback()) ::_exit(noNetwork);
    return body();
  });
  const int status = child.wait();
  if (status == noNetwork) GTEST_SKIP() << "this process may not make networks";
  EXPECT_EQ(status, 0);
}

TEST(TcpRoute, IsWaitedFor) {
  runApart([] {
    bool isThere = false;
    const std::optional<Error> error = sendWord(isAway, [&](double seconds) {
      if (!isThere && seconds > 0.3) isThere = addAddress();
    });
    if (error) std::fprintf(stderr, "%s\n", error->what());
    return isThere && !error;
  });
}

TEST(TcpRoute, ThatDoesNotComeIsAnErrorThatSaysSo) {
  runApart([] {
    double most = 0;
    const std::optional<Error> error = sendWord(isAway, [&](double seconds) { most = seconds; });
    if (!error) return false;
    const std::string text = error->what();
    std::fprintf(stderr, "after %.1f s: %s\n", most, text.c_str());
    return error->result() == taccRemoteError && most > 1 && text.find("rank 1 cannot reach rank 0") == 0 &&
           text.find("10.77.9.9") != std::string::npos && text.find(std::strerror(ENETUNREACH)) != std::string::npos;
  });
}

/// Answers as a rank of the job does that is not the wanted one: with a challenge, and not after that.
class AnotherRank {
 public:
  AnotherRank(const InetAddress& address, std::uint16_t port) : listener_(bindTcp(port, address)) {
    EXPECT_TRUE(listener_.valid() && ::listen(listener_.get(), SOMAXCONN) == 0) << std::strerror(errno);
  }
  void turn() {
    if (!guest_.valid()) {
      guest_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      const TcpChallenge challenge;
      if (guest_.valid()) ::send(guest_.get(), &challenge, sizeof challenge, MSG_NOSIGNAL);
    }
    TcpHello hello;
    if (guest_.valid() && ::recv(guest_.get(), &hello, sizeof hello, 0) > 0) {
      guest_.reset();
      ++refused;
    }
  }

  int refused = 0;

 private:
  FileDescriptor listener_, guest_;
};

/// Where hosts have an address in common, what is sent to another one there may reach a rank of one's own host.
TEST(TcpRoute, LeadsPastAnotherRankAtAnAddressOfTheWantedOne) {
  const InetAddress common(InetAddress::V4{127, 0, 0, 2}, 0);
  std::optional<AnotherRank> other;
  const std::optional<Error> error = sendWord(
      [&](TcpAddress& wanted) {
        wanted.hosts.insert(wanted.hosts.begin(), common.v6());
        other.emplace(common, wanted.port);
      },
      [&](double seconds) {
        other->turn();
        if (seconds > 5) fail(taccTimeout, "{} connections were refused", other->refused);
      });
  EXPECT_FALSE(error) << error->what();
  EXPECT_EQ(other->refused, 1);
}

}  // namespace
}  // namespace tacc::test

// TCP between ranks with somebody in between, or somebody else at the door: over real sockets of the loopback
// interface.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "transports/tcp/tcp.hpp"
#include "transports/tcp/tcp_greeting.hpp"
#include "transports/transport_functions.hpp"

namespace tacc::test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::chrono::seconds longestWait{20};

FileDescriptor connectTo(std::uint16_t port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage storage;
  const socklen_t length = InetAddress(InetAddress::V4{127, 0, 0, 1}, port).fill(storage);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&storage), length), 0);
  return socket;
}

FileDescriptor listenAnywhere() {
  FileDescriptor listener = bindTcp(0);
  EXPECT_EQ(::listen(listener.get(), 64), 0);
  return listener;
}

std::uint16_t portIn(const Bytes& address) { return unpackTcpAddress(address)->port; }

/// The address of a rank, with another place in it.
Bytes redirected(const Bytes& address, std::uint16_t port) {
  TcpAddress changed = *unpackTcpAddress(address);
  changed.port = port;
  changed.hosts = {InetAddress(InetAddress::V4{127, 0, 0, 1}).v6()};
  return packTcpAddress(changed);
}

/// Somebody on the way between two ranks, who sees all bytes and may change them or cut the connection.
class Middleman {
 public:
  enum class Direction { there, back };
  /// `touch`: gets what passes in a connection, counted from 0, and its place in the stream of its direction; false:
  /// the connection is cut after what is left of the bytes.
  using Touch = std::function<bool(int connection, Direction direction, std::size_t place, Bytes& bytes)>;

  Middleman(std::uint16_t target, Touch touch) : target_(target), touch_(std::move(touch)) {}
  std::uint16_t port() const { return portOf(listener_.get()); }
  int connections() const { return static_cast<int>(links_.size()); }

  void move() {
    FileDescriptor caller(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (caller.valid()) links_.push_back({std::move(caller), connectTo(target_), {0, 0}});
    for (std::size_t i = 0; i < links_.size(); ++i) {
      pass(static_cast<int>(i), Direction::there, links_[i].caller, links_[i].callee);
      pass(static_cast<int>(i), Direction::back, links_[i].callee, links_[i].caller);
    }
  }

 private:
  struct Link {
    FileDescriptor caller, callee;
    std::size_t passed[2];
  };
  void pass(int number, Direction direction, const FileDescriptor& from, const FileDescriptor& to) {
    Link& link = links_[static_cast<std::size_t>(number)];
    if (!link.caller.valid()) return;
    Bytes bytes(65'536);
    const ssize_t got = ::recv(from.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0) return;
    bytes.resize(static_cast<std::size_t>(got));
    std::size_t& passed = link.passed[static_cast<int>(direction)];
    const bool goesOn = got > 0 && touch_(number, direction, passed, bytes);
    passed += bytes.size();
    if (!bytes.empty()) (void)::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (goesOn) return;
    link.caller.reset();
    link.callee.reset();
  }

  FileDescriptor listener_ = listenAnywhere();
  std::uint16_t target_;
  Touch touch_;
  std::vector<Link> links_;
};

/// Two ranks in one thread.
class TcpAdversary : public testing::TestWithParam<bool> {
 protected:
  TcpAdversary() { meetAgain(); }

  /// Two new ranks.
  void meetAgain() {
    ends_.clear();
    addresses_.clear();
    send_ = receive_ = {};
    for (int rank = 0; rank < 2; ++rank)
      ends_.push_back(
          makeTcpTransport({.rank = rank, .ranks = 2, .interfaces = "lo", .secret = secret_, .encrypts = GetParam()}));
    for (const auto& end : ends_) addresses_.push_back(end->address());
  }

  /// `port`: where rank `caller` looks for the other one.
  void introduce(int caller, std::uint16_t port) {
    for (int rank = 0; rank < 2; ++rank) {
      std::vector<Bytes> known = addresses_;
      const auto other = static_cast<std::size_t>(1 - rank);
      if (rank == caller) known[other] = redirected(known[other], port);
      ends_[static_cast<std::size_t>(rank)]->setPeers(known);
    }
  }

  NetworkTransport& at(int rank) { return *ends_[static_cast<std::size_t>(rank)]; }

  /// Sends a message from `caller` to the other rank; the error that comes instead, if one does.
  std::optional<Error> send(int caller, const Bytes& message, const std::function<void()>& meanwhile) {
    received_.assign(message.size(), std::byte{});
    try {
      at(1 - caller).receive(caller, 1, received_.data(), received_.size(), receive_);
      at(caller).send(1 - caller, 1, message.data(), message.size(), send_);
      for (const auto end = std::chrono::steady_clock::now() + longestWait; !receive_.done || !at(caller).drain();) {
        if (std::chrono::steady_clock::now() > end) {
          ADD_FAILURE() << "neither a message nor an error";
          return std::nullopt;
        }
        at(0).progress();
        meanwhile();
        at(1).progress();
        meanwhile();
      }
    } catch (const Error& error) {
      EXPECT_FALSE(receive_.done && received_ != message);
      return error;
    }
    EXPECT_EQ(received_, message);
    return std::nullopt;
  }

  const Key secret_ = makeNonce();
  std::vector<std::unique_ptr<NetworkTransport>> ends_;
  std::vector<Bytes> addresses_;
  Bytes received_;
  NetworkRequest send_, receive_;
};

TEST_P(TcpAdversary, SilentStrangersKeepNoRankOut) {
  for (const int caller : {0, 1}) {
    meetAgain();
    introduce(-1, 0);
    std::vector<FileDescriptor> strangers;
    const auto flood = [&](std::size_t upTo) {
      while (strangers.size() < upTo)
        strangers.push_back(connectTo(portIn(addresses_[static_cast<std::size_t>(1 - caller)])));
    };
    // Those that come before the rank and after it are more than may be there at a time.
    flood(60);
    const auto error = send(caller, Bytes(100, std::byte{7}), [&] { flood(200); });
    EXPECT_FALSE(error.has_value()) << error->what();
  }
}

TEST_P(TcpAdversary, AFloodThatGoesOnKeepsNoRankOut) {
  introduce(-1, 0);
  std::vector<FileDescriptor> strangers;
  std::size_t next = 0;
  const auto flood = [&] {
    for (int i = 0; i < 5; ++i) {
      FileDescriptor one = connectTo(portIn(addresses_[0]));
      if (strangers.size() < 300)
        strangers.push_back(std::move(one));
      else
        strangers[next++ % strangers.size()] = std::move(one);
    }
  };
  for (int i = 0; i < 60; ++i) flood();
  const auto error = send(1, Bytes(100, std::byte{7}), flood);
  EXPECT_FALSE(error.has_value()) << error->what();
}

TEST_P(TcpAdversary, AGreetingThatIsCutAnywhereIsMadeAgain) {
  constexpr std::size_t there = sizeof(TcpHello), back = sizeof(TcpChallenge) + sizeof(TcpAnswer);
  for (std::size_t cut = 0; cut < there + back; cut += 3) {
    meetAgain();
    const int caller = static_cast<int>(cut % 2);
    const Middleman::Direction direction = cut < there ? Middleman::Direction::there : Middleman::Direction::back;
    const std::size_t place = cut < there ? cut : cut - there;
    Middleman middleman(portIn(addresses_[static_cast<std::size_t>(1 - caller)]),
                        [&](int connection, Middleman::Direction one, std::size_t at, Bytes& bytes) {
                          if (connection > 0 || one != direction || at + bytes.size() <= place) return true;
                          bytes.resize(place - at);
                          return false;
                        });
    introduce(caller, middleman.port());
    const auto error = send(caller, Bytes(1000, std::byte{9}), [&] { middleman.move(); });
    // Once the other rank has taken the connection it cannot have another one.
    const bool isTaken = direction == Middleman::Direction::back && place >= sizeof(TcpChallenge);
    EXPECT_TRUE(!error || isTaken) << "cut at " << cut << ": " << error->what();
    if (!error) {
      EXPECT_GT(middleman.connections(), 1);
    }
  }
}

TEST_P(TcpAdversary, WhoListensInAnothersPlaceIsNotBelieved) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int turn = 0; turn < 24; ++turn) {
    meetAgain();
    const FileDescriptor door = listenAnywhere();
    const int caller = turn % 2;
    introduce(caller, portOf(door.get()));
    FileDescriptor socket;
    const auto impersonate = [&] {
      if (socket.valid()) {
        TcpHello hello;
        if (::recv(socket.get(), &hello, sizeof hello, MSG_DONTWAIT) != static_cast<ssize_t>(sizeof hello)) return;
        TcpAnswer answer{TcpVerdict::taken, hello.proof};  // what it has said itself
        if (turn % 4 == 2) answer.proof = makeNonce();
        (void)::send(socket.get(), &answer, sizeof answer, MSG_NOSIGNAL);
        return;
      }
      socket.reset(::accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket.valid()) return;
      TcpChallenge challenge;
      challenge.nonce = makeNonce();
      if (turn % 4 < 2)
        for (char& c : challenge.magic) c = static_cast<char>(random());
      (void)::send(socket.get(), &challenge, sizeof challenge, MSG_NOSIGNAL);
    };
    const auto error = send(caller, Bytes(1000, std::byte{9}), impersonate);
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->result(), taccRemoteError);
    EXPECT_NE(std::string(error->what()).find("who listens there is no rank of this job"), std::string::npos)
        << error->what();
  }
}

TEST_P(TcpAdversary, ARankOfAnotherJobIsNotBelieved) {
  const auto stranger =
      makeTcpTransport({.rank = 0, .ranks = 2, .interfaces = "lo", .secret = makeNonce(), .encrypts = GetParam()});
  introduce(-1, 0);
  stranger->setPeers({stranger->address(), addresses_[1]});
  int word = 1, heard = 0;
  NetworkRequest out, in;
  at(1).receive(0, 1, &heard, sizeof heard, in);
  stranger->send(1, 1, &word, sizeof word, out);
  const auto error = [&]() -> std::optional<Error> {
    try {
      for (const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
           std::chrono::steady_clock::now() < end;) {
        stranger->progress();
        at(1).progress();
      }
      return std::nullopt;
    } catch (const Error& thrown) {
      return thrown;
    }
  }();
  EXPECT_FALSE(in.done || out.done);
  // The rank that is meant still comes through.
  word = 42;
  at(0).send(1, 1, &word, sizeof word, out);
  for (const auto end = std::chrono::steady_clock::now() + longestWait;
       !in.done && std::chrono::steady_clock::now() < end;) {
    at(0).progress();
    at(1).progress();
  }
  EXPECT_TRUE(in.done);
  EXPECT_EQ(heard, 42);
}

TEST_P(TcpAdversary, BytesChangedOnTheWayAreNeverTakenWhereTheyAreSealed) {
  if (!GetParam()) GTEST_SKIP() << "in the clear nothing is promised against somebody on the way";
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int turn = 0; turn < 40; ++turn) {
    meetAgain();
    const int caller = turn % 2;
    Bytes message(1 + random() % 5000);
    for (std::byte& byte : message) byte = static_cast<std::byte>(random());
    const std::size_t place = sizeof(TcpHello) + random() % (message.size() + 28);
    const int kind = turn % 4;
    bool isDone = false;
    Middleman middleman(portIn(addresses_[static_cast<std::size_t>(1 - caller)]),
                        [&](int, Middleman::Direction direction, std::size_t at, Bytes& bytes) {
                          if (isDone || direction != Middleman::Direction::there || at + bytes.size() <= place)
                            return true;
                          isDone = true;
                          const auto spot = bytes.begin() + static_cast<std::ptrdiff_t>(place > at ? place - at : 0);
                          if (kind == 0) *spot ^= static_cast<std::byte>(1u << random() % 8);
                          if (kind == 1) bytes.erase(spot);
                          if (kind == 2) bytes.insert(spot, std::byte{0});
                          if (kind == 3) bytes.erase(spot, bytes.end());
                          return kind != 3;
                        });
    introduce(caller, middleman.port());
    auto changed = std::chrono::steady_clock::now();
    const auto error = send(caller, message, [&] {
      middleman.move();
      // Bytes that are missing leave the receiver waiting for more, as a slow network would; so does a length that was
      // made greater.
      if (!isDone) changed = std::chrono::steady_clock::now();
      const bool waits = kind != 3 && std::chrono::steady_clock::now() - changed > std::chrono::seconds(2);
      if ((kind == 1 && isDone) || waits) throw Error(taccRemoteError, "rank waits");
    });
    // A byte that is put in behind all of the message is for the next one to stumble over.
    EXPECT_TRUE(error.has_value() || kind == 2) << "kind " << kind;
    if (error) {
      EXPECT_NE(std::string(error->what()).find("rank"), std::string::npos) << error->what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Encrypted, TcpAdversary, testing::Bool(),
                         [](const auto& information) { return information.param ? "sealed" : "clear"; });

}  // namespace
}  // namespace tacc::test

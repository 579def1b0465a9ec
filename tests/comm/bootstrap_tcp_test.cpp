// The bootstrap over TCP. Ranks of one machine take that way when the id says that it was made on another host.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap_team.hpp"
#include "comm/bootstrap/bootstrap.hpp"
#include "comm/bootstrap/channel.hpp"
#include "comm/bootstrap/connect.hpp"
#include "comm/bootstrap/handshake.hpp"
#include "comm/bootstrap/listeners.hpp"
#include "core/log.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

using test::ChildProcess;
using test::expectFailure;
using test::failureOf;
using test::gatherNumbers;
using test::isClosedByPeer;
using test::joinFailure;
using test::patience;
using test::Signal;
using testing::HasSubstr;

/// The same id, changed.
template <class Change>
taccUniqueId changed(const taccUniqueId& id, const Change& change) {
  UniqueIdContents contents = openUniqueId(id);
  change(contents);
  return sealUniqueId(contents);
}

/// For ranks that shall believe that rank 0 is on another host.
taccUniqueId elsewhere(const taccUniqueId& id) {
  return changed(id, [](UniqueIdContents& contents) { contents.host ^= 1; });
}

taccUniqueId makeDistantId() { return elsewhere(makeUniqueId()); }

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// A connection of somebody who is not of the job.
FileDescriptor connectAsStranger(const taccUniqueId& id) {
  const InetAddress address = addressesIn(openUniqueId(id)).at(0);
  const Interrupt interrupt(0);
  for (int attempt = 0; attempt < 2000; ++attempt) {
    Attempt made = connectTcp(address, 1.0, Deadline(1.0), interrupt);
    if (made.socket.valid()) return std::move(made.socket);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return FileDescriptor();
}

std::optional<Message> nextMessage(Channel& channel) {
  const Deadline deadline(patience);
  while (!deadline.passed()) {
    const bool open = channel.receive();
    if (std::optional<Message> message = channel.take()) return message;
    if (!open) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::nullopt;
}

/// Everything that this process writes to standard error from now on; for a child, before it does anything else.
class CapturedErrors {
 public:
  CapturedErrors() {
    setLogLevel(LogLevel::warn);
    testing::internal::CaptureStderr();
  }
  std::string end() const { return testing::internal::GetCapturedStderr(); }
};

bool joinOverTcp(const taccUniqueId& id, int ranks, int rank) {
  Bootstrap bootstrap(id, ranks, rank, patience);
  const bool knowsWay = rank == 0
                            ? bootstrap.localAddressToRankZero().empty() && bootstrap.interfaceToRankZero().empty()
                            : !bootstrap.localAddressToRankZero().empty() && !bootstrap.interfaceToRankZero().empty();
  return bootstrap.allUnix() == (ranks == 1) && knowsWay && gatherNumbers(bootstrap, ranks, rank, 3) &&
         gatherNumbers(bootstrap, ranks, rank, 5);
}

class BootstrapTcpSizes : public testing::TestWithParam<int> {};

TEST_P(BootstrapTcpSizes, ProcessesJoinAndGather) {
  const int ranks = GetParam();
  const taccUniqueId id = makeDistantId();
  const double start = now();
  std::vector<ChildProcess> children;
  for (int rank = ranks - 1; rank >= 1; --rank)
    children.emplace_back([&, rank] { return joinOverTcp(id, ranks, rank); });
  EXPECT_TRUE(joinOverTcp(id, ranks, 0));
  for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0);
  RecordProperty("milliseconds", static_cast<int>(1000 * (now() - start)));
}
INSTANTIATE_TEST_SUITE_P(Ranks, BootstrapTcpSizes, testing::Values(1, 2, 5, 64));

TEST(BootstrapTcp, HundredsOfRanksJoin) {
  constexpr int ranks = 256;
  const taccUniqueId id = makeDistantId();
  std::vector<std::thread> threads;
  std::vector<char> worked(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { worked[static_cast<std::size_t>(rank)] = joinOverTcp(id, ranks, rank); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(worked, std::vector<char>(ranks, 1));
}

TEST(BootstrapTcp, RanksOfTheHostOfRankZeroStillUseUnixSockets) {
  const taccUniqueId id = makeUniqueId();
  // Rank 1 is here and comes first, so that it tries both ways before rank 0 listens at either.
  ChildProcess near([&] {
    Bootstrap bootstrap(id, 3, 1, patience);
    return bootstrap.localAddressToRankZero().empty() && !bootstrap.allUnix() && gatherNumbers(bootstrap, 3, 1, 3) &&
           gatherNumbers(bootstrap, 3, 1, 5);
  });
  ChildProcess far([&] { return joinOverTcp(elsewhere(id), 3, 2); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(joinOverTcp(id, 3, 0));
  EXPECT_EQ(near.wait(), 0);
  EXPECT_EQ(far.wait(), 0);
}

TEST(BootstrapTcp, DescriptorsDoNotPass) {
  const taccUniqueId id = makeDistantId();
  const auto run = [&](int rank) {
    const std::string message = failureOf(taccInternalError, id, 2, rank, patience,
                                          [](Bootstrap& bootstrap) { (void)bootstrap.broadcastDescriptor(0); });
    return message.find("descriptors pass among the ranks of one host only") != std::string::npos;
  };
  ChildProcess child([&] { return run(1); });
  EXPECT_TRUE(run(0));
  EXPECT_EQ(child.wait(), 0);
}

TEST(BootstrapTcp, TheConnectionsCanBeHandedOver) {
  for (const bool overTcp : {true, false}) {
    const taccUniqueId id = overTcp ? makeDistantId() : makeUniqueId();
    ChildProcess child([&] {
      Bootstrap bootstrap(id, 2, 1, patience);
      ControlTree tree = bootstrap.releaseTree();
      if (tree.route != std::vector<int>{0} || !tree.branches.empty()) return false;
      tree.up.queue(MessageKind::gather, payloadOf(4711));
      if (!tree.up.flush()) return false;
      const std::optional<Message> answer = nextMessage(tree.up);
      return answer && valueIn<int>(*answer) == 4712;
    });
    Bootstrap bootstrap(id, 2, 0, patience);
    ControlTree tree = bootstrap.releaseTree();
    ASSERT_EQ(tree.branches.size(), 1u);
    EXPECT_EQ(tree.branches[0].rank, 1);
    Channel& channel = tree.branches[0].channel;
    const std::optional<Message> message = nextMessage(channel);
    ASSERT_TRUE(message);
    EXPECT_EQ(valueIn<int>(*message), 4711);
    channel.queue(MessageKind::gathered, payloadOf(4712));
    EXPECT_TRUE(channel.flush());
    EXPECT_EQ(child.wait(), 0);
    EXPECT_THROW(bootstrap.allGather({}), Error);
    EXPECT_THROW((void)bootstrap.releaseTree(), Error);
  }
}

TEST(BootstrapTcp, StrangersAreRefusedNamedAndHinderNobody) {
  constexpr int ranks = 3;
  const taccUniqueId id = makeDistantId();
  ChildProcess root([&] {
    const CapturedErrors errors;
    const bool joined = joinOverTcp(id, ranks, 0);
    const std::string text = errors.end();
    for (const char* expected : {"refused a connection from ", "sent what is no message of tacc",
                                 "it does not know the secret of the unique id", "closed by the other end"}) {
      if (text.find(expected) != std::string::npos) continue;
      std::fprintf(stderr, "no \"%s\" in: %s\n", expected, text.c_str());
      return false;
    }
    return joined;
  });

  const FileDescriptor silent = connectAsStranger(id);
  const FileDescriptor garbage = connectAsStranger(id);
  ASSERT_TRUE(silent.valid() && garbage.valid());
  const std::string noise(4096, '\x5a');
  (void)::send(garbage.get(), noise.data(), noise.size(), MSG_NOSIGNAL);
  EXPECT_TRUE(isClosedByPeer(garbage.get()));
  FileDescriptor half = connectAsStranger(id);
  (void)::send(half.get(), "\x0a\x0f\xcc\x7a\x02", 5, MSG_NOSIGNAL);
  half.reset();

  Channel channel(connectAsStranger(id));
  const std::optional<Message> message = nextMessage(channel);
  ASSERT_TRUE(message);
  const std::optional<Challenge> challenge = valueIn<Challenge>(*message);
  ASSERT_TRUE(challenge);
  const Secret wrong = openUniqueId(makeUniqueId()).secret;
  channel.queue(MessageKind::hello, payloadOf(answerChallenge(wrong, *challenge, introduceSelf(ranks, 1))));
  ASSERT_TRUE(channel.flush());
  EXPECT_EQ(nextMessage(channel), std::nullopt);

  ChildProcess first([&] { return joinOverTcp(id, ranks, 1); });
  ChildProcess second([&] { return joinOverTcp(id, ranks, 2); });
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
  EXPECT_EQ(root.wait(), 0);
}

TEST(BootstrapTcp, AnotherIdWithTheSameAddressDoesNotJoin) {
  const taccUniqueId id = makeDistantId();
  const taccUniqueId other = changed(id, [](UniqueIdContents& contents) { contents.secret[0] ^= 1; });
  ChildProcess root = expectFailure(taccTimeout, id, 2, 0, 1.0,
                                    {"rank 1 of 2 did not join", "connections were refused, the last from",
                                     "it does not know the secret of the unique id"});
  const std::string message = joinFailure(taccTimeout, other, 2, 1, 0.8);
  EXPECT_THAT(message, HasSubstr(addressesIn(openUniqueId(id))[0].text()));
  EXPECT_THAT(message, HasSubstr("does not know the secret"));
  EXPECT_EQ(root.wait(), 0);
}

TEST(BootstrapTcp, ASilentStrangerAtAnAddressDoesNotKeepARankFromTheNext) {
  const taccUniqueId made = makeUniqueId();
  const taccUniqueId id = changed(elsewhere(made), [](UniqueIdContents& contents) {
    contents.ipv4 = {InetAddress::V4{127, 0, 0, 2}, InetAddress::V4{127, 0, 0, 1}};
  });
  // More specific than rank 0's own socket: connections to this address come here.
  const FileDescriptor silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  (void)::setsockopt(silent.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  (void)::setsockopt(silent.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  sockaddr_storage storage;
  const socklen_t bytes = addressesIn(openUniqueId(id))[0].fill(storage);
  ASSERT_EQ(::bind(silent.get(), reinterpret_cast<const sockaddr*>(&storage), bytes), 0);
  ASSERT_EQ(::listen(silent.get(), 16), 0);
  ChildProcess rank([&] { return joinOverTcp(id, 2, 1); });
  const double start = now();
  EXPECT_TRUE(joinOverTcp(id, 2, 0));
  EXPECT_LT(now() - start, 10);
  EXPECT_EQ(rank.wait(), 0);
}

/// TACC_SOCKET_IFNAME says at which interfaces, too, not only which addresses others are told.
TEST(BootstrapTcp, ListensOnlyAtTheNamedInterfaces) {
  ChildProcess child([] {
    ::setenv("TACC_SOCKET_IFNAME", "lo", 1);
    const UniqueIdContents id = openUniqueId(makeUniqueId());
    std::vector<std::optional<std::vector<Listener>>> doors;
    doors.push_back(listenFor(id));
    doors.push_back(listenAsGateway(gatewayName(id, 1)));
    for (const auto& listeners : doors) {
      int tcp = 0;
      for (const Listener& one : *listeners) {
        if (!one.isTcp) continue;
        const auto address = InetAddress::ofSocket(one.socket.get());
        EXPECT_TRUE(address && address->isLoopback()) << (address ? address->text() : "none");
        EXPECT_EQ(portOf(one.socket.get()), portOf(listeners->back().socket.get()));
        ++tcp;
      }
      EXPECT_GT(tcp, 0);
    }
    return !testing::Test::HasFailure();
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(BootstrapTcp, ARankThatDoesNotComeIsNamed) {
  const taccUniqueId id = makeDistantId();
  ChildProcess one = expectFailure(taccTimeout, id, 3, 1, 0.6, {"rank 2 of 3 did not join within 0.6 s"});
  EXPECT_THAT(joinFailure(taccTimeout, id, 3, 0, 0.6), HasSubstr("rank 0 listens on host"));
  EXPECT_EQ(one.wait(), 0);
}

TEST(BootstrapTcp, ARankZeroThatDoesNotComeLeavesAListOfWhatWasTried) {
  const taccUniqueId id = makeDistantId();
  const std::string message = joinFailure(taccTimeout, id, 2, 1, 0.2);
  for (const InetAddress& address : addressesIn(openUniqueId(id))) EXPECT_THAT(message, HasSubstr(address.text()));
  EXPECT_THAT(message, HasSubstr("connection refused"));
}

TEST(BootstrapTcp, ARankTakenTwiceIsToldToAllWithHosts) {
  const taccUniqueId id = makeDistantId();
  const std::vector<std::string> texts{"rank 1 is taken twice, by process ", " on host "};
  ChildProcess first = expectFailure(taccInvalidUsage, id, 3, 1, patience, texts);
  ChildProcess second = expectFailure(taccInvalidUsage, id, 3, 1, patience, texts);
  EXPECT_THAT(joinFailure(taccInvalidUsage, id, 3, 0, patience), HasSubstr(texts[0]));
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
}

TEST(BootstrapTcp, AnotherVersionOfTheLibraryIsNamed) {
  const taccUniqueId id = makeDistantId();
  ChildProcess root = expectFailure(taccInvalidUsage, id, 2, 0, patience,
                                    {"rank 1 (process 4711 on host far_away?) runs tacc 9.9.9", "0.1.0"});
  Channel channel(connectAsStranger(id));
  const std::optional<Message> challenge = nextMessage(channel);
  ASSERT_TRUE(challenge);
  Introduction who = introduceSelf(2, 1);
  who.libraryVersion = 90909;
  who.pid = 4711;
  who.host = {'f', 'a', 'r', '_', 'a', 'w', 'a', 'y', '\x1b'};
  channel.queue(MessageKind::hello,
                payloadOf(answerChallenge(openUniqueId(id).secret, *valueIn<Challenge>(*challenge), who)));
  ASSERT_TRUE(channel.flush());
  ASSERT_EQ(nextMessage(channel)->kind, MessageKind::welcome);
  channel.trust();
  EXPECT_EQ(nextMessage(channel)->kind, MessageKind::failure);
  EXPECT_EQ(root.wait(), 0);
}

TEST(BootstrapTcp, ARankThatDiesWhileTheOthersJoinIsNamedWithItsHost) {
  const taccUniqueId id = makeDistantId();
  ChildProcess victim([&] {
    const Bootstrap bootstrap(id, 3, 1, patience);
    return true;
  });
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    victim.kill();
  });
  const std::string message = joinFailure(taccRemoteError, id, 3, 0, 10);
  killer.join();
  EXPECT_THAT(message, HasSubstr(fmt::format("rank 1 (process {} on host ", victim.pid())));
  EXPECT_THAT(message, HasSubstr("has ended before all had joined"));
}

TEST(BootstrapTcp, AFailureBetweenCallsIsToldToAll) {
  for (const int failing : {0, 1}) {
    const taccUniqueId id = makeDistantId();
    const auto run = [&](int rank) {
      const std::string message = failureOf(taccRemoteError, id, 3, rank, patience, [&](Bootstrap& bootstrap) {
        if (rank == failing) {
          const Error error(taccRemoteError, "the cellar is full");
          bootstrap.announceFailure(error);
          throw error;
        }
        bootstrap.allGather(std::vector<std::byte>(100'000));
      });
      return message.find("the cellar is full") != std::string::npos;
    };
    ChildProcess one([&] { return run(1); });
    ChildProcess two([&] { return run(2); });
    EXPECT_TRUE(run(0));
    EXPECT_EQ(one.wait(), 0);
    EXPECT_EQ(two.wait(), 0);
  }
}

TEST(BootstrapTcp, AnInterruptEndsABlockedCallOnAllRanks) {
  const taccUniqueId id = makeDistantId();
  ChildProcess child([&] {
    const std::string message =
        failureOf(taccRemoteError, id, 2, 1, patience, [](Bootstrap& bootstrap) { bootstrap.allGather({}); });
    return message.find("aborted by rank 0") != std::string::npos;
  });
  const std::string message = failureOf(taccRemoteError, id, 2, 0, patience, [](Bootstrap& bootstrap) {
    bootstrap.interrupt();
    bootstrap.allGather({});
  });
  EXPECT_THAT(message, HasSubstr("aborted by rank 0"));
  EXPECT_EQ(child.wait(), 0);
}

TEST(BootstrapTcp, ARankZeroOnAnotherHostSaysSo) {
  const taccUniqueId id = changed(makeUniqueId(), [](UniqueIdContents& contents) {
    contents.ipv4 = {InetAddress::V4{198, 51, 100, 77}};  // of a network for documentation only
    contents.ipv6 = {};
  });
  const std::string message = joinFailure(taccInvalidUsage, id, 2, 0, 1.0);
  EXPECT_THAT(message, HasSubstr("the unique id names 198.51.100.77:"));
  EXPECT_THAT(message, HasSubstr("lo 127.0.0.1"));
  EXPECT_THAT(message, HasSubstr("make the id on the host where rank 0 runs"));
}

TEST(BootstrapTcp, APortThatSomebodyElseHasIsNamed) {
  const FileDescriptor other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::listen(other.get(), 1), 0);  // at a port of the kernel's choice
  const std::uint16_t port = portOf(other.get());
  const taccUniqueId id = changed(makeUniqueId(), [&](UniqueIdContents& contents) { contents.port = port; });
  const std::string message = joinFailure(taccSystemError, id, 2, 0, 1.0);
  EXPECT_THAT(message, HasSubstr(fmt::format("rank 0: cannot listen on TCP port {}", port)));
  EXPECT_THAT(message, HasSubstr("make the id on rank 0's host"));
}

TEST(BootstrapTcp, AnIdWithoutAddressesIsGoodOnItsHostAndSaysSoElsewhere) {
  const taccUniqueId id = changed(makeUniqueId(), [](UniqueIdContents& contents) { contents.port = 0; });
  ChildProcess child([&] {
    Bootstrap bootstrap(id, 2, 1, patience);
    return bootstrap.allUnix() && gatherNumbers(bootstrap, 2, 1, 3);
  });
  {
    Bootstrap bootstrap(id, 2, 0, patience);
    EXPECT_TRUE(bootstrap.allUnix() && gatherNumbers(bootstrap, 2, 0, 3));
  }
  EXPECT_EQ(child.wait(), 0);
  EXPECT_THAT(joinFailure(taccTimeout, id, 2, 1, 0.1), HasSubstr("good on rank 0's host only"));
}

TEST(BootstrapTcp, TooFewDescriptorsForAllRanksIsSaidAtOnce) {
  ChildProcess child([] {
    const rlimit limit{512, 512};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    const std::string message = joinFailure(taccSystemError, makeHostUniqueId(), 1000, 0, patience);
    return message.find("1000 ranks") != std::string::npos && message.find("ulimit -n") != std::string::npos;
  });
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace tacc

// Ranks of many hosts that meet in a tree: what they exchange is right in every shape, and who is to blame is named.
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap_team.hpp"
#include "comm/bootstrap/bootstrap.hpp"
#include "comm/bootstrap/channel.hpp"
#include "comm/bootstrap/connect.hpp"
#include "comm/bootstrap/handshake.hpp"
#include "support/child_process.hpp"
#include "transports/unix_socket.hpp"

namespace tacc {
namespace {

using test::bytesOf;
using test::ChildProcess;
using test::gatherNumbers;
using test::isClosedByPeer;
using test::patience;
using test::Signal;
using testing::HasSubstr;

/// Host 0 is rank 0's; ranks of others believe that the id was made elsewhere.
taccUniqueId idFor(const taccUniqueId& id, int host) {
  if (host == 0) return id;
  UniqueIdContents contents = openUniqueId(id);
  contents.host ^= 1;
  return sealUniqueId(contents);
}

BootstrapOptions optionsFor(int host, int width) { return {width, static_cast<std::uint64_t>(host)}; }

/// Strings of different lengths, some empty.
std::vector<std::byte> stringOf(int rank) {
  return std::vector<std::byte>(static_cast<std::size_t>(rank * 37 % 11), static_cast<std::byte>(rank));
}

/// All that passes over a tree, and this rank's place in it; false if something was wrong.
bool useTree(Bootstrap& bootstrap, int ranks, int rank, ControlTree& tree) {
  if (!gatherNumbers(bootstrap, ranks, rank, 3) || !gatherNumbers(bootstrap, ranks, rank, 5)) return false;
  const auto strings = bootstrap.allGatherStrings(stringOf(rank));
  for (int r = 0; r < ranks; ++r)
    if (strings[static_cast<std::size_t>(r)] != stringOf(r)) return false;
  const std::vector<std::byte> secret(1000, std::byte{42});
  if (bootstrap.broadcast(rank == 0 ? std::span(secret) : std::span<const std::byte>()) != secret) return false;
  if (!gatherNumbers(bootstrap, ranks, rank, 7)) return false;
  tree = bootstrap.releaseTree();
  return true;
}

/// Joins all ranks as threads and checks the data and the shape. Returns rank 0's connections over the network.
int expectTree(const std::vector<int>& hosts, int width) {
  const int ranks = static_cast<int>(hosts.size());
  const taccUniqueId id = makeUniqueId();
  std::vector<ControlTree> trees(hosts.size());
  std::vector<char> worked(hosts.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto index = static_cast<std::size_t>(rank);
      const int host = hosts[index];
      try {
        Bootstrap bootstrap(idFor(id, host), ranks, rank, patience, {}, optionsFor(host, width));
        const bool knowsWay = (host != 0) == !bootstrap.localAddressToRankZero().empty();
        worked[index] = knowsWay && useTree(bootstrap, ranks, rank, trees[index]);
      } catch (const Error& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(worked, std::vector<char>(hosts.size(), 1));
  if (testing::Test::HasFailure()) return 0;

  int overNetwork = 0;
  std::vector<int> reached(hosts.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const ControlTree& tree = trees[static_cast<std::size_t>(rank)];
    int fromOthers = 0;
    for (const ControlTree::Branch& branch : tree.branches) {
      const ControlTree& other = trees[static_cast<std::size_t>(branch.rank)];
      EXPECT_EQ(other.route.front(), rank);
      for (const int behind : branch.behind) {
        const std::vector<int>& route = trees[static_cast<std::size_t>(behind)].route;
        const auto here = std::ranges::find(route, rank);
        EXPECT_TRUE(here != route.end() && here != route.begin() && here[-1] == branch.rank) << behind;
      }
      ++reached[static_cast<std::size_t>(branch.rank)];
      fromOthers += hosts[static_cast<std::size_t>(branch.rank)] != hosts[static_cast<std::size_t>(rank)] ? 1 : 0;
    }
    if (rank == 0) overNetwork = fromOthers;
    if (rank == 0) {
      EXPECT_TRUE(tree.route.empty());
      for (int r = 1; r < ranks; ++r)
        EXPECT_EQ(tree.parents[static_cast<std::size_t>(r)], trees[static_cast<std::size_t>(r)].route.front());
    } else {
      EXPECT_EQ(tree.route.back(), 0);
    }
  }
  EXPECT_EQ(reached[0], 0);
  EXPECT_EQ(std::count(reached.begin(), reached.end(), 1), ranks - 1);
  return overNetwork;
}

std::vector<int> blocks(int ranks, int hosts) {
  std::vector<int> result;
  for (int rank = 0; rank < ranks; ++rank) result.push_back(rank * hosts / ranks);
  return result;
}

std::vector<int> cyclic(int ranks, int hosts) {
  std::vector<int> result;
  for (int rank = 0; rank < ranks; ++rank) result.push_back(rank % hosts);
  return result;
}

TEST(BootstrapTree, EveryNumberOfRanksInEveryLayoutGetsTheRightData) {
  std::mt19937 random(7);
  for (int ranks = 1; ranks <= 64 && !testing::Test::HasFailure(); ++ranks) {
    SCOPED_TRACE(ranks);
    const int hosts = 1 + static_cast<int>(random() % static_cast<unsigned>(ranks));
    const int width = 1 + static_cast<int>(random() % 4);
    SCOPED_TRACE(testing::Message() << hosts << " hosts, width " << width);
    expectTree(blocks(ranks, hosts), width);
    expectTree(cyclic(ranks, hosts), width);
    std::vector<int> dealt = cyclic(ranks, hosts);
    std::shuffle(dealt.begin() + 1, dealt.end(), random);
    expectTree(dealt, width);
  }
}

TEST(BootstrapTree, RankZeroTakesFewConnections) {
  // A rank that its gateway keeps waiting on a busy machine may go its own way, and is then sent on or taken.
  EXPECT_LE(expectTree(blocks(200, 10), 32), 12);
  EXPECT_LE(expectTree(blocks(160, 40), 4), 8);
}

TEST(BootstrapTree, FewRanksAreAStar) { EXPECT_EQ(expectTree(blocks(12, 3), 12), 8); }

/// A rank on host 1, apart from rank 0.
Bootstrap makeRank(const taccUniqueId& id, int ranks, int rank, int host = 1, double timeout = patience,
                   const std::stop_token& stop = {}) {
  return Bootstrap(idFor(id, host), ranks, rank, timeout, stop, optionsFor(host, 1));
}

template <class Work>
std::string failureInTree(const taccUniqueId& id, int ranks, int rank, int host, double timeout, const Work& work) {
  try {
    Bootstrap bootstrap = makeRank(id, ranks, rank, host, timeout);
    work(bootstrap);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string joinFailureInTree(const taccUniqueId& id, int ranks, int rank, int host, double timeout = patience) {
  return failureInTree(id, ranks, rank, host, timeout, [](Bootstrap&) {});
}

/// A process whose Error must contain all of `texts`.
ChildProcess expectInTree(const taccUniqueId& id, int ranks, int rank, int host, double timeout,
                          const std::vector<std::string>& texts) {
  return ChildProcess([=] {
    const std::string message = joinFailureInTree(id, ranks, rank, host, timeout);
    for (const std::string& text : texts) {
      if (message.find(text) != std::string::npos) continue;
      std::fprintf(stderr, "rank %d got: %s\n", rank, message.c_str());
      return false;
    }
    return true;
  });
}

/// A stranger's connection to the gateway of host 1, once there is one.
FileDescriptor connectToGateway(const taccUniqueId& id) {
  const AbstractAddress address(gatewayName(openUniqueId(id), 1));
  for (int attempt = 0; attempt < 4000; ++attempt) {
    FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket.get(), address.get(), address.size()) == 0) return socket;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return FileDescriptor();
}

std::optional<Message> nextMessage(Channel& channel) {
  for (const Deadline deadline(patience); !deadline.passed();) {
    const bool open = channel.receive();
    if (std::optional<Message> message = channel.take()) return message;
    if (!open) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::nullopt;
}

void awaitGateway(const taccUniqueId& id) {
  Channel channel(connectToGateway(id));
  const std::optional<Message> challenge = nextMessage(channel);
  ASSERT_TRUE(challenge && challenge->kind == MessageKind::challenge);
}

constexpr auto moment = std::chrono::milliseconds(300);

TEST(BootstrapTree, AGatewayKilledWhileTheOthersJoinIsNamedToAll) {
  const taccUniqueId id = makeUniqueId();
  std::string message;
  std::thread root([&] { message = joinFailureInTree(id, 5, 0, 0, 10); });
  ChildProcess gateway([&] {
    makeRank(id, 5, 1);
    return true;
  });
  awaitGateway(id);
  const std::string name = fmt::format("rank 1 (process {}", gateway.pid());
  ChildProcess behind = expectInTree(id, 5, 2, 1, patience, {name});
  ChildProcess elsewhere = expectInTree(id, 5, 3, 2, patience, {name});
  std::this_thread::sleep_for(moment);
  gateway.kill();
  root.join();
  EXPECT_THAT(message, HasSubstr(name + " on host "));
  EXPECT_THAT(message, HasSubstr("has ended before all had joined"));
  EXPECT_EQ(behind.wait(), 0);
  EXPECT_EQ(elsewhere.wait(), 0);
}

TEST(BootstrapTree, ARankBehindAGatewayThatIsKilledIsNamedToAll) {
  const taccUniqueId id = makeUniqueId();
  std::string message;
  std::thread root([&] { message = joinFailureInTree(id, 4, 0, 0, 10); });
  ChildProcess victim([&] {
    awaitGateway(id);
    makeRank(id, 4, 2);
    return true;
  });
  const std::string name = fmt::format("rank 2 (process {}", victim.pid());
  ChildProcess gateway = expectInTree(id, 4, 1, 1, patience, {name, "has ended before all had joined"});
  awaitGateway(id);
  std::this_thread::sleep_for(moment);
  victim.kill();
  root.join();
  EXPECT_EQ(message.substr(0, name.size()), name) << message;
  EXPECT_THAT(message, HasSubstr("has ended before all had joined"));
  EXPECT_EQ(gateway.wait(), 0);
}

TEST(BootstrapTree, AGatewayStoppedInACollectiveIsNamedAndThoseBehindItAreNot) {
  const taccUniqueId id = makeUniqueId();
  const Signal joined;
  ChildProcess gateway([&] {
    Bootstrap bootstrap = makeRank(id, 3, 1);
    joined.give();
    ::pause();
    return true;
  });
  const auto gather = [](Bootstrap& bootstrap) { bootstrap.allGather({}); };
  const std::string name = fmt::format("rank 1 (process {}", gateway.pid());
  ChildProcess behind([&] {
    awaitGateway(id);
    return failureInTree(id, 3, 2, 1, 1.5, gather).find(name) != std::string::npos;
  });
  const std::string message = failureInTree(id, 3, 0, 0, 1.5, [&](Bootstrap& bootstrap) {
    joined.await();
    gateway.kill(SIGSTOP);
    gather(bootstrap);
  });
  EXPECT_THAT(message, HasSubstr(name));
  EXPECT_THAT(message, HasSubstr("did not take part"));
  EXPECT_EQ(message.find("rank 2"), std::string::npos) << message;
  EXPECT_EQ(behind.wait(), 0);
}

TEST(BootstrapTree, ARankThatDoesNotComeIsNamedToAll) {
  const taccUniqueId id = makeUniqueId();
  const std::string text = "rank 4 of 5 did not join within 1.5 s";
  ChildProcess one = expectInTree(id, 5, 1, 1, 1.5, {text});
  ChildProcess two = expectInTree(id, 5, 2, 1, 1.5, {text});
  ChildProcess three = expectInTree(id, 5, 3, 2, 1.5, {text});
  EXPECT_THAT(joinFailureInTree(id, 5, 0, 0, 1.5), HasSubstr(text));
  EXPECT_EQ(one.wait() + two.wait() + three.wait(), 0);
}

TEST(BootstrapTree, ARankTakenTwiceBehindGatewaysIsToldToAll) {
  const taccUniqueId id = makeUniqueId();
  const std::vector<std::string> texts{"rank 2 is taken twice, by process ", " on host "};
  std::vector<ChildProcess> children;
  for (const int host : {1, 1, 2})
    children.push_back(expectInTree(id, 6, host == 2 ? 2 : 1 + (children.empty() ? 0 : 1), host, patience, texts));
  EXPECT_THAT(joinFailureInTree(id, 6, 0, 0), HasSubstr(texts[0]));
  for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0);
}

TEST(BootstrapTree, DifferentNumbersOfRanksBehindAGatewayAreToldToAll) {
  const taccUniqueId id = makeUniqueId();
  const std::vector<std::string> texts{"rank 2 (process ", "asks for 7 ranks", "for 4"};
  ChildProcess gateway = expectInTree(id, 4, 1, 1, patience, texts);
  ChildProcess wrong = expectInTree(id, 7, 2, 1, patience, texts);
  EXPECT_THAT(joinFailureInTree(id, 4, 0, 0), HasSubstr("asks for 7 ranks"));
  EXPECT_EQ(gateway.wait() + wrong.wait(), 0);
}

TEST(BootstrapTree, AnInterruptIsToldToAllWhoeverItIs) {
  for (const int interrupted : {0, 1, 2, 3}) {
    SCOPED_TRACE(interrupted);
    const taccUniqueId id = makeUniqueId();
    std::vector<std::string> messages(4);
    std::vector<std::thread> threads;
    std::stop_source stop;
    for (int rank = 0; rank < 4; ++rank)
      threads.emplace_back([&, rank] {
        if (rank == 2) awaitGateway(id);
        const int host = rank == 3 ? 2 : rank == 0 ? 0 : 1;
        try {
          makeRank(id, 5, rank, host, patience, rank == interrupted ? stop.get_token() : std::stop_token());
        } catch (const Error& error) {
          messages[static_cast<std::size_t>(rank)] = error.what();
        }
      });
    std::this_thread::sleep_for(moment);
    stop.request_stop();
    for (std::thread& thread : threads) thread.join();
    for (const std::string& message : messages)
      EXPECT_THAT(message, HasSubstr(fmt::format("aborted by rank {}", interrupted)));
  }
}

TEST(BootstrapTree, StrangersAtAGatewayAreRefusedAndHinderNobody) {
  const taccUniqueId id = makeUniqueId();
  const auto join = [&](int rank, int host) {
    Bootstrap bootstrap = makeRank(id, 3, rank, host);
    return gatherNumbers(bootstrap, 3, rank, 3);
  };
  ChildProcess root([&] { return join(0, 0); });
  ChildProcess gateway([&] { return join(1, 1); });
  const FileDescriptor silent = connectToGateway(id);
  const FileDescriptor garbage = connectToGateway(id);
  ASSERT_TRUE(silent.valid() && garbage.valid());
  const std::string noise(4096, '\x5a');
  (void)::send(garbage.get(), noise.data(), noise.size(), MSG_NOSIGNAL);
  EXPECT_TRUE(isClosedByPeer(garbage.get()));
  Channel channel(connectToGateway(id));
  const std::optional<Message> message = nextMessage(channel);
  ASSERT_TRUE(message && valueIn<Challenge>(*message));
  const Secret wrong = openUniqueId(makeUniqueId()).secret;
  channel.queue(MessageKind::hello,
                payloadOf(answerChallenge(wrong, *valueIn<Challenge>(*message), introduceSelf(3, 2))));
  EXPECT_TRUE(channel.flush());
  EXPECT_TRUE(isClosedByPeer(channel.fd()));
  ChildProcess behind([&] { return join(2, 1); });
  EXPECT_EQ(root.wait() + gateway.wait() + behind.wait(), 0);
}

TEST(BootstrapTree, ARankThatIsSentToAGatewayItCannotReachIsTakenByRankZero) {
  const taccUniqueId id = makeUniqueId();
  ChildProcess root([&] {
    Bootstrap bootstrap = makeRank(id, 3, 0, 0);
    return bootstrap.releaseTree().branches.size() == 2;
  });
  // A gateway, rank 1, with a port at which nobody listens.
  const InetAddress address = addressesIn(openUniqueId(id)).at(0);
  const Interrupt interrupt(1);
  FileDescriptor socket;
  for (int attempt = 0; attempt < 2000 && !socket.valid(); ++attempt) {
    socket = connectTcp(address, 1.0, Deadline(1.0), interrupt).socket;
    if (!socket.valid()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  Channel channel(std::move(socket));
  const std::optional<Message> challenge = nextMessage(channel);
  ASSERT_TRUE(challenge && valueIn<Challenge>(*challenge));
  Introduction who = introduceSelf(3, 1);
  who.port = 1;
  channel.queue(MessageKind::hello,
                payloadOf(answerChallenge(openUniqueId(id).secret, *valueIn<Challenge>(*challenge), who)));
  ASSERT_TRUE(channel.flush());
  ASSERT_EQ(nextMessage(channel)->kind, MessageKind::welcome);
  channel.trust();
  ASSERT_EQ(nextMessage(channel)->kind, MessageKind::admitted);
  ChildProcess other([&] {
    makeRank(id, 3, 2, 2);
    return true;
  });
  EXPECT_EQ(nextMessage(channel)->kind, MessageKind::complete);
  EXPECT_EQ(root.wait() + other.wait(), 0);
}

TEST(BootstrapTree, NothingIsLeftOpen) {
  const taccUniqueId id = makeUniqueId();
  const auto run = [&](int rank, int host) {
    test::openBell();
    const int before = test::countOpenDescriptors();
    {
      Bootstrap bootstrap = makeRank(id, 4, rank, host);
      if (!gatherNumbers(bootstrap, 4, rank, 3)) return false;
    }
    return test::countOpenDescriptors() <= before;  // less: the maker of the id no longer reserves its port
  };
  std::vector<ChildProcess> children;
  for (const int rank : {1, 2, 3}) children.emplace_back([&, rank] { return run(rank, rank == 3 ? 2 : 1); });
  EXPECT_TRUE(run(0, 0));
  for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0);
  const AbstractAddress name(gatewayName(openUniqueId(id), 1));
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_NE(::connect(socket.get(), name.get(), name.size()), 0);
}

}  // namespace
}  // namespace tacc

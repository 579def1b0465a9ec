// The bootstrap between real processes: it works, and refuses strangers and ranks that do not fit together.
#include "comm/bootstrap/bootstrap.hpp"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap_team.hpp"
#include "comm/bootstrap/channel.hpp"
#include "comm/bootstrap/handshake.hpp"
#include "comm/bootstrap/listeners.hpp"
#include "comm/bootstrap/reception.hpp"
#include "support/child_process.hpp"
#include "transports/shm/shared_memory.hpp"
#include "transports/unix_socket.hpp"

namespace tacc {
namespace {

using test::bytesOf;
using test::ChildProcess;
using test::expectFailure;
using test::gatherNumbers;
using test::isClosedByPeer;
using test::joinFailure;
using test::patience;
using testing::HasSubstr;

/// What a communicator does with it.
bool useAll(const taccUniqueId& id, int ranks, int rank) {
  test::openBell();
  const int before = test::countOpenDescriptors();
  {
    Bootstrap bootstrap(id, ranks, rank, patience);
    if (!gatherNumbers(bootstrap, ranks, rank, 3)) return false;
    SharedMemory segment = rank == 0 ? SharedMemory::create(65536, "segment") : SharedMemory();
    FileDescriptor fd = bootstrap.broadcastDescriptor(segment.fd());
    if (rank != 0) segment = SharedMemory::map(std::move(fd), 65536, "segment");
    segment.data()[rank] = static_cast<std::byte>(rank + 1);
    if (!gatherNumbers(bootstrap, ranks, rank, 5)) return false;
    for (int r = 0; r < ranks; ++r) {
      if (segment.data()[r] != static_cast<std::byte>(r + 1)) return false;
    }
    if (!gatherNumbers(bootstrap, ranks, rank, 7)) return false;
  }
  return test::countOpenDescriptors() <= before;  // less: the maker of the id no longer reserves its port
}

/// A connection of somebody who is not of the job.
FileDescriptor connectAsStranger(const taccUniqueId& id) {
  const AbstractAddress address(rendezvousName(openUniqueId(id)));
  for (int attempt = 0; attempt < 2000; ++attempt) {
    FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket.get(), address.get(), address.size()) == 0) return socket;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return FileDescriptor();
}

class BootstrapSizes : public testing::TestWithParam<int> {};

TEST_P(BootstrapSizes, ProcessesJoinAndGather) {
  const int ranks = GetParam();
  const taccUniqueId id = makeUniqueId();
  std::vector<ChildProcess> children;
  for (int rank = ranks - 1; rank >= 1; --rank) children.emplace_back([&, rank] { return useAll(id, ranks, rank); });
  EXPECT_TRUE(useAll(id, ranks, 0));
  for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0);
}
INSTANTIATE_TEST_SUITE_P(Ranks, BootstrapSizes, testing::Values(1, 2, 5, 64));

TEST(Bootstrap, ThreadsOfOneProcessJoinToo) {
  constexpr int ranks = 4;
  const taccUniqueId id = makeUniqueId();
  std::vector<std::thread> threads;
  std::vector<char> worked(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Bootstrap bootstrap(id, ranks, rank, patience);
      worked[static_cast<std::size_t>(rank)] =
          gatherNumbers(bootstrap, ranks, rank, 3) && gatherNumbers(bootstrap, ranks, rank, 5);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(worked, std::vector<char>(ranks, 1));
}

TEST(Bootstrap, LargePartsPass) {
  constexpr int ranks = 3;
  constexpr std::size_t bytes = 3 << 20;
  const taccUniqueId id = makeUniqueId();
  const auto work = [&](int rank) {
    Bootstrap bootstrap(id, ranks, rank, patience);
    const std::vector<std::byte> mine(bytes, static_cast<std::byte>(rank));
    const std::vector<std::byte> all = bootstrap.allGather(mine);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] != static_cast<std::byte>(i / bytes)) return false;
    }
    return true;
  };
  std::vector<ChildProcess> children;
  for (int rank = 1; rank < ranks; ++rank) children.emplace_back([&, rank] { return work(rank); });
  EXPECT_TRUE(work(0));
  for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0);
}

TEST(Bootstrap, StrangersAreRefusedAndHinderNobody) {
  constexpr int ranks = 3;
  const taccUniqueId id = makeUniqueId();
  ChildProcess root([&] { return useAll(id, ranks, 0); });

  const FileDescriptor silent = connectAsStranger(id);
  const FileDescriptor garbage = connectAsStranger(id);
  ASSERT_TRUE(silent.valid() && garbage.valid());
  const std::string noise(4096, '\x5a');
  (void)::send(garbage.get(), noise.data(), noise.size(), MSG_NOSIGNAL);
  EXPECT_TRUE(isClosedByPeer(garbage.get()));

  // Half a message, then silence.
  const FileDescriptor half = connectAsStranger(id);
  (void)::send(half.get(), "\x0a\x0f\xcc\x7a\x02", 5, MSG_NOSIGNAL);

  // The right protocol with another secret, or with what it says changed after the proof.
  for (const bool wrongSecret : {true, false}) {
    Channel channel(connectAsStranger(id));
    std::optional<Message> message;
    while (!message) {
      ASSERT_TRUE(channel.receive());
      message = channel.take();
    }
    const std::optional<Challenge> challenge = valueIn<Challenge>(*message);
    ASSERT_TRUE(challenge);
    const Secret secret = openUniqueId(wrongSecret ? makeUniqueId() : id).secret;
    Hello hello = answerChallenge(secret, *challenge, introduceSelf(ranks, 1));
    if (!wrongSecret) hello.who.rank = 2;
    channel.queue(MessageKind::hello, payloadOf(hello));
    ASSERT_TRUE(channel.flush());
    EXPECT_TRUE(isClosedByPeer(channel.fd()));
  }

  ChildProcess first([&] { return useAll(id, ranks, 1); });
  ChildProcess second([&] { return useAll(id, ranks, 2); });
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
  EXPECT_EQ(root.wait(), 0);
}

TEST(Bootstrap, AnImpostorAtTheRendezvousIsNotBelieved) {
  const taccUniqueId id = makeUniqueId();
  const AbstractAddress address(rendezvousName(openUniqueId(id)));
  const FileDescriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listener.get(), address.get(), address.size()), 0);
  ASSERT_EQ(::listen(listener.get(), 16), 0);
  std::thread impostor([&] {
    for (;;) {
      Channel channel(FileDescriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)));
      if (channel.fd() < 0) return;  // the test is over
      const Challenge challenge{makeNonce()};
      channel.queue(MessageKind::challenge, payloadOf(challenge));
      channel.queue(MessageKind::welcome, payloadOf(Welcome{introduceSelf(2, 0), makeNonce()}));
      channel.queue(MessageKind::complete, nullptr);
      (void)channel.flush();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  EXPECT_THAT(joinFailure(taccTimeout, id, 2, 1, 0.3), HasSubstr("does not know the secret"));
  ::shutdown(listener.get(), SHUT_RDWR);
  impostor.join();
}

TEST(Bootstrap, ARankTakenTwiceIsToldToAll) {
  for (const int twice : {1, 0}) {
    const taccUniqueId id = makeUniqueId();
    const std::vector<std::string> texts{fmt::format("rank {} is taken twice", twice)};
    ChildProcess first = expectFailure(taccInvalidUsage, id, 4, twice, patience, texts);
    ChildProcess second = expectFailure(taccInvalidUsage, id, 4, twice, patience, texts);
    ChildProcess other = expectFailure(taccInvalidUsage, id, 4, 2, patience, texts);
    if (twice == 1) {
      const std::string message = joinFailure(taccInvalidUsage, id, 4, 0, patience);
      EXPECT_THAT(message, HasSubstr(texts[0]));
      EXPECT_THAT(message, HasSubstr(fmt::format("process {}", first.pid())));
      EXPECT_THAT(message, HasSubstr(fmt::format("process {}", second.pid())));
    }
    EXPECT_EQ(first.wait(), 0);
    EXPECT_EQ(second.wait(), 0);
    EXPECT_EQ(other.wait(), 0);
  }
}

TEST(Bootstrap, DifferentNumbersOfRanksAreToldToAll) {
  const taccUniqueId id = makeUniqueId();
  ChildProcess wrong = expectFailure(taccInvalidUsage, id, 5, 1, patience, {"asks for 5 ranks", "for 3"});
  ChildProcess right = expectFailure(taccInvalidUsage, id, 3, 2, patience, {"asks for 5 ranks", "for 3"});
  EXPECT_THAT(joinFailure(taccInvalidUsage, id, 3, 0, patience), HasSubstr("rank 1 (process"));
  EXPECT_EQ(wrong.wait(), 0);
  EXPECT_EQ(right.wait(), 0);
}

/// The next message; none when the other end has closed.
std::optional<Message> nextMessage(Channel& channel) {
  for (;;) {
    const bool open = channel.receive();
    if (std::optional<Message> message = channel.take()) return message;
    if (!open) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(Bootstrap, AnotherVersionOfTheLibraryIsNamed) {
  const taccUniqueId id = makeUniqueId();
  ChildProcess root =
      expectFailure(taccInvalidUsage, id, 2, 0, patience, {"rank 1 (process 4711) runs tacc 9.9.9", "0.1.0"});
  Channel channel(connectAsStranger(id));
  const std::optional<Message> challenge = nextMessage(channel);
  ASSERT_TRUE(challenge);
  Introduction who = introduceSelf(2, 1);
  who.libraryVersion = 90909;
  who.pid = 4711;
  const Hello hello = answerChallenge(openUniqueId(id).secret, *valueIn<Challenge>(*challenge), who);
  channel.queue(MessageKind::hello, payloadOf(hello));
  ASSERT_TRUE(channel.flush());
  ASSERT_EQ(nextMessage(channel)->kind, MessageKind::welcome);
  channel.trust();
  EXPECT_EQ(nextMessage(channel)->kind, MessageKind::failure);
  EXPECT_EQ(root.wait(), 0);
}

/// Proves to be rank 1 of three and hears what rank 0 says after its welcome.
std::optional<Message> comeAsRankOne(Channel& channel, const taccUniqueId& id) {
  const std::optional<Message> challenge = nextMessage(channel);
  if (!challenge) return std::nullopt;
  channel.queue(MessageKind::hello, payloadOf(answerChallenge(openUniqueId(id).secret, *valueIn<Challenge>(*challenge),
                                                              introduceSelf(3, 1))));
  if (!channel.flush() || nextMessage(channel)->kind != MessageKind::welcome) return std::nullopt;
  channel.trust();
  return nextMessage(channel);
}

TEST(Bootstrap, ARankThatComesTwiceKeepsNobodyFromBeingTold) {
  const taccUniqueId id = makeUniqueId();
  ChildProcess root = expectFailure(taccRemoteError, id, 3, 0, patience, {"rank 1 (process", "has ended"});
  {
    Channel first(connectAsStranger(id));
    EXPECT_EQ(comeAsRankOne(first, id)->kind, MessageKind::admitted);
  }
  Channel second(connectAsStranger(id));
  EXPECT_EQ(comeAsRankOne(second, id)->kind, MessageKind::failure);
  ChildProcess late = expectFailure(taccRemoteError, id, 3, 2, patience, {"rank 1 (process", "has ended"});
  EXPECT_EQ(late.wait(), 0);
  EXPECT_EQ(root.wait(), 0);
}

/// Whoever connects faster than connections can be accepted must not keep rank 0 from its deadlines.
TEST(Bootstrap, OneLookAtTheDoorAcceptsABoundedNumber) {
  constexpr int strangers = 200;
  constexpr int bound = Admission::acceptedAtOnce;
  const UniqueIdContents id = openUniqueId(makeHostUniqueId());
  Reception reception(*listenFor(id), introduceSelf(2, 0), id.secret);
  std::vector<FileDescriptor> sockets;
  const AbstractAddress address(rendezvousName(id));
  for (int i = 0; i < strangers; ++i) {
    sockets.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(sockets.back().get(), address.get(), address.size()), 0);
  }
  const auto challenged = [&] {
    std::vector<pollfd> looks;
    for (const FileDescriptor& socket : sockets) looks.push_back({socket.get(), POLLIN, 0});
    return ::poll(looks.data(), looks.size(), 0);
  };
  for (int served = 0; served < strangers; served += bound) {
    Deadline next(patience);
    std::vector<pollfd> looks;
    reception.addDescriptors(looks, next);
    ASSERT_GT(::poll(looks.data(), looks.size(), 0), 0);
    reception.serve(looks, [](Guest&) {});
    EXPECT_EQ(challenged(), std::min(served + bound, strangers));
  }
}

TEST(Bootstrap, BadArgumentsAreNamed) {
  const taccUniqueId id = makeUniqueId();
  EXPECT_THAT(joinFailure(taccInvalidArgument, id, 0, 0, 1), HasSubstr("number of ranks is 0"));
  EXPECT_THAT(joinFailure(taccInvalidArgument, id, 2, 2, 1), HasSubstr("must be 0 to 1"));
  EXPECT_THAT(joinFailure(taccInvalidArgument, id, 2, -1, 1), HasSubstr("rank is -1"));
  EXPECT_THAT(joinFailure(taccInvalidArgument, id, 2, 0, 0), HasSubstr("time-out"));
  EXPECT_THAT(joinFailure(taccInvalidArgument, taccUniqueId{}, 1, 0, 1), HasSubstr("all zero"));
}

}  // namespace
}  // namespace tacc

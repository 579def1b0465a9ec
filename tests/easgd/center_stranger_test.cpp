// Who comes to a center and does not belong there, or belongs there and lies: it is told so or cut off, and hinders
// nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>

#include "center_team.hpp"
#include "comm/bootstrap/connect.hpp"
#include "comm/bootstrap/handshake.hpp"
#include "comm/hosts.hpp"
#include "easgd/center.hpp"
#include "easgd/center_memory.hpp"
#include "easgd/center_protocol.hpp"
#include "transports/unix_socket.hpp"

namespace tacc {
namespace {

using test::connectBy;
using test::exchange;
using test::failureOf;
using test::idFor;
using test::patience;
using test::Route;
using test::Setting;
using test::Signal;
using test::startWorker;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t count = 2 * pieceElements + 5;

UniqueIdContents open(const taccUniqueId& id) { return openUniqueId(id, IdPurpose::center); }

FileDescriptor connectAsStranger(const taccUniqueId& id, bool overTcp) {
  const Interrupt interrupt(0);
  Attempt made = overTcp ? connectTcp(addressesIn(open(id)).at(0), patience, Deadline(patience), interrupt)
                         : connectUnix(rendezvousName(open(id)));
  EXPECT_TRUE(made.socket.valid()) << made.problem;
  return std::move(made.socket);
}

/// Nothing: the other end has closed.
std::optional<Message> nextMessage(Channel& channel) {
  const Interrupt interrupt(0);
  const Deadline deadline(patience);
  while (!deadline.passed()) {
    if (!channel.flush()) return std::nullopt;
    const bool isOpen = channel.receive();
    if (auto message = channel.take()) return message;
    if (!isOpen) return std::nullopt;
    std::vector<pollfd> socket{{channel.fd(), POLLIN, 0}};
    waitFor(socket, interrupt, Deadline(0.1));
  }
  ADD_FAILURE() << "the center neither answers nor closes";
  return std::nullopt;
}

/// A worker that knows the secret, and then says what it likes.
Channel enterAs(const taccUniqueId& id, bool overTcp, const Introduction& who) {
  Channel channel(connectAsStranger(id, overTcp));
  const Secret secret = open(id).secret;
  const auto challenge = nextMessage(channel);
  const Hello hello = answerChallenge(secret, *valueIn<Challenge>(*challenge), who);
  channel.queue(MessageKind::hello, payloadOf(hello));
  const auto welcome = nextMessage(channel);
  EXPECT_TRUE(welcome && welcome->kind == MessageKind::welcome);
  channel.trust();
  return channel;
}

std::string refusalOf(const taccUniqueId& id, const Introduction& who, const CenterJoin& join) {
  Channel channel = enterAs(id, true, who);
  channel.queue(MessageKind::centerJoin, payloadOf(join));
  const auto answer = nextMessage(channel);
  if (!answer || answer->kind != MessageKind::failure) return "not refused";
  EXPECT_FALSE(nextMessage(channel));
  return std::string(reinterpret_cast<const char*>(answer->payload.data()) + 4, answer->payload.size() - 4);
}

KeptCenter keep() { return keepCenter(count, nullptr, {.timeout = patience}); }

struct Served {
  KeptCenter kept = keep();

  /// The others are served as ever.
  void expectWorks() const {
    std::vector<float> weights(count, 2.0f);
    for (const Route route : {Route::mapped, Route::tcp}) {
      const auto own = connectBy(route, kept.id, count);
      own->write(weights.data());
      exchange(*own, weights, 0.5f);
      EXPECT_THAT(weights, testing::Each(2.0f));
    }
  }
};

TEST(CenterStranger, GarbageSilenceAndHalfOpenConnectionsHinderNobody) {
  const Served center;
  std::vector<FileDescriptor> strangers;
  const std::string noise(10'000, '\x5a');
  for (int i = 0; i < 300; ++i) {
    strangers.push_back(connectAsStranger(center.kept.id, i % 2 == 0));
    if (i % 3 == 0) (void)!::send(strangers.back().get(), noise.data(), noise.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (i % 3 == 1) (void)!::send(strangers.back().get(), "\x0a\x0f", 2, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (i % 50 == 0) center.expectWorks();
  }
  center.expectWorks();
  EXPECT_TRUE(test::eventually([&] { return center.kept.center->counts().workers == 0; }));
}

TEST(CenterStranger, WhoDoesNotKnowTheSecretIsNotLetIn) {
  const Served center;
  UniqueIdContents contents = open(center.kept.id);
  contents.secret[7] ^= 1;
  EXPECT_THAT(failureOf(taccTimeout, [&] { (void)connectCenter(sealUniqueId(contents), count, {.timeout = 1}); }),
              AllOf(HasSubstr("does not know the secret"), HasSubstr(addressesIn(contents)[0].text())));
  center.expectWorks();
}

TEST(CenterStranger, AnIdOfAnotherKindIsNamed) {
  const Served center;
  taccUniqueId id = makeUniqueId();
  EXPECT_THAT(failureOf(taccInvalidArgument, [&] { (void)connectCenter(id, count, {}); }),
              AllOf(HasSubstr("not that of a center"), HasSubstr("taccCenterCreate")));
  taccComm_t comm = nullptr;
  EXPECT_EQ(taccCommInitRank(&comm, 1, center.kept.id, 0), taccInvalidArgument);
  EXPECT_THAT(taccGetLastError(nullptr), HasSubstr("is that of a center, from taccCenterCreate"));
  EXPECT_EQ(comm, nullptr);
  id.internal[30] ^= 4;
  EXPECT_THAT(failureOf(taccInvalidArgument, [&] { (void)connectCenter(id, count, {}); }), HasSubstr("damaged"));
  EXPECT_THAT(failureOf(taccInvalidArgument, [&] { (void)connectCenter(taccUniqueId{}, count, {}); }),
              HasSubstr("all zero"));
}

TEST(CenterStranger, AnotherCountIsNamedByEveryWay) {
  const Served center;
  for (const Route route : {Route::mapped, Route::unixSocket, Route::tcp}) {
    EXPECT_THAT(failureOf(taccInvalidUsage, [&] { (void)connectBy(route, center.kept.id, count + 1); }),
                AllOf(HasSubstr(fmt::format("asks for a center of {} numbers", count + 1)),
                      HasSubstr(fmt::format("has {}", count)), HasSubstr(fmt::format("process {}", ::getpid()))));
  }
  center.expectWorks();
}

TEST(CenterStranger, AnotherVersionIsNamed) {
  const Served center;
  Introduction who = introduceSelf(1, 0);
  who.libraryVersion = 90909;
  who.host = {'f', 'a', 'r', '\x1b'};
  who.pid = 4711;
  EXPECT_THAT(refusalOf(center.kept.id, who, {count, centerProtocol, 0}),
              AllOf(HasSubstr("process 4711 on host far? runs tacc 9.9.9"), HasSubstr("use one version")));
  EXPECT_THAT(refusalOf(center.kept.id, introduceSelf(1, 0), {count, centerProtocol + 1, 0}),
              HasSubstr("use one version"));
}

TEST(CenterStranger, EncryptionHasToBeSetAlike) {
  const Setting setting("TACC_ENCRYPTION", "on");
  const Served center;
  center.expectWorks();
  std::vector<float> weights(count, 3.0f);
  exchange(*connectBy(Route::unixSocket, center.kept.id, count), weights, 1.0f);
  EXPECT_THAT(weights, testing::Each(2.0f));
  ::setenv("TACC_ENCRYPTION", "off", 1);
  EXPECT_THAT(failureOf(taccInvalidUsage, [&] { (void)connectBy(Route::tcp, center.kept.id, count); }),
              AllOf(HasSubstr("TACC_ENCRYPTION off"), HasSubstr("on: set it alike")));
}

/// What no worker sends: each cuts off who sends it, and nobody else.
TEST(CenterStranger, WorkersThatLieAreCutOff) {
  const Served center;
  const auto head = [](CenterAction action, std::uint64_t first, std::uint32_t elements, float alpha = 0.5f) {
    return CenterRequest{first, action, 1, elements, alpha, 1, 0};
  };
  struct Lie {
    const char* what;
    MessageKind kind;
    CenterRequest request;
    std::size_t numbers;
  };
  const auto piece = static_cast<std::uint32_t>(pieceElements);
  const float infinite = std::numeric_limits<float>::infinity();
  const Lie lies[] = {
      {"not at a piece", MessageKind::centerRequest, head(CenterAction::move, 1, piece), pieceElements},
      {"behind the end", MessageKind::centerRequest, head(CenterAction::read, 3 * pieceElements, 5), 0},
      {"far behind it", MessageKind::centerRequest, head(CenterAction::read, ~0ULL / piece * piece, piece), 0},
      {"too many", MessageKind::centerRequest, head(CenterAction::write, 2 * pieceElements, 6), 6},
      {"too few", MessageKind::centerRequest, head(CenterAction::write, 2 * pieceElements, 4), 4},
      {"none of them", MessageKind::centerRequest, head(CenterAction::move, 0, piece), 0},
      {"more of them", MessageKind::centerRequest, head(CenterAction::read, 0, piece), 1},
      {"no such action", MessageKind::centerRequest, head(static_cast<CenterAction>(9), 0, piece), 0},
      {"an infinite alpha", MessageKind::centerRequest, head(CenterAction::move, 0, piece, infinite), pieceElements},
      {"counts of a piece", MessageKind::centerRequest, head(CenterAction::count, 0, piece), 0},
      {"another message", MessageKind::gather, head(CenterAction::read, 0, piece), 0},
      {"a longer message than there is", MessageKind::centerRequest, head(CenterAction::move, 0, piece), 1 << 20},
  };
  for (const Lie& lie : lies) {
    Channel channel = enterAs(center.kept.id, true, introduceSelf(1, 0));
    channel.queue(MessageKind::centerJoin, payloadOf(CenterJoin{count, centerProtocol, 0}));
    const auto seat = nextMessage(channel);
    ASSERT_TRUE(seat && seat->kind == MessageKind::centerSeat) << lie.what;
    std::vector<std::byte> bytes(sizeof lie.request + lie.numbers * sizeof(float));
    std::memcpy(bytes.data(), &lie.request, sizeof lie.request);
    channel.queue(lie.kind, makePayload(std::move(bytes)));
    EXPECT_FALSE(nextMessage(channel)) << lie.what;
  }
  Channel mapped = enterAs(center.kept.id, false, introduceSelf(1, 0));
  mapped.queue(MessageKind::centerJoin, payloadOf(CenterJoin{count, centerProtocol, 1}));
  const auto seat = nextMessage(mapped);
  ASSERT_TRUE(seat && seat->descriptors.size() == 1);
  mapped.queue(MessageKind::centerRequest, payloadOf(head(CenterAction::read, 0, piece)));
  EXPECT_FALSE(nextMessage(mapped));
  center.expectWorks();
  EXPECT_TRUE(test::eventually([&] { return center.kept.center->counts().workers == 0; }));
}

/// Who asks and never listens is not heard any more once the system's buffers are full.
TEST(CenterStranger, AWorkerThatNeverReadsTakesNoMemory) {
  const Served center;
  Channel channel = enterAs(center.kept.id, true, introduceSelf(1, 0));
  channel.queue(MessageKind::centerJoin, payloadOf(CenterJoin{count, centerProtocol, 0}));
  ASSERT_TRUE(nextMessage(channel));
  const CenterRequest request{0, CenterAction::read, 1, static_cast<std::uint32_t>(pieceElements), 0, 0, 0};
  constexpr std::size_t most = 1'000'000;  // replies of 32 GiB
  std::size_t asked = 0;
  for (; asked < most; ++asked) {
    channel.queue(MessageKind::centerRequest, payloadOf(request));
    ASSERT_TRUE(channel.flush());
    if (!channel.hasOutput()) continue;
    pollfd socket{channel.fd(), POLLOUT, 0};
    if (::poll(&socket, 1, 500) == 0) break;
  }
  EXPECT_LT(asked, most);
  center.expectWorks();
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 2 << 20) << "KiB";
}

TEST(CenterStranger, AnotherUserIsNamedOrComesOverTcp) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be several users";
  constexpr uid_t other = 1001;
  const test::Keeper here(count, {.servesHosts = false, .timeout = patience});
  const test::Keeper everywhere(count, {.timeout = patience});
  test::ChildProcess foreign = startWorker([&] {
    if (::setresuid(other, other, other) != 0) return false;
    EXPECT_THAT(failureOf(taccRemoteError, [&] { (void)connectCenter(here.id(), count, {}); }),
                AllOf(HasSubstr("kept by another user"), HasSubstr("user 0"), HasSubstr("user 1001")));
    const auto own = connectCenter(everywhere.id(), count, {.timeout = patience});
    EXPECT_TRUE(own->isRemote());
    std::vector<float> weights(count, 4.0f);
    exchange(*own, weights, 0.5f);
    EXPECT_THAT(weights, testing::Each(2.0f));
    return true;
  });
  EXPECT_EQ(foreign.wait(), 0);
}

TEST(CenterStranger, ACenterOfOneHostOpensNoPort) {
  const KeptCenter kept = keepCenter(count, nullptr, {.servesHosts = false, .timeout = patience});
  EXPECT_EQ(open(kept.id).port, 0);
  EXPECT_TRUE(addressesIn(open(kept.id)).empty());
  std::vector<float> weights(count, 4.0f);
  for (const Route route : {Route::mapped, Route::unixSocket})
    exchange(*connectBy(route, kept.id, count), weights, 0.5f);
  EXPECT_THAT(weights, testing::Each(2.0f));
}

/// There is no descriptor for another worker: those that are connected are served as fast as ever, and the next one
/// gets in when one leaves.
TEST(CenterStranger, ALackOfDescriptorsDoesNotHoldUpWhoIsConnected) {
  const test::Keeper keeper(count, {.timeout = patience}, [] {
    const auto most = static_cast<rlim_t>(test::countOpenDescriptors() + 24);
    const rlimit limit{most, most};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  });
  const auto own = connectBy(Route::tcp, keeper.id(), count);
  std::vector<std::unique_ptr<Center>> others;
  for (bool isFull = false; !isFull && others.size() < 100;) {
    try {
      others.push_back(connectBy(Route::tcp, keeper.id(), count, 1));
    } catch (const Error& error) {
      EXPECT_EQ(error.result(), taccTimeout) << error.what();
      isFull = true;
    }
  }
  ASSERT_LT(others.size(), 30u);
  const FileDescriptor waiting = connectAsStranger(keeper.id(), true);
  std::vector<float> weights(count, 1.0f);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) exchange(*own, weights, 0.5f);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
  others.resize(others.size() / 2);
  exchange(*connectBy(Route::tcp, keeper.id(), count), weights, 0.5f);
}

TEST(CenterStranger, ComingAndGoingLeavesNoDescriptors) {
  keep();
  const int before = test::countOpenDescriptors();
  {
    const Served center;
    for (int i = 0; i < 20; ++i) center.expectWorks();
  }
  EXPECT_LE(test::countOpenDescriptors(), before + 1);  // this thread's own for waiting
}

}  // namespace
}  // namespace tacc

// Whom the sentence of an inquest names, and what it says of those who do not answer: no more than rank 0 can know.
#include "comm/control/inquest.hpp"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../support/child_process.hpp"
#include "../support/loopback.hpp"
#include "comm/bootstrap/connect.hpp"
#include "comm/control/control_plane.hpp"
#include "core/error.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

using test::ChildProcess;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr int noNetwork = 77;  // status of a child

/// Ranks of these hosts; rank 3's process is 103.
std::vector<RankIdentity> ranksOf(const std::vector<std::uint64_t>& hosts) {
  std::vector<RankIdentity> who(hosts.size());
  for (std::size_t rank = 0; rank < who.size(); ++rank) {
    who[rank].host = hosts[rank];
    who[rank].process = static_cast<int>(100 + rank);
    who[rank].hostName = {'h', static_cast<char>('0' + hosts[rank])};
  }
  return who;
}

struct Heard {
  std::vector<std::uint64_t> hosts;
  std::vector<int> parents;
  std::vector<int> unconfirmed;
  std::vector<int> answering = {}, stuck = {};
};

std::string verdictOf(const Heard& heard) {
  Inquest inquest(heard.hosts.size());
  for (const int rank : heard.stuck) inquest.hear(rank, fmt::format("was in call {}", 10 + rank));
  for (const int rank : heard.answering) inquest.answer(rank, fmt::format("was in call {}", 20 + rank));
  return inquest.verdict(ranksOf(heard.hosts), heard.parents, heard.unconfirmed, "was in call 20");
}

TEST(Inquest, RankZerosHostIsCutOffWhereNoOtherKernelConfirmsAnything) {
  EXPECT_EQ(
      verdictOf({{0, 1, 2}, {-1, 0, 0}, {1, 2}}),
      "rank 0 (process 100 on host h0) sends in vain: its host is cut off from the network, or all others are; no "
      "kernel confirms what is sent to rank 1 (process 101 on host h1), rank 2 (process 102 on host h2); meanwhile "
      "rank 0 was in call 20");
}

/// Whatever it is called a host: ranks that may not share memory are on "hosts" of their own.
TEST(Inquest, NobodyIsCutOffWhereAKernelConfirmsOrAnotherHostIsHeard) {
  const std::vector<Heard> all = {{{0, 1, 2}, {-1, 0, 0}, {}},             // all compute
                                  {{0, 1, 2}, {-1, 0, 0}, {2}},            // one host alone may be
                                  {{0, 1, 1}, {-1, 0, 0}, {1, 2}},         // there is but one
                                  {{0, 1, 2}, {-1, 0, 1}, {1}},            // a gateway keeps back what rank 2 says
                                  {{0, 0, 1, 2}, {-1, 0, 1, 1}, {}, {1}},  // rank 1 has asked, not rank 0's kernel
                                  {{0, 0, 1, 2}, {-1, 0, 0, 0}, {3}}};     // one of the own host, too
  for (const Heard& heard : all)
    EXPECT_THAT(verdictOf(heard), AllOf(Not(HasSubstr("in vain")), HasSubstr(" did not answer within 0.4 s: stopped")));
  EXPECT_THAT(verdictOf({{0, 1, 2, 3}, {-1, 0, 0, 0}, {1, 2}, {3}}), StartsWith("rank 1 (process 101"));
  EXPECT_THAT(verdictOf({{0, 1, 2, 3}, {-1, 0, 0, 0}, {1, 2, 3}, {}, {3}}), StartsWith("rank 3 (process 103"));
}

TEST(Inquest, ASilentRankOfTheOwnHostIsNoneOfThoseThatAreCutOff) {
  EXPECT_THAT(verdictOf({{0, 0, 1, 2}, {-1, 0, 0, 0}, {2, 3}}),
              AllOf(HasSubstr("no kernel confirms what is sent to rank 2 (process 102 on host h1), rank 3"),
                    HasSubstr("; rank 1 (process 101 on host h0) did not answer within 0.4 s: stopped")));
}

TEST(Inquest, ASilentRankThatWasHeardIsToldFromOneThatWasNotAndItsCallIsListed) {
  const std::string told = verdictOf({{0, 1, 2, 3}, {-1, 0, 0, 0}, {}, {3}, {1}});
  EXPECT_THAT(told, StartsWith("rank 1 (process 101 on host h1) told that it waits, and did not answer"));
  EXPECT_THAT(told, HasSubstr("it has gone on and is not inside a tacc call"));
  EXPECT_THAT(told, HasSubstr("arrives; rank 2 (process 102 on host h2) did not answer within 0.4 s: stopped, cut"));
  EXPECT_THAT(told, HasSubstr("; meanwhile rank 0 was in call 20; rank 1 was in call 11; rank 3 was in call 23"));
}

TEST(Inquest, NoMorePairsAreListedThanAreShown) {
  const std::vector<int> all{0, 1, 2, 3, 4, 5};
  Inquest inquest(all.size());
  for (const int rank : all) inquest.answer(rank, {"waits", all});
  EXPECT_THAT(
      inquest.verdict(ranksOf({0, 1, 2, 3, 4, 5}), std::vector<int>(all.size()), {}, {"waits", {1, 2, 3, 4, 5}}),
      HasSubstr("between rank 0 (process 100 on host h0) and rank 4 (process 104 on host h4) and more pairs of "
                "hosts (cable, firewall, MTU); rank 0 waits; rank 1 waits; rank 2 waits; rank 3 waits"));
}

/// Rank 0 of three over TCP, whose others never read. What it is told, where the network is cut before it asks or not.
std::string verdictOverTcp(bool isCut) {
  const FileDescriptor listener = bindTcp(0, InetAddress(InetAddress::V4{127, 0, 0, 1}, 0));
  if (::listen(listener.get(), 2) != 0) failErrno("listen");
  ControlTree tree;
  tree.parents = {-1, 0, 0};
  std::vector<FileDescriptor> others;
  for (int rank = 1; rank < 3; ++rank) {
    Attempt attempt =
        connectTcp(InetAddress(InetAddress::V4{127, 0, 0, 1}, portOf(listener.get())), 5, Deadline(5), Interrupt(1));
    others.emplace_back(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    Channel channel(std::move(attempt.socket));
    channel.trust();
    tree.branches.push_back({std::move(channel), rank, {}});
  }
  ControlPlane plane(0, ranksOf({0, 1, 2}), std::move(tree));
  if (isCut) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // nothing has come for longer than a tick
    if (!test::setLoopback(false)) failErrno("loopback");
  }
  plane.reportStuck("was in call 20");
  try {
    for (const Deadline deadline(5); !deadline.passed(); std::this_thread::sleep_for(std::chrono::milliseconds(1)))
      plane.poll([] { return RankState("was in call 20"); });
  } catch (const Error& error) {
    return error.what();
  }
  return "no verdict";
}

TEST(Inquest, AKernelConfirmsTheQuestionWhateverTheRankDoes) {
  EXPECT_THAT(verdictOverTcp(false), StartsWith("rank 1 (process 101 on host h1), rank 2 (process 102 on host h2) did "
                                                "not answer within 0.4 s: stopped"));
}

TEST(Inquest, OverACutNetworkNoKernelConfirmsIt) {
  ChildProcess child([] {
    if (::unshare(CLONE_NEWNET) != 0 || !test::setLoopback(true)) ::_exit(noNetwork);
    EXPECT_THAT(verdictOverTcp(true), StartsWith("rank 0 (process 100 on host h0) sends in vain"));
    return !testing::Test::HasFailure();
  });
  const int status = child.wait();
  if (status == noNetwork) GTEST_SKIP() << "this process may not make networks";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tacc

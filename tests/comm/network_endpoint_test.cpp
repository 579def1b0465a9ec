// What a rank says when its connection to another one breaks: what the control plane tells of it, and nothing that has
// not happened, however short the time-out is.
#include "comm/cluster/network_endpoint.hpp"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../support/child_process.hpp"
#include "../support/loopback.hpp"
#include "comm/bootstrap/connect.hpp"
#include "core/error.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

using test::ChildProcess;
using test::setLoopback;
using testing::HasSubstr;

constexpr int noNetwork = 77;  // status of a child

/// Its connections have broken.
class BrokenTransport final : public NetworkTransport {
 public:
  std::vector<std::byte> address() const override { return {}; }
  void setPeers(std::vector<std::vector<std::byte>> /*addresses*/) override {}
  void send(int, std::uint32_t, const void*, std::size_t, NetworkRequest&) override {}
  void receive(int, std::uint32_t, void*, std::size_t, NetworkRequest&) override {}
  bool progress() override { fail(taccRemoteError, "rank 1 has lost rank 0"); }
  int descriptor() const override { return -1; }
  bool arm() override { return true; }
  std::string describe() const override { return "broken"; }
};

/// Nothing ever comes.
class SilentTransport final : public NetworkTransport {
 public:
  std::vector<std::byte> address() const override { return {}; }
  void setPeers(std::vector<std::vector<std::byte>> /*addresses*/) override {}
  void send(int, std::uint32_t, const void*, std::size_t, NetworkRequest&) override {}
  void receive(int, std::uint32_t, void*, std::size_t, NetworkRequest&) override {}
  bool progress() override { return false; }
  int descriptor() const override { return -1; }
  bool arm() override { return true; }
  std::string describe() const override { return "silent"; }
};

/// Waits for rank 0.
class Waiting final : public NetworkActivity {
 public:
  bool advance() override { return false; }
  bool isFinished() const override { return false; }
  std::vector<int> awaited() const override { return {0}; }
};

struct Connection {
  Connection() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
    one.reset(ends[0]);
    other.reset(ends[1]);
  }
  Connection(FileDescriptor a, FileDescriptor b) : one(std::move(a)), other(std::move(b)) {}

  FileDescriptor one, other;
};

/// Rank 1's control plane, of two ranks, and what rank 0 has of their connection.
struct TwoRanks {
  TwoRanks() : TwoRanks(Connection()) {}
  explicit TwoRanks(Connection connection) {
    ControlTree tree;
    tree.up = Channel{std::move(connection.one)};
    tree.up.trust();
    tree.route = {0};
    rankZero.emplace(std::move(connection.other));
    rankZero->trust();
    std::vector<RankIdentity> who(2);
    for (int rank = 0; rank < 2; ++rank) who[static_cast<std::size_t>(rank)].process = 100 + rank;
    control.emplace(1, std::move(who), std::move(tree));
  }

  std::optional<Channel> rankZero;
  std::optional<ControlPlane> control;
};

class BrokenConnection : public testing::TestWithParam<double> {
 protected:
  BrokenConnection() {
    endpoint_.emplace(1, 2, std::make_unique<BrokenTransport>(), *ranks_.control,
                      NetworkPatience{.timeout = GetParam()}, [] { return std::string("barrier()"); });
  }

  /// Of a call, or of one that waits for ranks of its own host.
  Error errorOfWaiting(bool idles = false) {
    Waiting waiting;
    try {
      if (idles) endpoint_->idle(&waiting);
      if (!idles) endpoint_->run(waiting, [] { return false; });
    } catch (const Error& error) {
      return error;
    }
    return {taccSuccess, "no error"};
  }

  TwoRanks ranks_;
  std::optional<Channel>& rankZero_ = ranks_.rankZero;
  std::optional<NetworkEndpoint> endpoint_;
};

TEST_P(BrokenConnection, IsTheErrorWhereNobodyTellsWhyAndNobodyIsAskedForIt) {
  for (const bool idles : {false, true}) {
    const Error error = errorOfWaiting(idles);
    EXPECT_EQ(error.result(), taccRemoteError);
    EXPECT_STREQ(error.what(), "rank 1 has lost rank 0");
  }
  (void)rankZero_->receive();
  EXPECT_FALSE(rankZero_->take().has_value()) << "no operation has timed out";
}

TEST_P(BrokenConnection, IsExplainedByADeath) {
  rankZero_.reset();
  EXPECT_THAT(errorOfWaiting().what(), HasSubstr("rank 0 (process 100"));
  EXPECT_THAT(errorOfWaiting().what(), HasSubstr("has died"));
}

TEST_P(BrokenConnection, IsExplainedByAFarewell) {
  rankZero_->queue(MessageKind::farewell, nullptr);
  (void)rankZero_->flush();
  EXPECT_THAT(errorOfWaiting().what(), HasSubstr("has left the communicator"));
}

TEST_P(BrokenConnection, IsExplainedByWhatAnotherRankReports) {
  rankZero_->queue(MessageKind::verdict, makePayload({std::byte{'o'}, std::byte{'h'}}));
  (void)rankZero_->flush();
  const Error error = errorOfWaiting();
  EXPECT_EQ(error.result(), taccTimeout);
  EXPECT_STREQ(error.what(), "oh");
}

/// Of a host that is cut off nobody knows whether its processes live: none is said to have died, least of all by the
/// one whose own cable is out.
TEST(CutOffHost, IsNoDeath) {
  ChildProcess child([] {
    if (::unshare(CLONE_NEWNET) != 0 || !setLoopback(true)) ::_exit(noNetwork);
    const FileDescriptor listener = bindTcp(0, InetAddress(InetAddress::V4{127, 0, 0, 1}, 0));
    if (::listen(listener.get(), 1) != 0) return false;
    Attempt attempt =
        connectTcp(InetAddress(InetAddress::V4{127, 0, 0, 1}, portOf(listener.get())), 5, Deadline(5), Interrupt(1));
    FileDescriptor accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    tuneTcp(attempt.socket.get(), 0.3);
    TwoRanks ranks(Connection(std::move(attempt.socket), std::move(accepted)));
    NetworkEndpoint endpoint(1, 2, std::make_unique<SilentTransport>(), *ranks.control, {.timeout = 60},
                             [] { return std::string("barrier()"); });
    if (!setLoopback(false)) return false;
    ranks.control->reportStuck("is in a call");  // what the network is to carry
    Waiting waiting;
    std::string text = "no error";
    try {
      endpoint.run(waiting, [] { return false; });
    } catch (const Error& error) {
      text = error.what();
    }
    EXPECT_THAT(text, HasSubstr("the network has lost rank 0 (process 100"));
    EXPECT_THAT(text, testing::Not(HasSubstr("died")));
    return !testing::Test::HasFailure();
  });
  const int status = child.wait();
  if (status == noNetwork) GTEST_SKIP() << "this process may not make networks";
  EXPECT_EQ(status, 0);
}

/// Seconds. Shorter than what a rank that has left is waited for, and longer; 0: none.
INSTANTIATE_TEST_SUITE_P(TimeOuts, BrokenConnection, testing::Values(2.0, 2.5, 3.5, 600.0, 0.0));

/// Nothing ever comes, and in one turn of the wait the process does not run.
class StoppedTransport final : public NetworkTransport {
 public:
  static constexpr int turnOfStop = 20, enoughTurns = 25;

  std::vector<std::byte> address() const override { return {}; }
  void setPeers(std::vector<std::vector<std::byte>> /*addresses*/) override {}
  void send(int, std::uint32_t, const void*, std::size_t, NetworkRequest&) override {}
  void receive(int, std::uint32_t, void*, std::size_t, NetworkRequest&) override {}
  bool progress() override {
    if (++turns_ == turnOfStop) std::this_thread::sleep_for(std::chrono::milliseconds(1300));
    return false;
  }
  int descriptor() const override { return -1; }
  bool arm() override { return true; }
  std::string describe() const override { return "stopped"; }
  bool hasEnough() const noexcept { return turns_ >= enoughTurns; }

 private:
  int turns_ = 0;
};

/// As where a batch system suspends all ranks of a job for longer than the time-out.
TEST(StoppedProcess, LetsNoTimePassThatOthersAreWaitedFor) {
  for (const bool idles : {false, true}) {
    TwoRanks ranks;
    auto made = std::make_unique<StoppedTransport>();
    const StoppedTransport& transport = *made;
    NetworkEndpoint endpoint(1, 2, std::move(made), *ranks.control, {.timeout = 0.5, .spinSeconds = 1e-6},
                             [] { return std::string("barrier()"); });
    Waiting waiting;
    const auto wait = [&] {
      if (!idles) return endpoint.run(waiting, [] { return false; });
      while (true) endpoint.idle(&waiting);
    };
    const auto waitEnough = [&] {
      if (!idles) return endpoint.run(waiting, [&] { return transport.hasEnough(); });
      while (!transport.hasEnough()) endpoint.idle(&waiting);
    };
    EXPECT_NO_THROW(waitEnough()) << idles;
    (void)ranks.rankZero->receive();
    EXPECT_FALSE(ranks.rankZero->take().has_value()) << "no operation has timed out";
    EXPECT_THROW(wait(), Error) << "one that runs lets it pass";
  }
}

}  // namespace
}  // namespace tacc

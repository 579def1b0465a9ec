// What network transports do when something goes wrong, when they wait, and when they end.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "core/error.hpp"
#include "network_team.hpp"
#include "support/child_process.hpp"

namespace tacc::test {
namespace {

using Clock = std::chrono::steady_clock;

class NetworkFaults : public testing::TestWithParam<NetworkTransportKind> {};

/// Processor time of this process.
double processorSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The error with which the request ends; nothing when it ends well, or when nothing comes within `limit`.
std::optional<Error> errorOf(NetworkTransport& transport, const NetworkRequest& request, std::chrono::seconds limit) {
  const auto deadline = Clock::now() + limit;
  try {
    while (!request.done && Clock::now() < deadline) transport.progress();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

void expectTruncation(const Error& error, std::size_t capacity, std::size_t bytes) {
  const std::string text = error.what();
  EXPECT_EQ(error.result(), taccInvalidUsage) << text;
  EXPECT_NE(text.find(std::to_string(capacity)), std::string::npos) << text;
  // libfabric does not always know how long it is.
  EXPECT_TRUE(text.find(std::to_string(bytes)) != std::string::npos || text.find("sent more") != std::string::npos)
      << text;
  EXPECT_NE(text.find("rank 0"), std::string::npos) << text;
}

TEST_P(NetworkFaults, MessageThatIsTooLongIsAnError) {
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{100'000}, std::size_t{3} << 20}) {
    for (const bool isExpected : {true, false}) {
      runTeam(2, [&](const NetworkMember& member) {
        const std::unique_ptr<NetworkTransport> transport = member.connect(GetParam());
        greet(*transport, member, 0);
        std::vector<std::byte> buffer(bytes, std::byte{1});
        NetworkRequest request;
        if (member.rank() == 0) {
          if (isExpected) member.meet();
          transport->send(1, 1, buffer.data(), bytes, request);
          if (!isExpected) member.meet(*transport);
        } else {
          std::optional<Error> error;
          if (!isExpected) {
            for (int turn = 0; turn < 1000; ++turn) transport->progress();
            member.meet(*transport);
          }
          try {
            transport->receive(0, 1, buffer.data(), bytes / 2, request);
            if (isExpected) member.meet();
            error = errorOf(*transport, request, longestWait);
          } catch (const Error& thrown) {
            error = thrown;
          }
          EXPECT_TRUE(error.has_value()) << bytes << " bytes, " << (isExpected ? "expected" : "unexpected")
                                         << (request.done ? ": taken for complete" : ": no end");
          if (error) expectTruncation(*error, bytes / 2, bytes);
          EXPECT_EQ(buffer[bytes / 2], std::byte{1}) << "written behind the end";
        }
        // What is done for a sender may still need its progress.
        member.meet(*transport);
        return true;
      });
    }
  }
}

TEST_P(NetworkFaults, SleeperUsesNoProcessorAndWakesUp) {
  runTeam(2, [](const NetworkMember& member) {
    const std::unique_ptr<NetworkTransport> transport = member.connect(GetParam());
    greet(*transport, member, 0);
    if (transport->descriptor() < 0) return true;
    // UCX connects over every network that both have, and its descriptor stays readable until the peer has answered.
    for (const auto begin = Clock::now(); Clock::now() - begin < std::chrono::milliseconds(100);) transport->progress();
    constexpr std::chrono::milliseconds pause{500};
    const std::vector<std::byte> sent = patternOf(100'000, 1);
    std::vector<std::byte> received(sent.size());
    NetworkRequest request;
    if (member.rank() == 0) {
      member.meet();
      ::poll(nullptr, 0, static_cast<int>(pause.count()));  // the time that the other one sleeps
      transport->send(1, 1, sent.data(), sent.size(), request);
      complete(*transport, request);
    } else {
      transport->receive(0, 1, received.data(), received.size(), request);
      member.meet(*transport);
      const auto start = Clock::now();
      const double before = processorSeconds();
      while (!request.done && Clock::now() - start < longestWait) {
        if (transport->progress() || !transport->arm()) continue;
        pollfd waiting{transport->descriptor(), POLLIN, 0};
        ::poll(&waiting, 1, 5000);
      }
      const double waited = std::chrono::duration<double>(Clock::now() - start).count();
      EXPECT_LT(processorSeconds() - before, 0.1 * waited);
      EXPECT_GT(waited, 0.4);
      EXPECT_LT(waited, 4.0) << "slept until the time limit of poll()";
      EXPECT_EQ(received, sent);
    }
    member.meet(*transport);
    return true;
  });
}

TEST_P(NetworkFaults, DeadPeerIsAnErrorOrSilence) {
  runTeam(
      3,
      [](const NetworkMember& member) {
        const std::unique_ptr<NetworkTransport> transport = member.connect(GetParam());
        greet(*transport, member, 0);
        member.meet();
        if (member.rank() == 2) ::raise(SIGKILL);
        constexpr std::size_t longest = 256 * 1024;  // that tacc sends in one piece
        std::vector<std::byte> buffer(longest);
        std::vector<std::byte> large(longest);
        NetworkRequest requests[2];
        try {
          transport->receive(2, 1, buffer.data(), buffer.size(), requests[0]);
          transport->send(2, 1, large.data(), large.size(), requests[1]);
          if (const auto error = errorOf(*transport, requests[0], std::chrono::seconds(2))) throw Error(*error);
          std::printf("%s: silence\n", std::string(GetParam().name).c_str());
        } catch (const Error& error) {
          EXPECT_EQ(error.result(), taccRemoteError) << error.what();
          EXPECT_NE(std::string(error.what()).find("rank 2"), std::string::npos) << error.what();
        }
        EXPECT_FALSE(requests[0].done);
        return true;
      },
      2);
}

/// Messages to and from a peer, of which some are always under way. To outlive the transport.
class Stream {
 public:
  Stream(int peer, std::size_t bytes) : peer_(peer), out_(bytes, std::byte{5}) {
    for (std::size_t i = 0; i < window; ++i) {
      in_[i].resize(bytes);
      received_[i].done = sent_[i].done = true;
    }
  }
  void goOn(NetworkTransport& transport) {
    if (NetworkRequest& request = received_[nextIn_ % window]; request.done) {
      std::vector<std::byte>& in = in_[nextIn_ % window];
      transport.receive(peer_, ++nextIn_, in.data(), in.size(), request);
    }
    if (NetworkRequest& request = sent_[nextOut_ % window]; request.done)
      transport.send(peer_, ++nextOut_, out_.data(), out_.size(), request);
  }

 private:
  static constexpr std::size_t window = 3;
  int peer_;
  std::vector<std::byte> out_;
  std::array<std::vector<std::byte>, window> in_;
  std::array<NetworkRequest, window> received_;
  std::array<NetworkRequest, window> sent_;
  std::uint32_t nextIn_ = 0;  // the first message has tag 1
  std::uint32_t nextOut_ = 0;
};

/// Kills the last rank among messages of all with all, after `life`, when all have connected or while they do. A
/// library may not take the survivors with it, nor hold them up.
void killAmongMessages(const NetworkTransportKind& kind, int ranks, std::size_t bytes, bool isConnected,
                       std::chrono::microseconds life) {
  const int victim = ranks - 1;
  const auto run = [&](const NetworkMember& member) {
    std::vector<std::unique_ptr<Stream>> streams;
    for (int step = 1; step < ranks; ++step)
      streams.push_back(std::make_unique<Stream>((member.rank() + step) % ranks, bytes));
    std::unique_ptr<NetworkTransport> transport = member.connect(kind);
    if (isConnected) greet(*transport, member, 0);
    member.meet();
    std::thread killer;
    if (member.rank() == victim) {
      killer = std::thread([life] {
        std::this_thread::sleep_for(life);
        ::raise(SIGKILL);
      });
    }
    try {
      for (const auto end = Clock::now() + std::chrono::milliseconds(150); Clock::now() < end;) {
        for (const std::unique_ptr<Stream>& stream : streams) stream->goOn(*transport);
        transport->progress();
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.result(), taccRemoteError) << error.what();
      EXPECT_NE(std::string(error.what()).find("rank "), std::string::npos) << error.what();
    }
    if (killer.joinable()) killer.join();
    // A process that ends closes all its connections at once, which is one more death for the others.
    if (!transport->closesBrokenConnections()) return transport.release() != nullptr;
    const auto start = Clock::now();
    transport.reset();
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(3));
    return true;
  };
  runTeam(ranks, run, victim);
}

TEST_P(NetworkFaults, PeerKilledAmongMessagesIsAnErrorOrSilence) {
  for (const std::size_t bytes : {100, 30'000, 256 << 10, 4 << 20}) {
    for (int repetition = 0; repetition < 4; ++repetition) {
      killAmongMessages(GetParam(), 3, bytes, true, std::chrono::microseconds(1'000 + 7'000 * repetition));
      if (HasFailure()) FAIL() << bytes << " bytes, repetition " << repetition;
    }
  }
}

TEST_P(NetworkFaults, PeerKilledWhileTheOthersConnectIsAnErrorOrSilence) {
  for (int repetition = 0; repetition < 12; ++repetition) {
    killAmongMessages(GetParam(), 5, 100, false, std::chrono::microseconds(150 * repetition));
    if (HasFailure()) FAIL() << "repetition " << repetition;
  }
}

TEST_P(NetworkFaults, PeerThatLeavesIsNoErrorForOthersMessages) {
  runTeam(3, [](const NetworkMember& member) {
    std::unique_ptr<NetworkTransport> transport = member.connect(GetParam());
    greet(*transport, member, 0);
    member.meet(*transport);
    if (member.rank() == 2) transport.reset();
    member.meet();
    if (member.rank() != 2) {
      for (int turn = 0; turn < 1000; ++turn) transport->progress();
      NetworkRequest requests[2];
      int number = member.rank();
      int other = -1;
      transport->receive(1 - member.rank(), 1, &other, sizeof other, requests[0]);
      transport->send(1 - member.rank(), 1, &number, sizeof number, requests[1]);
      complete(*transport, requests);
      EXPECT_EQ(other, 1 - member.rank());
    }
    member.meet();
    return true;
  });
}

TEST_P(NetworkFaults, WhatIsDoneArrivesThoughTheSenderLeaves) {
  runTeam(2, [](const NetworkMember& member) {
    std::unique_ptr<NetworkTransport> transport = member.connect(GetParam());
    greet(*transport, member, 0);
    constexpr std::uint32_t count = 20;
    const std::vector<std::byte> sent = patternOf(4000, 3);
    std::vector<std::vector<std::byte>> received(count, std::vector<std::byte>(sent.size()));
    std::vector<NetworkRequest> requests(count);
    if (member.rank() == 0) {
      for (std::uint32_t i = 0; i < count; ++i) transport->send(1, i + 1, sent.data(), sent.size(), requests[i]);
      complete(*transport, requests);
      transport.reset();
    } else {
      for (std::uint32_t i = 0; i < count; ++i)
        transport->receive(0, i + 1, received[i].data(), sent.size(), requests[i]);
      complete(*transport, requests);
      for (const std::vector<std::byte>& message : received) EXPECT_EQ(message, sent);
    }
    member.meet();
    return true;
  });
}

TEST_P(NetworkFaults, EndLeavesPostedMemoryAlone) {
  runTeam(2, [](const NetworkMember& member) {
    std::unique_ptr<NetworkTransport> transport = member.connect(GetParam());
    greet(*transport, member, 0);
    constexpr std::size_t sizes[] = {64, 10'000, 4 << 20};
    std::vector<std::vector<std::byte>> buffers;
    std::vector<NetworkRequest> requests(std::size(sizes));
    for (const std::size_t bytes : sizes) buffers.emplace_back(bytes, std::byte{7});
    if (member.rank() == 1) {
      for (std::uint32_t i = 0; i < buffers.size(); ++i)
        transport->receive(0, i + 1, buffers[i].data(), buffers[i].size(), requests[i]);
      const auto start = Clock::now();
      transport.reset();
      EXPECT_LT(Clock::now() - start, std::chrono::seconds(3));
      for (std::size_t i = 0; i < buffers.size(); ++i) EXPECT_FALSE(requests[i].done);
      buffers.assign(buffers.size(), {});
      member.meet();
      member.meet();
    } else {
      member.meet();
      try {
        for (std::uint32_t i = 0; i < buffers.size(); ++i)
          transport->send(1, i + 1, buffers[i].data(), buffers[i].size(), requests[i]);
        for (int turn = 0; turn < 10'000; ++turn) transport->progress();
      } catch (const Error& error) {
        EXPECT_EQ(error.result(), taccRemoteError) << error.what();
      }
      const auto start = Clock::now();
      transport.reset();  // with sends under way
      EXPECT_LT(Clock::now() - start, std::chrono::seconds(3));
      member.meet();
    }
    return true;
  });
}

TEST_P(NetworkFaults, UnknownInterfaceIsAnError) {
  runTeam(1, [](const NetworkMember&) {
    try {
      GetParam().make({0, 1, "eth99"});
    } catch (const Error& error) {
      EXPECT_EQ(error.result(), taccSystemError);
      EXPECT_NE(std::string(error.what()).find("eth99"), std::string::npos) << error.what();
      return true;
    }
    ADD_FAILURE() << "no error";
    return false;
  });
}

TEST_P(NetworkFaults, NoDescriptorsLeak) {
  runTeam(2, [](const NetworkMember& member) {
    int before = 0;
    for (std::uint32_t i = 0; i < 50; ++i) {
      const std::unique_ptr<NetworkTransport> transport = member.connect(GetParam());
      greet(*transport, member, i);
      member.meet(*transport);
      if (i == 4) before = countOpenDescriptors();  // what a library opens once per process is open by now
      if (i < 49) continue;
      // One of the other rank's connections may be open still, or have been then.
      const int after = countOpenDescriptors();
      EXPECT_NEAR(after, before, 4) << "a leak would be 45 or more";
    }
    return true;
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, NetworkFaults, testing::ValuesIn(usableKinds()),
                         [](const auto& information) { return std::string(information.param.name); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NetworkFaults);

}  // namespace
}  // namespace tacc::test

// What every kind of network transport must do, between processes of this machine.
#include "transports/network_transport.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <csignal>
#include <numeric>

#include "core/error.hpp"
#include "network_team.hpp"

namespace tacc::test {
namespace {

class NetworkTransports : public testing::TestWithParam<NetworkTransportKind> {};

constexpr std::size_t sizes[] = {0, 1, 7, 8 << 10, (64 << 10) + 1, 1 << 20, (2 << 20) - 1, (5 << 20) + 3, 8 << 20};

TEST_P(NetworkTransports, AddressIsShort) {
  runTeam(1, [](const NetworkMember& member) {
    const std::unique_ptr<NetworkTransport> transport = GetParam().make({member.rank(), 1, {}});
    EXPECT_GT(transport->address().size(), 0u);
    EXPECT_LE(transport->address().size(), 4096u);
    EXPECT_NE(transport->describe(), "");
    return true;
  });
}

/// Libraries like to catch faults; the program may want to itself.
TEST_P(NetworkTransports, LeavesSignalsToTheProgram) {
  runTeam(1, [](const NetworkMember& member) {
    constexpr int signals[] = {SIGHUP, SIGILL, SIGBUS, SIGFPE, SIGSEGV, SIGABRT, SIGTERM, SIGINT};
    struct sigaction own {};
    own.sa_handler = [](int) {};
    for (const int signal : signals) ::sigaction(signal, &own, nullptr);
    const std::unique_ptr<NetworkTransport> transport = GetParam().make({member.rank(), 1, {}});
    bool areOwn = true;
    for (const int signal : signals) {
      struct sigaction now {};
      ::sigaction(signal, nullptr, &now);
      EXPECT_EQ(now.sa_handler, own.sa_handler) << "signal " << signal;
      areOwn = areOwn && now.sa_handler == own.sa_handler;
    }
    return areOwn;
  });
}

TEST_P(NetworkTransports, DeliversEverySize) {
  runTeam(2, [](const NetworkMember& member) {
    const std::unique_ptr<NetworkTransport> transport = member.connect(GetParam());
    const int peer = 1 - member.rank();
    std::uint32_t tag = 0;
    for (const std::size_t bytes : sizes) {
      for (int repetition = 0; repetition < 3; ++repetition, ++tag) {
        const std::vector<std::byte> sent = patternOf(bytes, tag * 2 + static_cast<unsigned>(member.rank()));
        std::vector<std::byte> received(bytes + 8, std::byte{0x5A});  // room for more than comes
        NetworkRequest requests[2];
        transport->receive(peer, tag, received.data(), received.size(), requests[0]);
        transport->send(peer, tag, sent.data(), bytes, requests[1]);
        complete(*transport, requests);
        EXPECT_EQ(requests[0].bytes, bytes);
        EXPECT_TRUE(std::all_of(received.end() - 8, received.end(), [](std::byte b) { return b == std::byte{0x5A}; }));
        received.resize(bytes);
        EXPECT_EQ(received, patternOf(bytes, tag * 2 + static_cast<unsigned>(peer))) << bytes << " bytes";
      }
    }
    member.meet(*transport);
    return true;
  });
}

TEST_P(NetworkTransports, MatchesTagsInAnyOrder) {
  runTeam(2, [](const NetworkMember& member) {
    const std::unique_ptr<NetworkTransport> transport = member.connect(GetParam());
    constexpr std::uint32_t tags[] = {7, 0, 0xFFFFFFFF, 3, 1u << 31, 42};
    constexpr std::size_t count = std::size(tags);
    const int peer = 1 - member.rank();
    std::vector<std::vector<std::byte>> buffers(2 * count);
    std::vector<NetworkRequest> requests(2 * count);
    for (std::size_t i = 0; i < count; ++i) {
      buffers[i] = patternOf(sizes[i], tags[i]);
      transport->send(peer, tags[i], buffers[i].data(), buffers[i].size(), requests[i]);
    }
    for (std::size_t i = count; i-- > 0;) {  // the other way round
      std::vector<std::byte>& buffer = buffers[count + i];
      buffer.resize(sizes[i]);
      transport->receive(peer, tags[i], buffer.data(), buffer.size(), requests[count + i]);
    }
    complete(*transport, requests);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(buffers[count + i], patternOf(sizes[i], tags[i])) << tags[i];
    member.meet(*transport);
    return true;
  });
}

TEST_P(NetworkTransports, KeepsMessagesThatNobodyExpectsYet) {
  runTeam(2, [](const NetworkMember& member) {
    const std::unique_ptr<NetworkTransport> transport = member.connect(GetParam());
    greet(*transport, member, 1000);
    constexpr std::size_t count = std::size(sizes);
    std::vector<std::vector<std::byte>> buffers(count);
    std::vector<NetworkRequest> requests(count);
    if (member.rank() == 0) {
      for (std::uint32_t i = 0; i < count; ++i) {
        buffers[i] = patternOf(sizes[i], i);
        transport->send(1, i, buffers[i].data(), sizes[i], requests[i]);
        for (int turn = 0; turn < 100; ++turn) transport->progress();
      }
      member.meet(*transport);
      complete(*transport, requests);
    } else {
      for (int turn = 0; turn < 100; ++turn) transport->progress();
      member.meet();
      for (std::uint32_t i = 0; i < count; ++i) {
        for (int turn = 0; turn < 100; ++turn) transport->progress();
        buffers[i].resize(sizes[i]);
        transport->receive(0, i, buffers[i].data(), sizes[i], requests[i]);
      }
      complete(*transport, requests);
      for (std::uint32_t i = 0; i < count; ++i) EXPECT_EQ(buffers[i], patternOf(sizes[i], i)) << sizes[i] << " bytes";
    }
    member.meet(*transport);
    return true;
  });
}

TEST_P(NetworkTransports, FourRanksWithManyMessagesInFlight) {
  runTeam(4, [](const NetworkMember& member) {
    const std::unique_ptr<NetworkTransport> transport = member.connect(GetParam());
    constexpr std::uint32_t count = 300;  // to and from each peer, at once
    const auto bytesOf = [](std::uint32_t tag) { return std::size_t{tag} * 131 % 20'000; };
    std::vector<std::vector<std::byte>> buffers;
    std::vector<NetworkRequest> requests(6 * count);
    std::size_t next = 0;
    for (std::uint32_t tag = 0; tag < count; ++tag) {
      for (int peer = 0; peer < member.ranks(); ++peer) {
        if (peer == member.rank()) continue;
        buffers.push_back(patternOf(bytesOf(tag), tag + static_cast<unsigned>(member.rank()) * 1000));
        transport->send(peer, tag, buffers.back().data(), buffers.back().size(), requests[next++]);
        buffers.emplace_back(bytesOf(tag));
        transport->receive(peer, tag, buffers.back().data(), buffers.back().size(), requests[next++]);
      }
    }
    complete(*transport, requests);
    next = 0;
    for (std::uint32_t tag = 0; tag < count; ++tag) {
      for (int peer = 0; peer < member.ranks(); ++peer) {
        if (peer == member.rank()) continue;
        EXPECT_EQ(buffers[next + 1], patternOf(bytesOf(tag), tag + static_cast<unsigned>(peer) * 1000));
        next += 2;
      }
    }
    member.meet(*transport);
    return true;
  });
}

/// Whoever is ahead may hold what it sends, but not until a timer of 40 ms ends: with one for each message this would
/// take longer than a test waits.
TEST_P(NetworkTransports, SmallMessagesOneWayDoNotWaitForTimers) {
  runTeam(2, [&](const NetworkMember& member) {
    const auto transport = member.connect(GetParam());
    const int rank = member.rank(), peer = 1 - rank;
    constexpr std::uint32_t turns = 6, messages = 400;
    std::vector<NetworkRequest> requests(messages);
    std::vector<std::uint32_t> values(messages);
    NetworkRequest early;
    std::uint32_t earlyValue = 99;
    const auto start = std::chrono::steady_clock::now();
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      const std::uint32_t first = turn * (messages + 1);
      // The reader has sent something that nobody looks at before the stream is over.
      if (rank != static_cast<int>(turn % 2)) {
        transport->send(peer, first + messages, &earlyValue, sizeof earlyValue, early);
        for (std::uint32_t m = 0; m < messages; ++m) {
          transport->receive(peer, first + m, &values[m], sizeof values[m], requests[m]);
          complete(*transport, requests[m]);
          if (values[m] != m) return false;
        }
        complete(*transport, early);
      } else {
        for (std::uint32_t m = 0; m < messages; ++m) {
          values[m] = m;
          transport->send(peer, first + m, &values[m], sizeof values[m], requests[m]);
        }
        transport->receive(peer, first + messages, &earlyValue, sizeof earlyValue, early);
        complete(*transport, requests);
        complete(*transport, early);
      }
    }
    while (!transport->drain()) transport->progress();
    member.meet(*transport);
    return earlyValue == 99 && std::chrono::steady_clock::now() - start < longestWait;
  });
}

TEST_P(NetworkTransports, SeveralTransportsOfOneProcessDoNotMix) {
  runTeam(2, [](const NetworkMember& member) {
    const std::unique_ptr<NetworkTransport> first = member.connect(GetParam());
    const std::unique_ptr<NetworkTransport> second = member.connect(GetParam());
    const int peer = 1 - member.rank();
    int sent[] = {1, 2};
    int received[] = {0, 0};
    NetworkRequest requests[4];
    first->receive(peer, 5, &received[0], sizeof(int), requests[0]);
    second->receive(peer, 5, &received[1], sizeof(int), requests[1]);
    second->send(peer, 5, &sent[1], sizeof(int), requests[2]);
    first->send(peer, 5, &sent[0], sizeof(int), requests[3]);
    complete(*second, requests[1]);
    complete(*second, requests[2]);
    complete(*first, requests[0]);
    complete(*first, requests[3]);
    EXPECT_EQ(received[0], 1);
    EXPECT_EQ(received[1], 2);
    member.meet();
    return true;
  });
}

/// Calls progress() until the transport has nothing left to send. Throws after longestWait.
void leave(NetworkTransport& transport) {
  const auto start = std::chrono::steady_clock::now();
  while (!transport.drain()) {
    if (std::chrono::steady_clock::now() - start > longestWait) throw Error(taccTimeout, "drain() waits for ever");
    transport.progress();
  }
}

/// More than the kernel keeps for a connection, to a rank that reads late: the sender has left when it reads the end.
TEST_P(NetworkTransports, DeliversAllThatADrainedSenderHasLeft) {
  runTeam(2, [](const NetworkMember& member) {
    const std::unique_ptr<NetworkTransport> transport = member.connect(GetParam());
    greet(*transport, member, 1000);
    constexpr std::uint32_t rounds = 8, pieces = 60;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const std::size_t bytes = std::min<std::size_t>(transport->pieceBytes(), 150'000 + 12'345 * round);
      std::vector<std::byte> data = patternOf(pieces * bytes, member.rank() == 0 ? round : 999);
      std::vector<NetworkRequest> requests(pieces);
      for (std::uint32_t i = 0; i < pieces; ++i) {
        if (member.rank() == 0)
          transport->send(1, i, data.data() + i * bytes, bytes, requests[i]);
        else
          transport->receive(0, i, data.data() + i * bytes, bytes, requests[i]);
      }
      for (int turn = 0; member.rank() == 1 && turn < 300; ++turn) {
        transport->progress();
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
      complete(*transport, requests);
      if (member.rank() == 0) leave(*transport);
      if (member.rank() == 1 && data != patternOf(data.size(), round)) return false;
      member.meet();
    }
    return true;
  });
}

/// A rank that has what it wanted makes no progress any more, and nobody who leaves may wait for it: whoever connected
/// first, and also where the other one connects when the message is already there.
TEST_P(NetworkTransports, DrainsWithoutItsPeers) {
  for (const int first : {0, 1}) {
    runTeam(2, [first](const NetworkMember& member) {
      const std::unique_ptr<NetworkTransport> transport = member.connect(GetParam());
      const int peer = 1 - member.rank();
      int out = member.rank(), in = -1;
      NetworkRequest sent, received;
      if (member.rank() == first) {
        transport->send(peer, 7, &out, sizeof out, sent);
        complete(*transport, sent);
        leave(*transport);
        member.meet();  // the message has gone
        member.meet();  // the other one has it, and has left
      } else {
        member.meet(*transport);
        transport->receive(peer, 7, &in, sizeof in, received);
        complete(*transport, received);
        leave(*transport);
        member.meet();
      }
      member.meet(*transport);
      return member.rank() == first || in == peer;
    });
  }
}

/// A call that failed has left messages under way, and its caller has taken their memory back. Closing must not read
/// it, also when the peer is only reached then.
TEST_P(NetworkTransports, ClosesWithoutTheMemoryOfUnfinishedMessages) {
  runTeam(2, [](const NetworkMember& member) {
    std::unique_ptr<NetworkTransport> transport = member.connect(GetParam());
    if (member.rank() == 0) {
      constexpr std::size_t count = 16;
      const std::size_t bytes = std::min<std::size_t>(transport->pieceBytes(), 256 << 10);
      void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      auto requests = std::make_unique<NetworkRequest[]>(count);
      for (std::uint32_t i = 0; i < count; ++i) transport->send(1, i, memory, i % 2 == 0 ? 64 : bytes, requests[i]);
      munmap(memory, bytes);
      requests.reset();
      member.meet();
      transport.reset();
      member.meet();
    } else {
      member.meet();
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
      try {
        while (std::chrono::steady_clock::now() < end) transport->progress();
      } catch (const Error&) {  // that the other rank has left
      }
      member.meet();
    }
    return true;
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, NetworkTransports, testing::ValuesIn(usableKinds()),
                         [](const auto& information) { return std::string(information.param.name); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NetworkTransports);

}  // namespace
}  // namespace tacc::test

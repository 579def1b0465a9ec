// Messages inside a host: every size, order and interleaving arrives; what is short of memory waits and goes on; and
// nothing of a sender that has failed is believed.
#include "transports/shm/local_messages.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "network_team.hpp"
#include "transports/hybrid_transport.hpp"
#include "transports/shm/cma.hpp"
#include "transports/shm/wake_socket.hpp"

namespace tacc::test {
namespace {

/// Memory that forked children share.
class SharedNode {
 public:
  explicit SharedNode(int ranks) {
    const NodeGeometry geometry{ranks, pageBytes, pageBytes, pageBytes, true};
    bytes_ = NodeSegment::bytesFor(geometry);
    base_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(base_, MAP_FAILED);
    segment_ = NodeSegment(static_cast<std::byte*>(base_), geometry);
  }
  ~SharedNode() { ::munmap(base_, bytes_); }
  SharedNode(const SharedNode&) = delete;
  SharedNode& operator=(const SharedNode&) = delete;
  const NodeSegment& segment() const { return segment_; }

 private:
  std::size_t bytes_;
  void* base_;
  NodeSegment segment_;
};

bool canReadItself() {
  const std::uint64_t value = 4711;
  return probeCma(::getpid(), &value, value);
}

/// One rank's end.
struct End {
  Waiter waiter;
  LocalMessages messages;

  End(const NodeSegment& segment, int rank, const std::vector<int>& processes, bool reads)
      : waiter(segment, rank, processes, nullptr, {}, 0, [] { return std::string("a test"); }),
        messages(segment, rank, waiter, reads ? processes : std::vector<int>()) {}
};

/// All ranks in one thread.
struct Node {
  SharedNode memory;
  std::vector<std::unique_ptr<End>> ends;

  Node(int ranks, bool reads) : memory(ranks) {
    const std::vector<int> processes(static_cast<std::size_t>(ranks), static_cast<int>(::getpid()));
    for (int rank = 0; rank < ranks; ++rank)
      ends.push_back(std::make_unique<End>(memory.segment(), rank, processes, reads));
  }
  LocalMessages& operator[](int rank) { return ends[static_cast<std::size_t>(rank)]->messages; }
};

struct Message {
  int from, to;
  std::uint32_t tag;
  std::vector<std::byte> sent, received;
  bool inPlace, isPosted = false, isSent = false, isChecked = false;
  NetworkRequest sending, receiving;
};

constexpr std::size_t sizes[] = {0,
                                 1,
                                 lineMessage,
                                 lineMessage + 1,
                                 smallSlotBytes,
                                 smallSlotBytes + 1,
                                 largeSlotBytes - 1,
                                 largeSlotBytes,
                                 largeSlotBytes + 1,
                                 5 * largeSlotBytes + 3};

class LocalMessageNodes : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !canReadItself()) GTEST_SKIP() << "the kernel lets no process read another's memory";
  }
};

void checkArrived(Node& node, Message& m) {
  ASSERT_EQ(m.receiving.bytes, m.sent.size());
  if (m.inPlace) {
    EXPECT_TRUE(std::equal(m.sent.begin(), m.sent.end(), m.receiving.place)) << m.sent.size() << " bytes";
    node[m.to].release(m.receiving);
  } else {
    EXPECT_EQ(m.sent, m.received) << m.sent.size() << " bytes";
  }
  m.isChecked = true;
}

/// Every step is drawn: who sends, who posts a receive, who looks. More messages than lines, notices and slots.
TEST_P(LocalMessageNodes, everyInterleavingDelivers) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const int ranks = 2 + static_cast<int>(seed % 4);
    Node node(ranks, GetParam());
    std::vector<Message> all;
    const std::size_t count = seed % 3 == 0 ? 150 : 40;
    for (std::uint32_t i = 0; i < count; ++i) {
      const int from = static_cast<int>(random() % static_cast<unsigned>(ranks));
      const int to = (from + 1 + static_cast<int>(random() % static_cast<unsigned>(ranks - 1))) % ranks;
      const std::size_t bytes = sizes[random() % std::size(sizes)];
      Message& m = all.emplace_back();
      m.from = from, m.to = to, m.tag = i * 7 + 3, m.inPlace = random() % 2 == 0;
      m.sent = patternOf(bytes, i), m.received.resize(bytes);
    }
    // Receives in an order of their own: most messages come before they are expected, or long after.
    std::vector<std::size_t> sendOrder(all.size()), receiveOrder(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) sendOrder[i] = receiveOrder[i] = i;
    std::ranges::shuffle(sendOrder, random);
    std::ranges::shuffle(receiveOrder, random);
    std::size_t sent = 0, posted = 0, still = 0;
    const std::size_t bias = 1 + seed % 5;  // of ranks that look again and again before more is sent
    while (true) {
      const std::size_t what = random() % (2 + bias);
      bool moved = false;
      if (what == 0 && sent < all.size()) {
        Message& m = all[sendOrder[sent++]];
        node[m.from].send(m.to, m.tag, m.sent.data(), m.sent.size(), m.sending);
        m.isSent = moved = true;
      } else if (what == 1 && posted < all.size()) {
        Message& m = all[receiveOrder[posted++]];
        if (m.inPlace)
          node[m.to].receiveInPlace(m.from, m.tag, m.received.data(), m.received.size(), m.receiving);
        else
          node[m.to].receive(m.from, m.tag, m.received.data(), m.received.size(), m.receiving);
        m.isPosted = moved = true;
      } else {
        moved = node[static_cast<int>(random() % static_cast<unsigned>(ranks))].progress();
      }
      bool finished = sent == all.size() && posted == all.size();
      for (Message& m : all) {
        if (m.isPosted && m.receiving.done && !m.isChecked) checkArrived(node, m);
        finished = finished && m.isChecked && m.sending.done;
      }
      if (finished || testing::Test::HasFatalFailure()) break;
      still = moved || sent < all.size() || posted < all.size() ? 0 : still + 1;
      ASSERT_LT(still, 1000u) << "nothing moves any more, seed " << seed;
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

/// A receiver that waits for the last of many messages, whose sender has no line, slot or notice left for it.
TEST_P(LocalMessageNodes, theLastOfManyArrivesFirst) {
  Node node(2, GetParam());
  constexpr std::uint32_t count = 100;
  const std::vector<std::byte> data = patternOf(3 * largeSlotBytes, 1);
  std::vector<std::byte> received(data.size());
  std::vector<NetworkRequest> sends(count), receives(count);
  for (std::uint32_t tag = 0; tag < count; ++tag) node[0].send(1, tag, data.data(), data.size(), sends[tag]);
  for (std::uint32_t tag = count; tag-- > 0;) {
    std::ranges::fill(received, std::byte{0});
    node[1].receive(0, tag, received.data(), received.size(), receives[tag]);
    for (int turn = 0; turn < 1000 && !receives[tag].done; ++turn) {
      node[0].progress();
      node[1].progress();
    }
    ASSERT_TRUE(receives[tag].done) << tag;
    EXPECT_EQ(received, data);
  }
  // Who has all it wants must not leave before the senders know: they need nothing of it then.
  for (int turn = 0; turn < 100 && !node[1].drain(); ++turn) node[0].progress();
  for (int turn = 0; turn < 100; ++turn) node[0].progress();
  EXPECT_TRUE(std::ranges::all_of(sends, [](const NetworkRequest& request) { return request.done; }));
}

TEST_P(LocalMessageNodes, aMessageThatIsTooLongIsAnError) {
  for (const std::size_t bytes : sizes) {
    if (bytes == 0) continue;
    Node node(2, GetParam());
    const std::vector<std::byte> data = patternOf(bytes, 1);
    std::vector<std::byte> received(bytes);
    NetworkRequest sending, receiving;
    node[0].send(1, 5, data.data(), bytes, sending);
    node[1].receive(0, 5, received.data(), bytes - 1, receiving);
    try {
      for (int turn = 0; turn < 10; ++turn) node[1].progress();
      ADD_FAILURE() << bytes << " bytes were taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.result(), taccInvalidUsage) << error.what();
    }
  }
}

/// Whoever fails says so before its memory goes to other uses: what is read then is no result.
TEST_P(LocalMessageNodes, aFailedSendersMemoryIsNotBelieved) {
  Node node(2, GetParam());
  std::vector<std::byte> data = patternOf(largeSlotBytes * 3, 1), received(data.size());
  NetworkRequest sending, receiving;
  node[0].send(1, 5, data.data(), data.size(), sending);
  node[1].progress();
  node.ends[0]->waiter.post(taccInternalError, "it went wrong");
  std::ranges::fill(data, std::byte{0xEE});
  if (!GetParam()) return;  // it is asked for, and does not come
  EXPECT_THROW(node[1].receive(0, 5, received.data(), received.size(), receiving), Error);
  EXPECT_FALSE(receiving.done);
}

/// What stands in shared memory is not believed: a rank that has gone mad ends in an Error of the others.
TEST_P(LocalMessageNodes, nonsenseIsAnError) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    Node node(2, GetParam());
    std::vector<std::byte> received(256);
    NetworkRequest receiving;
    node[1].receive(0, 5, received.data(), received.size(), receiving);
    MessageLine& line = node.memory.segment().messageLine(0, 1, 1);
    line.tag = 5;
    line.kind = static_cast<MessageLine::Kind>(random() % 7);
    line.number = static_cast<std::uint32_t>(random() % 2 == 0 ? random() % 40 : random());
    line.bytes = random() % 2 == 0 ? random() % 300 : random();
    for (std::byte& value : line.payload) value = static_cast<std::byte>(random());
    line.sequence.store(1);
    node.memory.segment().messageNotice(0, 1, 1).store(std::uint64_t{1} << 32 | (random() | 3U << 30));
    EXPECT_THROW(
        {
          for (int turn = 0; turn < 3; ++turn) node[1].progress();
        },
        Error);
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, LocalMessageNodes, testing::Bool(),
                         [](const auto& reads) { return reads.param ? "readable" : "private"; });

/// A transport to nobody, for a host that has all ranks.
class NoNetwork final : public NetworkTransport {
 public:
  std::vector<std::byte> address() const override { return {}; }
  void setPeers(std::vector<std::vector<std::byte>>) override {}
  void send(int, std::uint32_t, const void*, std::size_t, NetworkRequest&) override {}
  void receive(int, std::uint32_t, void*, std::size_t, NetworkRequest&) override {}
  bool progress() override { return false; }
  int descriptor() const override { return -1; }
  bool arm() override { return true; }
  std::string describe() const override { return "none"; }
};

std::vector<int> allRanks(int ranks) {
  std::vector<int> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
  return all;
}

/// The end of one process of a team; all know all processes.
struct ProcessEnd {
  std::vector<int> processes;
  Waiter waiter;
  HybridTransport transport;

  ProcessEnd(const NodeSegment& segment, const NetworkMember& member, bool reads)
      : processes(gatherProcesses(member)),
        waiter(segment, member.rank(), processes, nullptr, {}, 0, [] { return std::string("a test"); }),
        transport(
            std::make_unique<NoNetwork>(),
            std::make_unique<LocalMessages>(segment, member.rank(), waiter, reads ? processes : std::vector<int>()),
            allRanks(member.ranks()), member.ranks()) {}

  static std::vector<int> gatherProcesses(const NetworkMember& member) {
    const int mine = static_cast<int>(::getpid());
    std::vector<int> all;
    for (const auto& one : member.gather(std::as_bytes(std::span(&mine, 1)))) {
      int process = -1;
      if (one.size() == sizeof process) std::memcpy(&process, one.data(), sizeof process);
      all.push_back(process);
    }
    return all;
  }
};

class LocalMessageProcesses : public LocalMessageNodes {};

/// Ranks that sleep whenever nothing comes: nobody wakes by himself, so a wake-up that were lost would end the test.
TEST_P(LocalMessageProcesses, sleepersAreWoken) {
  constexpr int ranks = 3;
  const SharedNode memory(ranks);
  runTeam(ranks, [&](const NetworkMember& member) {
    ProcessEnd end(memory.segment(), member, GetParam());
    HybridTransport& transport = end.transport;
    std::mt19937 random(static_cast<unsigned>(member.rank()));
    const int next = (member.rank() + 1) % ranks, before = (member.rank() + ranks - 1) % ranks;
    for (std::uint32_t turn = 0; turn < 300; ++turn) {
      // Bursts of more than there are lines, in a ring: each waits for the one before it.
      const std::size_t count = turn % 10 == 0 ? 50 : 1 + turn % 3;
      const std::size_t bytes = sizes[turn % std::size(sizes)];
      const std::vector<std::byte> sent = patternOf(bytes, turn);
      std::vector<std::vector<std::byte>> received(count, std::vector<std::byte>(bytes));
      std::vector<NetworkRequest> requests(2 * count);
      for (std::uint32_t i = 0; i < count; ++i) {
        transport.receive(before, turn * 64 + i, received[i].data(), bytes, requests[2 * i]);
        transport.send(next, turn * 64 + i, sent.data(), bytes, requests[2 * i + 1]);
      }
      while (!std::ranges::all_of(requests, [](const NetworkRequest& request) { return request.done; })) {
        if (transport.progress() || !transport.arm()) continue;
        pollfd bell{transport.localDescriptor(), POLLIN, 0};
        if (bell.fd < 0 || ::poll(&bell, 1, 20'000) == 0) return false;
        forgetWakes();
      }
      for (const auto& one : received)
        if (one != sent) return false;
    }
    member.meet(transport);
    return true;
  });
}

/// A rank that is killed with messages under way: whoever would read them finds out, and nobody is hurt.
TEST_P(LocalMessageProcesses, aKilledSenderIsAnErrorOrSilence) {
  const SharedNode memory(2);
  runTeam(
      2,
      [&](const NetworkMember& member) {
        ProcessEnd end(memory.segment(), member, GetParam());
        const std::vector<std::byte> sent = patternOf(4 * largeSlotBytes, 1);
        std::vector<std::byte> received(sent.size());
        NetworkRequest request;
        if (member.rank() == 0) {
          end.transport.send(1, 1, sent.data(), sent.size(), request);
          ::kill(::getpid(), SIGKILL);
        }
        member.gather({});  // ends when the other has died
        for (int turn = 0; turn < 100; ++turn) end.transport.progress();
        try {
          end.transport.receive(0, 1, received.data(), received.size(), request);
          for (int turn = 0; turn < 100; ++turn) end.transport.progress();
          return !request.done && !GetParam();
        } catch (const Error& error) {
          return error.result() == taccRemoteError && GetParam();
        }
      },
      0);
}

INSTANTIATE_TEST_SUITE_P(Memory, LocalMessageProcesses, testing::Bool(),
                         [](const auto& reads) { return reads.param ? "readable" : "private"; });

TEST(WakeSocket, wakesOnceAndForgets) {
  const int fd = wakeDescriptor();
  ASSERT_GE(fd, 0);
  pollfd bell{fd, POLLIN, 0};
  forgetWakes();
  EXPECT_EQ(::poll(&bell, 1, 0), 0);
  wakeThread(wakeName());
  EXPECT_EQ(::poll(&bell, 1, 0), 1);
  forgetWakes();
  EXPECT_EQ(::poll(&bell, 1, 0), 0);
  wakeThread(wakeName() ^ 1);  // nobody's
  EXPECT_EQ(::poll(&bell, 1, 0), 0);
}

}  // namespace
}  // namespace tacc::test

// The virtual cluster as a place for tests: what a host has of its own, what is shared, links, and that nothing is
// left.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>

#include <chrono>
#include <fstream>
#include <sstream>

#include "support/virtual_cluster.hpp"

namespace tacc::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint16_t port = 5000;

sockaddr_in addressOf(int host) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, VirtualCluster::address(host).c_str(), &address.sin_addr);
  return address;
}

/// A connection between two hosts: `first` listens, `second` connects when it is told to. -1: none within `seconds`.
int connectHosts(bool isFirst, int first, const Signal& listening, int seconds = 10) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = addressOf(first);
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  timeval patience{seconds, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  if (isFirst) {
    const int yes = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));  // the port may still be busy with an old connection
    const bool listens = ::bind(fd, name, sizeof(address)) == 0 && ::listen(fd, 1) == 0;
    listening.give();
    if (!listens) return -1;
    pollfd waiting{fd, POLLIN, 0};
    return ::poll(&waiting, 1, seconds * 1000) == 1 ? ::accept(fd, nullptr, nullptr) : -1;
  }
  listening.await();
  return ::connect(fd, name, sizeof(address)) == 0 ? fd : -1;
}

/// Megabits per second that arrive, once the burst that the links let through is over.
double receiveRate(int fd) {
  std::vector<char> bytes(1 << 18);
  const size_t settling = 2 << 20;
  size_t received = 0;
  size_t timed = 0;
  Clock::time_point start;
  for (ssize_t n; (n = ::read(fd, bytes.data(), bytes.size())) > 0;) {
    if (timed == 0 && received >= settling) {
      start = Clock::now();
      timed = received;
    }
    received += static_cast<size_t>(n);
  }
  return static_cast<double>(received - timed) * 8e-6 / std::chrono::duration<double>(Clock::now() - start).count();
}

bool sendBytes(int fd, size_t count) {
  const std::vector<char> bytes(1 << 20);
  for (size_t sent = 0; sent < count;) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return ::shutdown(fd, SHUT_WR) == 0;
}

class ClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = VirtualCluster::obstacle(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST_F(ClusterTest, hostsHaveNamesAndTheWorkingDirectory) {
  const VirtualCluster cluster(1, 2);
  char before[4096];
  ASSERT_NE(::getcwd(before, sizeof(before)), nullptr);
  EXPECT_TRUE(runRanks(cluster, {1, 2}, [&](int rank) {
    char name[64];
    char directory[4096];
    return ::gethostname(name, sizeof(name)) == 0 && name == fmt::format("tacc{}", rank + 1) &&
           ::getcwd(directory, sizeof(directory)) != nullptr && std::string(directory) == before;
  }));
}

TEST_F(ClusterTest, sharedMemoryIsTheHosts) {
  const VirtualCluster cluster(1, 2);
  constexpr key_t key = 0x7acc;
  const Signal made[2];
  const Signal looked[2];
  // Ranks 0 and 1 share host 1, rank 2 is alone on host 2.
  EXPECT_TRUE(runRanks(cluster, {1, 1, 2}, [&](int rank) {
    if (rank == 0) {
      const bool good =
          ::shm_open("/mark", O_CREAT | O_EXCL | O_RDWR, 0600) >= 0 && ::shmget(key, 4096, IPC_CREAT) >= 0;
      for (const Signal& signal : made) signal.give();
      for (const Signal& signal : looked) signal.await();
      return good;
    }
    made[rank - 1].await();
    const bool seesFile = ::shm_open("/mark", O_RDWR, 0600) >= 0;
    const bool seesSegment = ::shmget(key, 0, 0) >= 0;
    looked[rank - 1].give();
    return seesFile == (rank == 1) && seesSegment == (rank == 1);
  }));
  EXPECT_LT(::shm_open("/mark", O_RDWR, 0600), 0);
}

TEST_F(ClusterTest, sharedMemoryLivesAsLongAsTheHost) {
  const VirtualCluster cluster(1, 1);
  EXPECT_TRUE(runRanks(cluster, {1}, [](int) { return ::shm_open("/mark", O_CREAT | O_RDWR, 0600) >= 0; }));
  EXPECT_TRUE(runRanks(cluster, {1}, [](int) { return ::shm_open("/mark", O_RDWR, 0600) >= 0; }));
}

class Rates : public ClusterTest, public testing::WithParamInterface<std::pair<int, int>> {};

TEST_P(Rates, holdBetweenSupernodes) {
  const auto [host, uplink] = GetParam();
  const VirtualCluster cluster(2, 1, host, uplink);
  const double slowest = std::min(host, uplink);
  const Signal listening;
  EXPECT_TRUE(runRanks(cluster, {1, 2}, [&](int rank) {
    const int fd = connectHosts(rank == 0, 1, listening);
    if (fd < 0) return false;
    if (rank == 1) return sendBytes(fd, 16 << 20);
    const double rate = receiveRate(fd);
    std::printf("%.1f of %.0f Mbit/s\n", rate, slowest);
    // Of 1514 bytes on the wire 1448 are counted here. A busy machine may lose some more.
    return rate > 0.85 * slowest && rate < 1.02 * slowest;
  }));
}

INSTANTIATE_TEST_SUITE_P(ClusterTest, Rates, testing::Values(std::pair(100, 400), std::pair(400, 100)));

TEST_F(ClusterTest, unpluggedHostsAreSilentUntilTheyArePluggedAgain) {
  const VirtualCluster cluster(2, 1);
  const Signal listening;
  const auto meet = [&](int seconds) {
    return runRanks(cluster, {1, 2}, [&](int rank) { return connectHosts(rank == 0, 1, listening, seconds) >= 0; });
  };
  EXPECT_TRUE(meet(10));
  cluster.unplug(2);
  EXPECT_FALSE(meet(1));
  cluster.plug(2);
  EXPECT_TRUE(meet(10));
}

TEST_F(ClusterTest, clustersDoNotSeeEachOther) {
  const VirtualCluster one(1, 2);
  const VirtualCluster other(1, 1);
  const Signal listening;
  // The other cluster's host 1 has the same address, and nobody listens there.
  ChildProcess listener([&] {
    one.enter(1);
    return connectHosts(true, 1, listening) >= 0;
  });
  EXPECT_TRUE(runRanks(one, {2}, [&](int) {
    listening.await();
    listening.give();
    return true;
  }));
  EXPECT_FALSE(runRanks(other, {1}, [&](int) { return connectHosts(false, 1, listening, 1) >= 0; }));
  listening.give();
  EXPECT_TRUE(runRanks(one, {2}, [&](int) { return connectHosts(false, 1, listening) >= 0; }));
  EXPECT_EQ(listener.wait(), 0);
}

}  // namespace
}  // namespace tacc::test

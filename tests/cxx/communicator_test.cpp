// The life of communicators in C++: how they are made, moved, split, shrunk, and ended.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <functional>
#include <span>
#include <type_traits>

#include "cxx/ranks.hpp"
#include "support/child_process.hpp"

namespace taccxx::test {
namespace {

using tacc::test::ChildProcess;
using ::testing::AllOf;
using ::testing::HasSubstr;

static_assert(std::is_nothrow_move_constructible_v<Communicator> && !std::is_copy_constructible_v<Communicator> &&
              std::is_nothrow_move_assignable_v<Communicator> && !std::is_copy_assignable_v<Communicator>);
static_assert(!std::is_copy_constructible_v<Stream> && !std::is_copy_constructible_v<Bucket> &&
              !std::is_copy_constructible_v<Memory<int>> && !std::is_copy_constructible_v<PreMulSum> &&
              !std::is_copy_constructible_v<Registration> && !std::is_move_constructible_v<Group>);

int sumOfRanks(const Communicator& comm) {
  int sum = comm.rank() + 1;
  comm.allReduce(std::span(&sum, 1));
  return sum;
}

/// Runs `body(rank)` in a process for each rank, and expects true of all.
void inProcesses(int ranks, const std::function<bool(int)>& body) {
  std::vector<ChildProcess> children;
  for (int rank = 0; rank < ranks; ++rank) children.emplace_back([&, rank] { return body(rank); });
  for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0);
}

TEST(CxxCommunicator, OfProcessesThatHaveAnId) {
  const taccUniqueId id = getUniqueId();
  inProcesses(3, [&](int rank) {
    Config config;
    config.name = "cxx";
    Communicator comm = Communicator::initRank(3, id, rank, config);
    const bool isRight = comm.rank() == rank && comm.size() == 3 && sumOfRanks(comm) == 6 &&
                         comm.nodeInfo().localRank == rank && comm.asyncError() == taccSuccess &&
                         comm.explain("allreduce", 1 << 20).find("allreduce") != std::string::npos;
    comm.finalize();
    comm.destroy();
    return isRight && !comm;
  });
}

TEST(CxxCommunicator, OfALaunchersProcesses) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  ::close(listener);
  inProcesses(2, [&](int rank) {
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("WORLD_SIZE", "2", 1);
    ::setenv("MASTER_ADDR", "127.0.0.1", 1);
    ::setenv("MASTER_PORT", std::to_string(ntohs(address.sin_port)).c_str(), 1);
    const Communicator comm = Communicator::initEnv();
    return comm.rank() == rank && sumOfRanks(comm) == 3;
  });
}

TEST(CxxCommunicator, MovesAndIsEmptyAfterwards) {
  onRanks(2, [](Communicator& comm) {
    Communicator moved = std::move(comm);
    EXPECT_FALSE(comm);
    EXPECT_EQ(sumOfRanks(moved), 3);
    comm = std::move(moved);
    EXPECT_TRUE(comm);
    EXPECT_FALSE(moved);
    const CommunicatorView view = comm;
    EXPECT_EQ(view.get(), comm.get());
    Communicator adopted(comm.release());
    EXPECT_FALSE(comm);
    EXPECT_EQ(sumOfRanks(adopted), 3);
  });
  EXPECT_NE(errorOf([] { Communicator().rank(); }), "");
}

TEST(CxxCommunicator, Splits) {
  onRanks(3, [](Communicator& comm) {
    const int rank = comm.rank();
    Config config;
    config.name = "part";
    const Communicator part = comm.split(rank == 2 ? TACC_SPLIT_NOCOLOR : 0, -rank, &config);
    EXPECT_EQ(static_cast<bool>(part), rank != 2);
    if (part) {
      EXPECT_EQ(part.rank(), 1 - rank);
      EXPECT_EQ(sumOfRanks(part), 3);
    }
    const int members[] = {2, 0};
    if (rank == 1) return;
    const Communicator group = comm.createGroup(members);
    EXPECT_EQ(group.rank(), rank == 2 ? 0 : 1);
    EXPECT_EQ(sumOfRanks(group), 3);
  });
}

TEST(CxxCommunicator, ShrinksAndAgreesAfterADeath) {
  const taccUniqueId id = getUniqueId();
  std::vector<ChildProcess> children;
  for (int rank = 0; rank < 3; ++rank) {
    children.emplace_back([&, rank] {
      const Communicator comm = Communicator::initRank(3, id, rank);
      const Agreement before = comm.agree(rank == 0 ? 7 : 6);
      if (before.flags != 6 || !before.isOfAll) return false;
      if (rank == 2) ::_exit(0);
      const std::string error = errorOf([&] { comm.barrier(); });
      if (error.find("remote error") == std::string::npos || comm.asyncError() != taccRemoteError) return false;
      const Agreement after = comm.agree(rank == 0 ? 3 : 2);
      const Communicator rest = comm.shrink();
      return after.flags == 2 && !after.isOfAll && rest.size() == 2 && sumOfRanks(rest) == 3;
    });
  }
  for (ChildProcess& child : children) EXPECT_EQ(child.wait(), 0);
}

TEST(CxxCommunicator, LeavesOutWhomItIsTold) {
  const taccUniqueId id = getUniqueId();
  inProcesses(2, [&](int rank) {
    const Communicator comm = Communicator::initRank(2, id, rank);
    if (rank == 1) return true;
    const int excluded[] = {1};
    return comm.shrink(excluded).size() == 1;
  });
}

TEST(CxxCommunicator, RevokedAndAborted) {
  onRanks(2, [](Communicator& comm) {
    comm.barrier();
    if (comm.rank() == 0) comm.revoke();
    EXPECT_THAT(errorOf([&] { comm.barrier(); }), HasSubstr("remote error"));
  });
  onRanks(2, [](Communicator& comm) {
    comm.barrier();
    if (comm.rank() == 0) {
      comm.abort();
      EXPECT_FALSE(comm);
    } else {
      EXPECT_THAT(errorOf([&] { comm.barrier(); }), HasSubstr("remote error"));
    }
  });
}

TEST(CxxCommunicator, OneThatStillJoinsIsAborted) {
  const taccUniqueId id = getUniqueId();
  Config config;
  config.blocking = 0;
  {
    const Communicator alone = Communicator::initRank(2, id, 0, config);
    EXPECT_TRUE(alone);
    EXPECT_EQ(alone.asyncError(), taccInProgress);
  }
  Config impatient;
  impatient.initTimeout = 0.5;
  EXPECT_NE(errorOf([&] { Communicator::initRank(2, id, 1, impatient); }), "") << "nobody is there to be joined";
  const taccUniqueId another = getUniqueId();
  Communicator first = Communicator::initRank(2, another, 0, config);
  const Communicator second = Communicator::initRank(2, another, 1);
  while (first.asyncError() == taccInProgress) std::this_thread::yield();
  EXPECT_EQ(first.size(), 2);
}

TEST(CxxCommunicator, ErrorsOfJoiningAreThrown) {
  const taccUniqueId id = getUniqueId();
  EXPECT_THAT(errorOf([&] { Communicator::initRank(2, id, 5); }), AllOf(HasSubstr("invalid argument"), HasSubstr("5")));
  EXPECT_THAT(errorOf([] { Communicator::initAll(-1); }), HasSubstr("invalid argument"));
}

}  // namespace
}  // namespace taccxx::test

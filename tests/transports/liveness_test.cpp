#include "transports/shm/liveness.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "support/child_process.hpp"
#include "support/first_thread.hpp"
#include "transports/file_descriptor.hpp"
#include "transports/shm/shared_memory.hpp"
#include "transports/unix_socket.hpp"

namespace tacc {
namespace {

using test::ChildProcess;
using test::Signal;

class LivenessTest : public testing::Test {
 protected:
  LivenessTest() { shareWithChildren(memory_.fd()); }

  SharedMemory memory_ = SharedMemory::create(4096, "liveness");
};

/// A child that claims `rank`, says so and waits to be killed.
ChildProcess claimInChild(int fd, int rank, const Signal& claimed) {
  return ChildProcess([&, rank] {
    const Liveness liveness(fd, rank);
    claimed.give();
    ::pause();
    return true;
  });
}

TEST_F(LivenessTest, AKilledProcessIsDeadAlsoAsAZombie) {
  const Liveness own(memory_.fd(), 0);
  const Signal claimed;
  ChildProcess child = claimInChild(memory_.fd(), 3, claimed);
  claimed.await();
  EXPECT_TRUE(own.isAlive(0));
  EXPECT_TRUE(own.isAlive(3));
  EXPECT_FALSE(own.isAlive(2));
  EXPECT_EQ(describeProcess(child.pid()), "running");

  child.kill();
  child.waitUntilZombie();
  EXPECT_FALSE(own.isAlive(3));
  EXPECT_EQ(describeProcess(child.pid()), "gone");
  child.wait();
  EXPECT_FALSE(own.isAlive(3));
}

TEST_F(LivenessTest, AStoppedProcessIsAliveAndDescribedAsStopped) {
  const Liveness own(memory_.fd(), 0);
  const Signal claimed;
  ChildProcess child = claimInChild(memory_.fd(), 1, claimed);
  claimed.await();
  child.kill(SIGSTOP);
  siginfo_t info;
  ::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WSTOPPED | WNOWAIT);
  EXPECT_TRUE(own.isAlive(1));
  EXPECT_EQ(describeProcess(child.pid()), "stopped (SIGSTOP)");
}

TEST_F(LivenessTest, AForkedChildDoesNotKeepItsParentAlive) {
  const Liveness own(memory_.fd(), 0);
  const Signal claimed;
  const Signal end;
  // The child's own child inherits all descriptors and outlives it.
  ChildProcess child([&] {
    const Liveness liveness(memory_.fd(), 1);
    if (::fork() == 0) {
      end.await();
      ::_exit(0);
    }
    claimed.give();
    ::pause();
    return true;
  });
  claimed.await();
  EXPECT_TRUE(own.isAlive(1));
  child.kill();
  child.wait();
  EXPECT_FALSE(own.isAlive(1));
  end.give();
}

TEST_F(LivenessTest, ClosingOtherDescriptorsOfTheFileKeepsTheClaim) {
  const Liveness own(memory_.fd(), 0);
  duplicate(memory_.fd()).reset();
  { const SharedMemory second = SharedMemory::map(duplicate(memory_.fd()), 4096, "liveness"); }
  ChildProcess child([&] { return Liveness(memory_.fd(), 5).isAlive(0); });
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(LivenessTest, RanksOfOneProcessEndOneByOne) {
  const int before = test::countOpenDescriptors();
  std::optional<Liveness> first(std::in_place, memory_.fd(), 0);
  std::optional<Liveness> second(std::in_place, memory_.fd(), 1);
  EXPECT_TRUE(first->isAlive(1));
  const auto seenByOthers = [&](int rank) {
    ChildProcess child([&] { return Liveness(duplicate(memory_.fd()).get(), 5).isAlive(rank); });
    return child.wait() == 0;
  };
  EXPECT_TRUE(seenByOthers(0));
  EXPECT_TRUE(seenByOthers(1));
  first.reset();
  EXPECT_FALSE(second->isAlive(0));
  EXPECT_FALSE(seenByOthers(0));
  EXPECT_TRUE(seenByOthers(1));
  second.reset();
  EXPECT_FALSE(seenByOthers(1));
  EXPECT_EQ(test::countOpenDescriptors(), before);
}

TEST_F(LivenessTest, ARankIsClaimedOnce) {
  const Liveness own(memory_.fd(), 0);
  EXPECT_THROW(Liveness(memory_.fd(), 0), Error);
  EXPECT_TRUE(own.isAlive(0));
  const pid_t parent = ::getpid();
  ChildProcess child([&] {
    try {
      const Liveness stolen(memory_.fd(), 0);
    } catch (const Error& error) {
      return std::string(error.what()).find(std::to_string(parent)) != std::string::npos;
    }
    return false;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(LivenessTest, AProcessThatClosesAllDescriptorsBlamesNobodyElse) {
  const Signal claimed;
  const ChildProcess other = claimInChild(memory_.fd(), 3, claimed);
  claimed.await();
  ChildProcess closer([&] {
    std::optional<Liveness> own(std::in_place, memory_.fd(), 1);
    if (::close_range(STDERR_FILENO + 1, ~0U, 0) != 0) return false;
    const auto blamesItself = [&] {
      try {
        return own->isAlive(3), false;
      } catch (const Error& error) {
        return error.result() == taccInvalidUsage && std::string(error.what()).find("rank 1") != std::string::npos;
      }
    };
    if (!blamesItself()) return false;
    std::vector<std::pair<int, ino_t>> files;
    struct stat found {};
    for (int i = 0; i < 20; ++i) {
      const int fd = ::memfd_create("of the program", 0);
      if (::fstat(fd, &found) != 0) return false;
      files.emplace_back(fd, found.st_ino);
    }
    if (!blamesItself()) return false;
    own.reset();
    return std::ranges::all_of(
        files, [&](const auto& one) { return ::fstat(one.first, &found) == 0 && found.st_ino == one.second; });
  });
  EXPECT_EQ(closer.wait(), 0);
}

TEST(DescribeProcess, SaysGoneForWhatNeverWas) { EXPECT_EQ(describeProcess(0x3fffffff), "gone"); }

TEST(DescribeProcess, LooksBehindAFirstThreadThatHasEnded) {
  const Signal ended;
  ChildProcess child([&]() -> bool {
    test::endFirstThread([&] {
      ended.give();
      ::pause();
      return 0;
    });
  });
  ended.await();
  EXPECT_EQ(describeProcess(child.pid()), "running");
  child.kill(SIGSTOP);
  siginfo_t info;
  ::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WSTOPPED);
  EXPECT_EQ(describeProcess(child.pid()), "stopped (SIGSTOP)");
  child.kill();
  child.waitUntilZombie();
  EXPECT_EQ(describeProcess(child.pid()), "gone");
}

/// Sends `fd` to this process itself, and owns what comes.
std::vector<FileDescriptor> sendToSelf(int fd) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  char byte = 1;
  iovec bytes{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(part), &fd, sizeof fd);
  EXPECT_EQ(::sendmsg(ends[0], &message, 0), 1);
  const TakenStandardNumbers taken;
  EXPECT_EQ(::recvmsg(ends[1], &message, MSG_CMSG_CLOEXEC), 1);
  std::vector<FileDescriptor> received = takeDescriptors(message);
  for (const int end : ends) ::close(end);
  return received;
}

/// What comes next would have the number of a standard stream, and not keep it.
TEST_F(LivenessTest, AClaimOutlivesOtherDescriptorsOfAProcessWithoutStandardStreams) {
  const Liveness own(memory_.fd(), 0);
  for (const bool isSent : {true, false}) {
    const Signal claimed;
    ChildProcess child([&] {
      for (const int standard : {STDIN_FILENO, STDOUT_FILENO}) {
        const Liveness first(memory_.fd(), 1);
        ::close(standard);
        const std::vector<FileDescriptor> received = isSent ? sendToSelf(memory_.fd()) : std::vector<FileDescriptor>();
        if (::fcntl(standard, F_GETFD) >= 0) return false;
        if (standard == STDIN_FILENO) continue;
        const FileDescriptor copy = isSent ? FileDescriptor() : duplicate(memory_.fd());
        claimed.give();
        ::pause();
      }
      return true;
    });
    claimed.await();
    EXPECT_TRUE(own.isAlive(1)) << (isSent ? "received" : "duplicated");
  }
}

}  // namespace
}  // namespace tacc

// Processes of other users at the unix sockets where ranks meet: neither end tells them anything.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "bootstrap_team.hpp"
#include "support/child_process.hpp"
#include "transports/unix_socket.hpp"

namespace tacc {
namespace {

using test::ChildProcess;
using test::joinFailure;
using test::patience;
using test::Signal;
using testing::AllOf;
using testing::HasSubstr;

constexpr uid_t other = 1001;

class PeerUser : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be several users";
  }
};

int unixSocket() { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

/// Connects to the name once somebody listens there.
int connectTo(const std::string& name) {
  const int fd = unixSocket();
  const AbstractAddress address(name);
  while (::connect(fd, address.get(), address.size()) != 0) ::usleep(1000);
  return fd;
}

TEST_F(PeerUser, TheKernelTellsWhoIsThere) {
  for (const uid_t user : {uid_t{0}, other}) {
    const std::string name = "tacc-test-" + std::to_string(::getpid()) + "-" + std::to_string(user);
    const FileDescriptor listener(unixSocket());
    const AbstractAddress address(name);
    ASSERT_EQ(::bind(listener.get(), address.get(), address.size()), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    ChildProcess child([&] {
      if (::setresuid(user, user, user) != 0) return false;
      const FileDescriptor socket(connectTo(name));
      return userOfPeer(socket.get()) == 0U && isSameUser(socket.get()) == (user == 0);
    });
    const FileDescriptor visitor(::accept(listener.get(), nullptr, nullptr));
    EXPECT_EQ(userOfPeer(visitor.get()), user);
    EXPECT_EQ(isSameUser(visitor.get()), user == 0);
    EXPECT_EQ(child.wait(), 0);
  }
}

TEST_F(PeerUser, AVisitorOfAnotherUserGetsNoByteAndHindersNobody) {
  const taccUniqueId id = makeHostUniqueId();
  const Signal refused;
  ChildProcess stranger([&] {
    if (::setresuid(other, other, other) != 0) return false;
    const FileDescriptor socket(connectTo(rendezvousName(openUniqueId(id))));
    char byte;
    const bool nothing = ::recv(socket.get(), &byte, 1, 0) <= 0;
    refused.give();
    return nothing;
  });
  ChildProcess rank([&] {
    refused.await();
    return joinFailure(taccSuccess, id, 2, 1, patience).empty();
  });
  EXPECT_EQ(joinFailure(taccSuccess, id, 2, 0, patience), "");
  EXPECT_EQ(stranger.wait(), 0);
  EXPECT_EQ(rank.wait(), 0);
}

TEST_F(PeerUser, ARankOfAnotherUserIsToldWhyAtOnce) {
  const taccUniqueId id = makeHostUniqueId();
  ChildProcess rankZero([&] { return !joinFailure(taccTimeout, id, 2, 0, 3).empty(); });
  ::close(connectTo(rendezvousName(openUniqueId(id))));
  ChildProcess foreign([&] {
    if (::setresuid(other, other, other) != 0) return false;
    const auto start = std::chrono::steady_clock::now();
    const std::string message = joinFailure(taccSystemError, id, 2, 1, patience);
    EXPECT_THAT(message, AllOf(HasSubstr("process of user 0"), HasSubstr("user 1001")));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
    return !testing::Test::HasFailure();
  });
  EXPECT_EQ(foreign.wait(), 0);
  EXPECT_EQ(rankZero.wait(), 0);  // it waits on for a rank of its own user, and says so
}

/// Who has worked the name out and listens there first is found out by both ends, and sent nothing.
TEST_F(PeerUser, AListenerOfAnotherUserIsNamedByEveryRankAndGetsNoByte) {
  const taccUniqueId id = makeHostUniqueId();
  const Signal listens;
  const Signal over;
  ChildProcess squatter([&] {
    if (::setresuid(other, other, other) != 0) return false;
    const FileDescriptor listener(unixSocket());
    const AbstractAddress address(rendezvousName(openUniqueId(id)));
    if (::bind(listener.get(), address.get(), address.size()) != 0 || ::listen(listener.get(), 16) != 0) return false;
    listens.give();
    over.await();
    bool nothing = true;
    for (int visitor = 0; visitor < 2; ++visitor) {
      const FileDescriptor socket(::accept(listener.get(), nullptr, nullptr));
      char byte;
      nothing = nothing && ::recv(socket.get(), &byte, 1, 0) <= 0;
    }
    return nothing;
  });
  listens.await();
  for (const int rank : {0, 1}) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THAT(joinFailure(taccSystemError, id, 2, rank, patience),
                AllOf(HasSubstr("rank " + std::to_string(rank)), HasSubstr("process of user 1001")));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  }
  over.give();
  EXPECT_EQ(squatter.wait(), 0);
}

}  // namespace
}  // namespace tacc

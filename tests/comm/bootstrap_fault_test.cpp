// Ranks that do not come, die, stop or fail while the others meet or exchange: all are told who is to blame.
#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <semaphore>
#include <stop_token>
#include <string>
#include <thread>

#include "bootstrap_team.hpp"
#include "comm/bootstrap/bootstrap.hpp"
#include "comm/bootstrap/bootstrap_member.hpp"
#include "comm/bootstrap/bootstrap_root.hpp"
#include "comm/bootstrap/listeners.hpp"
#include "support/child_process.hpp"
#include "transports/shm/shared_memory.hpp"

namespace tacc {
namespace {

using test::bytesOf;
using test::ChildProcess;
using test::expectFailure;
using test::failureOf;
using test::joinFailure;
using test::patience;
using test::Signal;
using testing::HasSubstr;

TEST(BootstrapFaults, ARankThatDoesNotComeIsNamed) {
  const taccUniqueId id = makeUniqueId();
  ChildProcess one = expectFailure(taccTimeout, id, 4, 1, 0.4, {"rank 2, rank 3 of 4"});
  test::openBell();
  const int before = test::countOpenDescriptors();
  EXPECT_THAT(joinFailure(taccTimeout, id, 4, 0, 0.4), HasSubstr("rank 2, rank 3 of 4 did not join within 0.4 s"));
  EXPECT_EQ(test::countOpenDescriptors(), before);
  EXPECT_EQ(one.wait(), 0);
}

TEST(BootstrapFaults, ARankZeroThatDoesNotComeIsNamed) {
  const taccUniqueId id = makeUniqueId();
  EXPECT_THAT(joinFailure(taccTimeout, id, 2, 1, 0.1), HasSubstr("rank 1: rank 0 did not answer within 0.1 s"));
}

TEST(BootstrapFaults, ARankKilledWhileTheOthersJoinIsNamed) {
  const taccUniqueId id = makeUniqueId();
  ChildProcess victim([&] {
    Bootstrap bootstrap(id, 3, 1, patience);
    return true;
  });
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    victim.kill();
  });
  const std::string message = joinFailure(taccRemoteError, id, 3, 0, 10);
  killer.join();
  EXPECT_THAT(message, HasSubstr(fmt::format("rank 1 (process {}", victim.pid())));
  EXPECT_THAT(message, HasSubstr("has ended"));
}

TEST(BootstrapFaults, ARankKilledInACollectiveIsNamedOnAll) {
  const taccUniqueId id = makeUniqueId();
  const auto gather = [](Bootstrap& bootstrap) { bootstrap.allGather({}); };
  const Signal joined;
  ChildProcess victim([&] {
    Bootstrap bootstrap(id, 3, 2, patience);
    joined.give();
    ::pause();
    return true;
  });
  const std::string expected = fmt::format("rank 2 (process {}", victim.pid());
  ChildProcess survivor([&] {
    const std::string message = failureOf(taccRemoteError, id, 3, 1, patience, gather);
    return message.find(expected) != std::string::npos && !testing::Test::HasFailure();
  });
  const std::string message = failureOf(taccRemoteError, id, 3, 0, patience, [&](Bootstrap& bootstrap) {
    joined.await();
    victim.kill();
    gather(bootstrap);
  });
  EXPECT_THAT(message, HasSubstr(expected));
  EXPECT_EQ(survivor.wait(), 0);
}

TEST(BootstrapFaults, ARankZeroKilledInACollectiveIsNamed) {
  const taccUniqueId id = makeUniqueId();
  const Signal joined;
  ChildProcess root([&] {
    Bootstrap bootstrap(id, 2, 0, patience);
    joined.give();
    ::pause();
    return true;
  });
  const std::string message = failureOf(taccRemoteError, id, 2, 1, patience, [&](Bootstrap& bootstrap) {
    joined.await();
    root.kill();
    bootstrap.allGather({});
  });
  EXPECT_THAT(message, HasSubstr(fmt::format("rank 0 (process {}", root.pid())));
}

TEST(BootstrapFaults, AStoppedRankIsNamedAsStopped) {
  const taccUniqueId id = makeUniqueId();
  ChildProcess stopped([&] {
    Bootstrap bootstrap(id, 2, 1, patience);
    ::raise(SIGSTOP);
    return true;
  });
  const std::string message = failureOf(taccTimeout, id, 2, 0, 1.0, [&](Bootstrap& bootstrap) {
    siginfo_t info;
    ::waitid(P_PID, static_cast<id_t>(stopped.pid()), &info, WSTOPPED | WNOWAIT);
    bootstrap.allGather({});
  });
  EXPECT_THAT(message, HasSubstr(fmt::format("rank 1 (process {}, stopped (SIGSTOP))", stopped.pid())));
}

TEST(BootstrapFaults, UnequalPartsAreToldToAll) {
  const taccUniqueId id = makeUniqueId();
  const int number = 0;
  ChildProcess child([&] {
    return failureOf(taccRemoteError, id, 2, 1, patience, [&](Bootstrap& bootstrap) {
             bootstrap.allGather(bytesOf(number).first(2));
           }).find("rank 1 gave 2 bytes, rank 0 gave 4") != std::string::npos;
  });
  EXPECT_THAT(failureOf(taccInternalError, id, 2, 0, patience,
                        [&](Bootstrap& bootstrap) { bootstrap.allGather(bytesOf(number)); }),
              HasSubstr("rank 1 gave 2 bytes, rank 0 gave 4"));
  EXPECT_EQ(child.wait(), 0);
}

TEST(BootstrapFaults, AnInterruptEndsABlockedCallOnAllRanks) {
  for (const int interrupted : {0, 1}) {
    const taccUniqueId id = makeUniqueId();
    const auto gatherAndBeInterrupted = [&](Bootstrap& bootstrap) {
      std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        bootstrap.interrupt();
      });
      try {
        bootstrap.allGather({});
      } catch (const Error&) {
        other.join();
        EXPECT_THROW(bootstrap.allGather({}), Error);
        throw;
      }
      other.join();
    };
    const std::string text = fmt::format("aborted by rank {}", interrupted);
    // Rank 2 joins and takes part in nothing, so that the others block.
    const Signal done;
    ChildProcess idle([&] {
      Bootstrap bootstrap(id, 3, 2, patience);
      done.await();
      return true;
    });
    const auto run = [&](int rank) {
      const std::string message = failureOf(taccRemoteError, id, 3, rank, patience, [&](Bootstrap& bootstrap) {
        if (rank == interrupted)
          gatherAndBeInterrupted(bootstrap);
        else
          bootstrap.allGather({});
      });
      return message.find(text) != std::string::npos;
    };
    ChildProcess child([&] { return run(1); });
    EXPECT_TRUE(run(0));
    EXPECT_EQ(child.wait(), 0);
    done.give();
    EXPECT_EQ(idle.wait(), 0);
  }
}

TEST(BootstrapFaults, AFailureBetweenCallsReachesThoseWhoMeetAgain) {
  for (const int failing : {0, 1, 2}) {
    const taccUniqueId id = makeUniqueId();
    const taccUniqueId second = makeUniqueId();
    const auto run = [&](int rank) {
      const auto start = std::chrono::steady_clock::now();
      const std::string message = failureOf(taccRemoteError, id, 3, rank, patience, [&](Bootstrap& first) {
        first.allGather({});
        if (rank == failing) {
          const Error error(taccRemoteError, "the cellar is full");
          first.announceFailure(error);
          throw error;
        }
        const BootstrapOptions options{.idleWork = [&first] { first.checkOthers(); }};
        const Bootstrap again(second, 3, rank, patience, std::stop_token(), options);
      });
      EXPECT_NE(message.find("the cellar is full"), std::string::npos) << "rank " << rank << ": " << message;
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << "rank " << rank;
      return !testing::Test::HasFailure();
    };
    ChildProcess one([&] { return run(1); });
    ChildProcess two([&] { return run(2); });
    EXPECT_TRUE(run(0));
    EXPECT_EQ(one.wait(), 0);
    EXPECT_EQ(two.wait(), 0);
  }
}

TEST(BootstrapFaults, AFailureBetweenCallsIsToldToAll) {
  for (const int failing : {0, 1}) {
    for (const bool passingDescriptor : {false, true}) {
      const taccUniqueId id = makeUniqueId();
      const SharedMemory memory = SharedMemory::create(4096, "test");
      const Signal announced;
      const auto run = [&](int rank) {
        const std::string message = failureOf(taccRemoteError, id, 3, rank, patience, [&](Bootstrap& bootstrap) {
          if (rank == failing) {
            const Error error(taccRemoteError, "the cellar is full");
            bootstrap.announceFailure(error);
            announced.give();
            throw error;
          }
          if (rank == 0) announced.await();
          if (passingDescriptor)
            (void)bootstrap.broadcastDescriptor(memory.fd());
          else
            bootstrap.allGather({});
        });
        return message.find("the cellar is full") != std::string::npos;
      };
      ChildProcess one([&] { return run(1); });
      // Rank 2 may get its descriptor before rank 0 notices.
      ChildProcess two([&] {
        return passingDescriptor && failing == 1 ? (joinFailure(taccRemoteError, id, 3, 2, patience), true) : run(2);
      });
      EXPECT_TRUE(run(0));
      EXPECT_EQ(one.wait(), 0);
      EXPECT_EQ(two.wait(), 0);
    }
  }
}

/// One of two ranks ends just before rank 0 hands descriptors out, which are closed before all are sent.
TEST(BootstrapFaults, ADeathWhileDescriptorsGoOutIsToldToAll) {
  for (int repetition = 0; repetition < 8; ++repetition) {
    const int victim = 1 + repetition % 2;  // whoever of them came first is served first
    const taccUniqueId id = makeUniqueId();
    const UniqueIdContents contents = openUniqueId(id);
    const Interrupt interrupt(0);
    std::binary_semaphore goes(0);
    std::binary_semaphore gone(0);
    std::string survivorHeard;
    const auto join = [&](int rank) {
      auto member = std::make_unique<BootstrapMember>(contents, 3, rank, patience, TreeShape{}, interrupt,
                                                      std::function<void()>());
      if (rank == victim) {
        goes.acquire();
        member.reset();
        return gone.release();
      }
      try {
        member->collective([&] { return member->receive(MessageKind::descriptor, "the test", patience); });
      } catch (const Error& error) {
        survivorHeard = error.what();
      }
    };
    std::thread one(join, 1);
    std::thread two(join, 2);
    BootstrapRoot root(*listenFor(contents), contents, 3, patience, 0, interrupt, {});
    EXPECT_THROW(root.collective([&] {
      const SharedMemory memory = SharedMemory::create(4096, "test");
      goes.release();
      gone.acquire();
      root.scatter(MessageKind::descriptor, "the test", patience, [&](int) { return Answer{nullptr, {memory.fd()}}; });
      return 0;
    }),
                 Error);
    one.join();
    two.join();
    // It may have got its descriptor before the death was seen.
    if (!survivorHeard.empty()) {
      EXPECT_THAT(survivorHeard, HasSubstr(fmt::format("rank {} (", victim)));
    }
  }
}

}  // namespace
}  // namespace tacc

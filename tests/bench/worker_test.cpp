#include "worker/worker.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <stdexcept>
#include <thread>

#include "worker/element.hpp"

namespace tacc::bench {
namespace {

/// One rank alone: all its collectives are copies. Breaks the result when told to.
class LoneContestant : public Contestant {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 1; }
  std::string secret() override { return "secret"; }
  void join(const std::string& secret) override { joinedWith = secret; }
  int variants(const Task& task) const override { return task.type == taccBfloat16 ? 0 : 2; }
  void barrier() override { ++barriers; }
  void beginGroup() override { ++groups; }
  std::string algorithm(const Call&) const override { return "copy"; }

  void run(const Call& call) override {
    if (failAfter-- == 0) throw std::runtime_error("no\nmore");
    const size_t bytes = call.task->count * elementSize(call.task->type);
    if (call.send != call.recv) std::memcpy(call.recv, call.send, bytes);
    if (corrupt) static_cast<char*>(call.recv)[bytes - 1] ^= 1;
    used.insert(call.recv);
    ++runs;
  }

  std::string joinedWith;
  std::set<void*> used;
  bool corrupt = false;
  int failAfter = -1;
  int runs = 0;
  int barriers = 0;
  int groups = 0;
};

/// What the kernel's table of this process says of the mapping that `address` is in, as in "rd wr mr mw me ac hg ".
std::string mappingFlags(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::ifstream table("/proc/self/smaps");
  bool isIn = false;
  for (std::string line; std::getline(table, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) isIn = begin <= at && at < end;
    if (isIn && line.rfind("VmFlags:", 0) == 0) return line;
  }
  return "";
}

/// The coordinator's end of a worker that runs in a thread.
class WorkerTest : public testing::Test {
 protected:
  WorkerTest() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw std::runtime_error("socketpair");
    channel_.emplace(ends[0]);
    thread_ = std::thread([this, end = ends[1]] {
      Worker worker(contestant_, Channel(end));
      served_ = worker.serve();
    });
  }
  ~WorkerTest() override { end(); }

  void end() {
    channel_.reset();
    if (thread_.joinable()) thread_.join();
  }

  std::string hear() { return channel_->receive().value_or("closed"); }

  std::string ask(const std::string& line) {
    channel_->send(line);
    return hear();
  }

  Timing time(const std::string& block) {
    const std::string answer = ask(block);
    if (answer.rfind("ok ", 0) != 0) throw std::runtime_error(answer);
    return Timing::decode(answer.substr(3));
  }

  LoneContestant contestant_;
  std::optional<Channel> channel_;
  std::thread thread_;
  bool served_ = false;
};

TEST_F(WorkerTest, introducesItselfAndJoins) {
  EXPECT_EQ(hear().rfind("hello 0 ", 0), 0U);
  EXPECT_EQ(ask("join secret"), "ok ");
  end();
  EXPECT_EQ(contestant_.joinedWith, "secret");
  EXPECT_TRUE(served_);
}

TEST_F(WorkerTest, timesWithWarmupAndFindsNothingWrong) {
  hear();
  ask("allocate 4096 0");
  EXPECT_EQ(ask("prepare allreduce float sum 0 100"), "ok 2");
  const Timing timing = time("time 0 1 2 5 1 1 0");
  EXPECT_EQ(timing.wrong, 0);
  EXPECT_GT(timing.seconds, 0);
  EXPECT_EQ(timing.algorithm, "copy");
  EXPECT_EQ(time("time 1 0 0 3 1 1 0").wrong, 0);
  end();
  // Two warm-up and five timed calls; three timed in place and one more to be checked.
  EXPECT_EQ(contestant_.runs, 2 + 5 + 3 + 1);
}

TEST_F(WorkerTest, movesThroughThePool) {
  hear();
  ask("allocate 4096 0");
  ask("prepare broadcast float sum 0 100");
  time("time 0 0 0 50 1 1 0");
  end();
  // 400 bytes take 448 with their alignment: nine fit.
  EXPECT_EQ(contestant_.used.size(), 9U);
}

TEST_F(WorkerTest, takesHugePagesOrSmallOnesAsItIsTold) {
  if (::access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) != 0) GTEST_SKIP() << "a kernel without huge pages";
  hear();
  for (const bool small : {false, true}) {
    ask(small ? "allocate 4194304 1" : "allocate 4194304 0");
    ask("prepare broadcast float sum 0 100");
    contestant_.used.clear();
    time("time 0 0 0 1 1 1 0");
    const std::string flags = mappingFlags(*contestant_.used.begin());
    EXPECT_NE(flags.find(small ? " nh" : " hg"), std::string::npos) << flags;
  }
  EXPECT_EQ(ask("allocate 4194304"), "error cannot allocate \"4194304\"");
}

TEST_F(WorkerTest, seesBrokenResults) {
  contestant_.corrupt = true;
  hear();
  ask("allocate 4096 0");
  ask("prepare allreduce int32 sum 0 100");
  EXPECT_EQ(time("time 0 0 0 3 1 1 0").wrong, 1);
  EXPECT_EQ(time("time 1 0 0 3 1 1 0").wrong, 1);
  EXPECT_EQ(time("time 0 0 0 3 0 1 0").wrong, 0);
}

TEST_F(WorkerTest, callsOfAGroupCountEachAndIterationsAreTimedByThemselves) {
  hear();
  ask("allocate 4096 0");
  ask("prepare allreduce float sum 0 100");
  const Timing timing = time("time 0 0 1 5 1 3 1");
  EXPECT_EQ(timing.wrong, 0);
  ASSERT_EQ(timing.calls.size(), 5U);
  double sum = 0;
  for (const double call : timing.calls) sum += call;
  EXPECT_NEAR(sum / 5, timing.seconds, 0.01 * timing.seconds + 1e-6);
  EXPECT_EQ(time("time 0 0 0 5 0 1 0").calls.size(), 0U);
  end();
  EXPECT_EQ(contestant_.runs, 6 * 3 + 5);
  EXPECT_EQ(contestant_.groups, 6);
}

TEST_F(WorkerTest, saysWhatTheContestantDoesNotOffer) {
  hear();
  ask("allocate 4096 0");
  EXPECT_EQ(ask("prepare allreduce bfloat16 sum 0 100"), "ok 0");
}

TEST_F(WorkerTest, tellsTheContestantsErrorInOneLineAndEnds) {
  contestant_.failAfter = 2;
  hear();
  ask("allocate 4096 0");
  ask("prepare allreduce float sum 0 100");
  EXPECT_EQ(ask("time 0 0 0 5 1 1 0"), "error no more");
  EXPECT_EQ(hear(), "closed");
  end();
  EXPECT_FALSE(served_);
}

TEST_F(WorkerTest, refusesWhatDoesNotFitOrIsNoCommand) {
  hear();
  ask("allocate 64 0");
  EXPECT_NE(ask("prepare allreduce float sum 0 100").find("do not fit"), std::string::npos);
}

TEST_F(WorkerTest, refusesUnknownCommands) {
  hear();
  EXPECT_EQ(ask("dance"), "error unexpected command \"dance\"");
}

}  // namespace
}  // namespace tacc::bench

// Requests and events on real communicators: drawn programs over several of them and several streams, and waits that
// end because a rank aborts, dies or never comes.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "fault_team.hpp"
#include "rank_harness.hpp"

namespace tacc::test {
namespace {

using Numbers = std::vector<std::int64_t>;

/// An allreduce whose sums everybody knows, of numbers of its own or of the sums of an earlier one.
struct Sum {
  std::size_t comm, stream;
  int after;  // number of the call of the same round whose sums it adds up; -1: none
  Numbers in, out;
  std::int64_t expected = 0;  // of out[i]: expected + i * slope
  std::int64_t slope = 0;
  taccEvent_t event = nullptr;
  taccRequest_t request = nullptr;
};

class DrawnProgram {
 public:
  DrawnProgram(taccComm_t comm, int rank, unsigned seed)
      : rank_(rank), draws_(seed), ownDraws_(seed + 1000 + static_cast<unsigned>(rank)) {
    expectSuccess(taccCommCount(comm, &ranks_), comm);
    taccComm_t turned = nullptr, part = nullptr;
    expectSuccess(taccCommSplit(comm, 0, -rank, &turned, nullptr), comm);
    expectSuccess(taccCommSplit(comm, rank % 2, rank, &part, nullptr), comm);
    comms_ = {comm, turned, part};
    for (taccStream_t& stream : streams_) expectSuccess(taccStreamCreate(&stream), nullptr);
  }
  ~DrawnProgram() {
    for (taccStream_t stream : streams_) expectSuccess(taccStreamDestroy(stream), nullptr);
    expectSuccess(taccCommDestroy(comms_[1]), comms_[1]);
    expectSuccess(taccCommDestroy(comms_[2]), comms_[2]);
  }
  DrawnProgram(const DrawnProgram&) = delete;
  DrawnProgram& operator=(const DrawnProgram&) = delete;

  void runRound() {
    sums_.clear();
    const int calls = 1 + upTo(9);
    for (int i = 0; i < calls; ++i) give(i);
    // Every rank asks in an order of its own.
    std::vector<std::size_t> order(sums_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    while (!order.empty()) {
      std::shuffle(order.begin(), order.end(), ownDraws_);
      if (finish(*sums_[order.back()])) order.pop_back();
    }
    for (const auto& sum : sums_) {
      if (sum->event != nullptr) expectSuccess(taccEventDestroy(sum->event), nullptr);
    }
  }

 private:
  int upTo(int most) { return static_cast<int>(draws_() % (static_cast<unsigned>(most) + 1)); }

  /// Numbers that `rank` of the first communicator has.
  static std::int64_t valueOf(int call, int rank) { return 100 * call + rank + 1; }

  void give(int number) {
    auto sum = std::make_unique<Sum>();
    sum->comm = static_cast<std::size_t>(upTo(2));
    sum->stream = ownDraws_() % std::size(streams_);
    sum->after = number > 0 && upTo(2) == 0 ? upTo(number - 1) : -1;
    const std::size_t drawn[] = {1, 6, 500, 20000, 300000};
    std::size_t count = drawn[upTo(upTo(3) == 0 ? 4 : 3)];
    std::int64_t members = 0, own = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (sum->comm == 2 && rank % 2 != rank_ % 2) continue;
      ++members;
      own += valueOf(number, rank);
    }
    const Sum* before = sum->after < 0 ? nullptr : sums_[static_cast<std::size_t>(sum->after)].get();
    // What a part has added up differs from part to part: only communicators of all ranks must not go on with it.
    if (before != nullptr && before->comm == 2 && sum->comm != 2) before = nullptr;
    if (before != nullptr) {
      count = before->out.size();
      sum->expected = members * before->expected;
      sum->slope = members * before->slope;
    } else {
      sum->in.resize(count);
      for (std::size_t i = 0; i < count; ++i) sum->in[i] = valueOf(number, rank_) + static_cast<std::int64_t>(i);
      sum->expected = own;
      sum->slope = members;
    }
    sum->out.assign(count, -1);
    taccStream_t const stream = streams_[sum->stream];
    taccComm_t const comm = comms_[sum->comm];
    if (before != nullptr) expectSuccess(taccStreamWaitEvent(stream, before->event), nullptr);
    const void* const in = before != nullptr ? before->out.data() : sum->in.data();
    expectSuccess(taccAllReduce(in, sum->out.data(), count, taccInt64, taccSum, comm, stream), comm);
    expectSuccess(taccStreamRequest(stream, &sum->request), nullptr);
    expectSuccess(taccEventCreate(&sum->event), nullptr);
    expectSuccess(taccEventRecord(sum->event, stream), nullptr);
    sums_.push_back(std::move(sum));
  }

  /// Asks in one of the ways there are. Whether it is done, and then it is right.
  bool finish(Sum& sum) {
    taccResult_t result = taccInProgress;
    switch (ownDraws_() % 5) {
      case 0:
        result = taccRequestTest(sum.request);
        break;
      case 1:
        result = taccRequestWait(sum.request);
        break;
      case 2:
        result = taccRequestWaitFor(sum.request, 1e-5);
        break;
      case 3:
        result = taccEventQuery(sum.event);
        break;
      default:
        result = taccEventSynchronize(sum.event);
    }
    if (result == taccInProgress) return false;
    EXPECT_EQ(result, taccSuccess) << taccGetLastError(nullptr);
    EXPECT_EQ(taccRequestTest(sum.request), taccSuccess);
    EXPECT_EQ(taccEventQuery(sum.event), taccSuccess);
    EXPECT_EQ(taccRequestDestroy(sum.request), taccSuccess);
    for (std::size_t i = 0; i < sum.out.size(); ++i) {
      if (sum.out[i] == sum.expected + static_cast<std::int64_t>(i) * sum.slope) continue;
      ADD_FAILURE() << "number " << i << " of " << sum.out.size() << " is " << sum.out[i];
      break;
    }
    return true;
  }

  int rank_, ranks_ = 1;
  std::mt19937 draws_, ownDraws_;
  std::vector<taccComm_t> comms_;
  taccStream_t streams_[3] = {};
  std::vector<std::unique_ptr<Sum>> sums_;
};

TEST(Requests, DrawnProgramsEndRight) {
  const int rounds = isQuick() ? 10 : 60;
  for (const RankKind kind : {RankKind::processes, RankKind::threads}) {
    for (int ranks = 1; ranks <= 4; ++ranks) {
      runRanks(kind, ranks, [&](taccComm_t comm, int rank) {
        DrawnProgram program(comm, rank, static_cast<unsigned>(ranks));
        for (int round = 0; round < rounds; ++round) program.runRound();
      });
    }
  }
}

/// A call that another rank does not come to, and one of the null stream's behind an event that is not reached.
struct Pending {
  explicit Pending(taccComm_t comm) {
    for (taccStream_t& stream : streams) expectSuccess(taccStreamCreate(&stream), nullptr);
    expectSuccess(taccEventCreate(&event), nullptr);
    expectSuccess(taccAllReduce(in.data(), out.data(), in.size(), taccInt64, taccSum, comm, streams[0]), comm);
    expectSuccess(taccStreamRequest(streams[0], &request), nullptr);
    expectSuccess(taccEventRecord(event, streams[0]), nullptr);
    expectSuccess(taccStreamWaitEvent(streams[1], event), nullptr);
  }
  ~Pending() {
    for (taccStream_t stream : streams) taccStreamDestroy(stream);
    expectSuccess(taccEventDestroy(event), nullptr);
    expectSuccess(taccRequestDestroy(request), nullptr);
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  Numbers in = Numbers(1000, 1), out = Numbers(1000);
  taccStream_t streams[2] = {};
  taccEvent_t event = nullptr;
  taccRequest_t request = nullptr;
};

TEST(Requests, ARankThatDiesEndsTheWait) {
  Team team(3, [](const taccUniqueId& id, int rank, Report& report) {
    taccComm_t const comm = joinTeam(id, 3, rank, configOf(20, 20));
    if (rank == 2) waitToBeKilled(report);
    const Pending pending(comm);
    report.stage = 1;
    report.result = taccRequestWait(pending.request);
    report.setMessage(taccGetLastError(nullptr));
    report.later = taccRequestTest(pending.request);
    EXPECT_EQ(taccEventSynchronize(pending.event), taccSuccess);
    EXPECT_EQ(taccStreamSynchronize(pending.streams[1]), taccSuccess);
    taccCommDestroy(comm);
  });
  team.awaitStage(1);
  team.signal(2, SIGKILL);
  team.join(2);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(team.report(rank).result, taccRemoteError);
    EXPECT_EQ(team.report(rank).later, taccRemoteError);
    EXPECT_NE(std::string(team.report(rank).message).find("rank 2"), std::string::npos) << team.report(rank).message;
  }
}

TEST(Requests, AnAbortEndsTheWaitOnAllRanks) {
  Team team(3, [](const taccUniqueId& id, int rank, Report& report) {
    taccComm_t const comm = joinTeam(id, 3, rank, configOf(20, 20));
    if (rank == 2) {
      report.stage = 1;
      expectSuccess(taccCommAbort(comm), nullptr);
      return;
    }
    const Pending pending(comm);
    report.stage = 1;
    report.result = taccRequestWait(pending.request);
    report.setMessage(taccGetLastError(nullptr));
    EXPECT_EQ(taccEventSynchronize(pending.event), taccSuccess);
    EXPECT_EQ(taccStreamSynchronize(pending.streams[1]), taccSuccess);
    taccCommDestroy(comm);
  });
  team.join();
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(team.report(rank).result, taccRemoteError);
    EXPECT_NE(std::string(team.report(rank).message).find("rank 2"), std::string::npos) << team.report(rank).message;
  }
}

/// Of this process, in seconds.
double processorTime() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(Requests, WaitingCostsNoCore) {
  constexpr int ranks = 4;
  constexpr double wait = 0.4;
  int gate[2];
  ASSERT_EQ(pipe(gate), 0);
  runRanks(RankKind::processes, ranks, [&](taccComm_t comm, int rank) {
    expectSuccess(taccBarrier(comm, nullptr), comm);
    char word = 0;
    if (rank == ranks - 1) {
      // Comes when all others have waited.
      for (int i = 1; i < ranks; ++i) ASSERT_EQ(read(gate[0], &word, 1), 1);
    }
    const Pending pending(comm);
    if (rank < ranks - 1) {
      const double before = processorTime();
      EXPECT_EQ(taccRequestWaitFor(pending.request, wait), taccInProgress);
      EXPECT_LT(processorTime() - before, 0.25 * wait);
      ASSERT_EQ(write(gate[1], "", 1), 1);
    }
    EXPECT_EQ(taccRequestWait(pending.request), taccSuccess);
    EXPECT_EQ(pending.out[999], ranks);
  });
  close(gate[0]);
  close(gate[1]);
}

}  // namespace
}  // namespace tacc::test

// A communicator without other ranks, for tests of the C interface: it records what reaches it, can be held and can
// fail.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/handles.hpp"
#include "comm/communicator.hpp"

namespace tacc::test {

/// What a fake was asked to do.
struct Event {
  std::string what;  // "run", "exchange", "split", "group", "shrink", "register", "deregister"
  int rank = 0;
  Call call;
  std::vector<std::byte> factor;  // the eight bytes that call.factor pointed to
  std::vector<PointToPoint> operations;
  std::thread::id thread;
  CommConfig config;  // of a split
};

class FakeCommunicator;

/// What the fakes of one test share. Outlives them.
class FakeWorld {
 public:
  /// Makes rank `rank` of `ranks` with a handle that the test owns.
  taccComm_t make(int rank, int ranks, CommConfig config = {});

  void record(Event event);
  std::vector<Event> events();
  /// Waits until `count` events were recorded; false when that takes longer than ten seconds.
  bool waitForEvents(std::size_t count);

  /// While held, the rank's calls wait inside the communicator (after they are recorded).
  void hold(int rank);
  void letGo(int rank);
  /// The next run or exchange of the rank fails with this, and so do all that follow, as those of a real one.
  void breakRank(int rank, taccResult_t result, const std::string& message);
  /// Makes allreduces meet: a call returns only when `ranks` calls are inside at once. Tests that calls run
  /// concurrently.
  void meet(int ranks);

 private:
  friend class FakeCommunicator;
  struct Rank {
    bool held = false;
    taccResult_t broken = taccSuccess;
    std::string message;
  };
  Rank& rank(int number);  // with mutex_ held
  void pass(int number);   // what every call does after it was recorded

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Event> events_;
  std::vector<Rank> ranks_;
  int meeting_ = 1;
  int arrived_ = 0;
};

/// Sums are of equal inputs: a float32 allreduce multiplies by the number of ranks (and by the factor).
class FakeCommunicator : public Communicator {
 public:
  FakeCommunicator(FakeWorld& world, int rank, int ranks, CommConfig config)
      : Communicator(rank, ranks, std::move(config)), world_(world) {}

  void run(const Call& call) override;
  void exchange(std::span<const PointToPoint> operations) override;
  std::unique_ptr<Communicator> split(int color, int key, const CommConfig& config) override;
  std::unique_ptr<Communicator> makeGroup(std::span<const int> members, const CommConfig& config) override;
  std::unique_ptr<Communicator> shrink(std::span<const int> excluded, const CommConfig& config) override;
  Agreed agree(std::uint32_t flags) override { return {flags & 6, {}}; }
  void endRecovery() noexcept override {}
  void failWith(const Error& error) noexcept override { abort(error.what()); }
  void abort(const std::string& why) noexcept override;
  taccResult_t asyncError() const noexcept override;
  void registerBuffer(void* buffer, std::size_t bytes) override;
  void deregisterBuffer(void* buffer) override;
  std::string lastAlgorithm() const override { return "fake"; }
  Standing standing() const override { return {.host = 1, .hosts = 3, .localRank = 2, .localRanks = 4}; }
  std::string transportName() const override { return "pigeon"; }
  std::string explain(Collective collective, std::size_t bytes) override {
    return std::string(nameOf(collective)) + " of " + std::to_string(bytes) + " bytes is faked";
  }

 private:
  FakeWorld& world_;
};

/// The world of the communicators that taccCommInitRank and taccCommInitAll make in tests that link the fakes.
FakeWorld& joinedWorld();

}  // namespace tacc::test

#include "transports/shm/waiter.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "transports/shm/cpu_relax.hpp"

namespace tacc {
namespace {

constexpr long firstSlice = 1'000'000;   // ns; short, it also makes good a lost wake-up
constexpr long laterSlice = 20'000'000;  // ns; bounds how late a rank learns of an error
constexpr int yieldsPerIdleWork = 8;
constexpr int spinsPerIdleWork = 64;
constexpr int spinsPerIdleCall = 1024;  // about 50 us: who spins for long (TACC_SPIN) works meanwhile
constexpr double writingSeconds = 1.0;  // writing an error takes microseconds, unless its writer is killed

constexpr double longestSlice = 1.0;  // of a slice; what takes longer was stopped

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Sleeps for a slice at most. Returns the seconds that are not to be counted as waiting: while a whole job is stopped,
/// as a batch system suspends one for another, nobody can have come.
double sleepOn(std::atomic<std::uint32_t>& word, std::uint32_t value, long slice) {
  const double before = now();
  futexWait(word, value, slice);
  const double slept = now() - before;
  return slept > longestSlice ? slept : 0;
}

/// Moves this thread to another of its allowed cores, once; its affinity stays as it was.
void leaveCore() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<std::size_t>(sched_getcpu()), &others);
  if (CPU_COUNT(&others) == 0) return;
  if (sched_setaffinity(0, sizeof others, &others) == 0) sched_setaffinity(0, sizeof allowed, &allowed);
}

/// Counts this rank as a sleeper of an area as long as it lives.
class Sleeper {
 public:
  explicit Sleeper(Doorbell& doorbell) : doorbell_(doorbell) { doorbell_.sleepers.fetch_add(1); }
  ~Sleeper() { doorbell_.sleepers.fetch_sub(1); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

 private:
  Doorbell& doorbell_;
};

// Of more ranks that take turns on a core a yield lasts for slices by itself, and others get little of the core.
constexpr int mostRanksOfCore = 4;
constexpr int relaxesPerMicrosecond = 20;  // about 50 ns each

}  // namespace

Waiter::Waiter(const NodeSegment& segment, int rank, std::vector<int> processes, const Presence* presence,
               WaitPolicy policy, double timeoutSeconds, std::function<std::string()> describe, RankNames names)
    : segment_(segment),
      rank_(rank),
      processes_(std::move(processes)),
      presence_(presence),
      policy_(policy),
      timeout_(timeoutSeconds),
      describe_(std::move(describe)),
      names_(std::move(names)),
      doorbell_(&segment.doorbell(rank)) {}

void Waiter::waitLonger(std::atomic<std::uint32_t>& word, std::uint32_t target, int owner) {
  const auto reached = [&] { return hasReached(word.load(std::memory_order_acquire), target); };
  for (int i = 0; i < policy_.spins; ++i) {
    if (reached()) return;
    if (i % spinsPerIdleCall == spinsPerIdleCall - 1) idleCall_();
    relaxCpu();
  }
  checkErrors();
  // Not in a communicator over several hosts: a rank waits like this for one that is many calls behind, which takes
  // long, and what that waits for itself may want the core.
  const auto keepsHere = [this] { return !idleWork_ && keepsCore(); };
  const bool keeps = keepsHere();
  if (keeps && spinAmongOthers(reached, owner)) return;
  if (sharesCore(owner) && rank_ > owner) leaveCore();
  // Who shares the core with the owner gives it up all the same.
  for (int i = 0; i < policy_.yields && !sleepsAtOnce() && (!keeps || sharesCore(owner)); ++i) {
    if (idleWork_ && i % yieldsPerIdleWork == 0) idleWork_();
    idleCall_();
    const bool wasLong = coreCompetition().yield();
    if (reached()) return;
    checkErrors();  // where many share the core, one of these may last for milliseconds
    if (!wasLong || !keepsHere()) continue;
    if (spinAmongOthers(reached, owner)) return;
    break;
  }
  double start = now();
  const Sleeper sleeper(segment_.doorbell(owner));
  for (long slice = firstSlice;; slice = sleepsShort() ? firstSlice : laterSlice) {
    if (idleWork_) idleWork_();
    idleCall_();
    const auto value = word.load(std::memory_order_seq_cst);
    if (hasReached(value, target)) return;
    start += sleepOn(word, value, slice);
    if (reached()) return;
    checkErrors();
    checkPeer(owner, now() - start, reached);
  }
}

template <class Reached>
bool Waiter::spinAmongOthers(const Reached& reached, int owner) {
  for (const double end = now() + policy_.competingSpinSeconds; now() < end && !sharesCore(owner);) {
    for (int i = 0; i < spinsPerIdleWork; ++i) {
      if (reached()) return true;
      relaxCpu();
    }
    idleCall_();
    checkErrors();
  }
  return reached();
}

bool Waiter::sharesCore(int owner) const noexcept {
  if (policy_.oversubscribed) return false;
  const auto mine = static_cast<std::uint32_t>(sched_getcpu() + 1);
  doorbell_->core.store(mine, std::memory_order_relaxed);
  return owner != rank_ && segment_.doorbell(owner).core.load(std::memory_order_relaxed) == mine;
}

void Waiter::pauseForRing(int attempt, std::uint32_t seenRings, int suspect) {
  if (attempt == 0) ringStart_ = 0;
  if (idleWork_ && (attempt % yieldsPerIdleWork == 0 || attempt >= policy_.spins + policy_.yields)) idleWork_();
  if (attempt >= policy_.spins || attempt % spinsPerIdleCall == spinsPerIdleCall - 1) idleCall_();
  if (attempt < policy_.spins) return relaxCpu();
  checkErrors();
  if (keepsCore()) {
    if (ringStart_ == 0) ringStart_ = now();
    if (now() - ringStart_ < policy_.competingSpinSeconds && !sharesCore(suspect)) return relaxCpu();
  } else if (attempt < policy_.spins + policy_.yields && !sleepsAtOnce()) {
    coreCompetition().yield();
    return checkErrors();
  }
  if (ringStart_ == 0) ringStart_ = now();
  const Sleeper sleeper(*doorbell_);
  ringStart_ += sleepOn(doorbell_->rings, seenRings, sleepsShort() ? firstSlice : laterSlice);
  checkPeer(suspect, now() - ringStart_, [&] { return rings() != seenRings; });
}

void Waiter::lookAt(int owner, double waitedSeconds, const std::function<bool()>& isDone) {
  if (idleWork_) idleWork_();
  idleCall_();
  checkErrors();
  checkPeer(owner, waitedSeconds, isDone);
}

void Waiter::ring(int rank) noexcept {
  Doorbell& bell = segment_.doorbell(rank);
  bell.rings.fetch_add(1, std::memory_order_seq_cst);
  if (bell.sleepers.load(std::memory_order_seq_cst) != 0) futexWakeAll(bell.rings);
}

template <class IsDone>
void Waiter::checkPeer(int owner, double waitedSeconds, const IsDone& isDone) const {
  const auto peer = static_cast<std::size_t>(owner);
  const int process = processes_[peer];
  const bool other = presence_ != nullptr && process != processes_[static_cast<std::size_t>(rank_)];
  if (other && !presence_->isThere(owner)) {
    // It may have done its part between the last look and its end; after its end nothing can come any more.
    if (isDone()) return;
    checkErrors();  // a rank that fails says why before it ends
    if (idleWork_) idleWork_();
    const bool gone = describeProcess(process) == "gone";
    fail(taccRemoteError, "rank {} (process {}) {}; rank {} was waiting for it in {}", nameOf(owner), process,
         gone ? "has died" : "is no longer in the communicator", nameOf(rank_), describe_());
  }
  if (timeout_ > 0 && waitedSeconds > timeout_)
    fail(taccTimeout, "rank {} (process {}{}) did not come within {} s; rank {} was waiting for it in {}",
         nameOf(owner), process, other ? ", " + describeProcess(process) : "", timeout_, nameOf(rank_), describe_());
}

void Waiter::throwPosted() const {
  ErrorBoard& board = segment_.errorBoard();
  const double start = now();
  while (board.state.load(std::memory_order_acquire) == 1) {
    sched_yield();
    if (now() - start > writingSeconds)
      fail(taccRemoteError, "another rank has failed, and died before it could say why; rank {} was in {}",
           nameOf(rank_), describe_());
  }
  // Any rank of the node can write here, and may have written anything.
  std::string message(board.message, ::strnlen(board.message, sizeof board.message));
  if (message.empty()) message = "(no word)";
  const int writer = board.rank, result = board.result;
  const bool isResult = result > taccSuccess && result < taccNumResults;
  if (writer == rank_) throw Error(isResult ? static_cast<taccResult_t>(result) : taccInternalError, message);
  if (writer < 0 || writer >= segment_.geometry().ranks)
    fail(taccInternalError, "somebody who says to be rank {} of the node reported: {}", writer, message);
  fail(taccRemoteError, "rank {} reported: {}", nameOf(writer), message);
}

void Waiter::post(taccResult_t result, std::string_view message) noexcept {
  segment_.errorBoard().post(rank_, result, message);
}

WaitPolicy chooseWaitPolicy(int ranks, int cores, std::optional<int> spinMicroseconds) {
  WaitPolicy policy;
  policy.oversubscribed = ranks > cores;
  if (policy.oversubscribed) {
    policy.sleepsAmongOthers = ranks <= mostRanksOfCore * cores;
    policy.spins = 10;
    policy.yields = 10;
  }
  if (spinMicroseconds) {
    policy.spins = *spinMicroseconds * relaxesPerMicrosecond;
    policy.competingSpinSeconds = 0;
  }
  return policy;
}

}  // namespace tacc

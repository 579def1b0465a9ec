// Waiting for another rank's word, and telling others that one's own word has changed.
//
// Waiting is adaptive: spin while the other rank is probably running, then yield the core, then sleep on the word.
// Where other programs compete for the core, a rank keeps it for longer (core_competition.hpp). A rank that sleeps
// looks up now and then for the three things that can end a wait otherwise: an error of another rank, a rank that died,
// and the time-out.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/idle_call.hpp"
#include "transports/shm/core_competition.hpp"
#include "transports/shm/finish_reads.hpp"
#include "transports/shm/futex.hpp"
#include "transports/shm/node_segment.hpp"
#include "transports/shm/presence.hpp"

namespace tacc {

/// How long to wait in which way.
struct WaitPolicy {
  int spins = 400;              // looks at the word before the first yield: about 20 us
  int yields = 1000;            // yields before the first sleep: about 0.3 us each on an idle core
  bool oversubscribed = false;  // more ranks than cores: the rank that is waited for may need this core
  /// Oversubscribed, and other programs may be told from the communicator's own ranks.
  bool sleepsAmongOthers = false;
  double competingSpinSeconds = CoreCompetition::spinSeconds;  // to spin where other programs want the core; 0: as else
};

/// The policy for `ranks` ranks on `cores` cores; `spinMicroseconds` (TACC_SPIN) overrides the spins.
WaitPolicy chooseWaitPolicy(int ranks, int cores, std::optional<int> spinMicroseconds);

/// True when counter `value` has reached `target`; both wrap around.
constexpr bool hasReached(std::uint32_t value, std::uint32_t target) noexcept {
  return static_cast<std::int32_t>(value - target) >= 0;
}

/// Who the ranks of a node are to people, when the node is a part of a larger communicator.
struct RankNames {
  std::vector<int> names;  // by rank of the node; empty: the same numbers
  int operator[](int rank) const { return names.empty() ? rank : names[static_cast<std::size_t>(rank)]; }
};

class Waiter {
 public:
  /// `processes[r]` is rank r's pid; `presence` is null among threads. `describe` says what this rank is doing, for
  /// messages. A timeout of 0 waits for ever.
  Waiter(const NodeSegment& segment, int rank, std::vector<int> processes, const Presence* presence, WaitPolicy policy,
         double timeoutSeconds, std::function<std::string()> describe, RankNames names = {});

  /// Called again and again while this rank waits for another one of the node, about every millisecond at least: what
  /// it has to do with other nodes meanwhile. May throw, which ends the wait.
  void setIdleWork(std::function<void()> work) { idleWork_ = std::move(work); }
  /// The same for what the program wants to be done.
  void setIdleCall(IdleCall call) { idleCall_ = call; }
  /// Numbers by which people know the ranks from now on.
  void setNames(RankNames names) { names_ = std::move(names); }
  /// The number by which people know `rank`.
  int nameOf(int rank) const { return names_[rank]; }

  /// Whether `word` has reached `target`: then all that its writer wrote before is visible.
  static bool sees(const std::atomic<std::uint32_t>& word, std::uint32_t target) noexcept {
    return hasReached(word.load(std::memory_order_acquire), target);
  }

  /// Returns when `word`, which `owner` writes, has reached `target`. Throws what ended the wait otherwise.
  void wait(std::atomic<std::uint32_t>& word, std::uint32_t target, int owner) {
    if (!sees(word, target)) waitLonger(word, target, owner);
  }

  /// Stores `value` in this rank's `word` and wakes who sleeps on it. All earlier writes of this thread are visible to
  /// a rank that sees the value.
  void publish(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
    // A sleeper counts itself, then looks at the word once more; here the word is written, then the count is read. With
    // sequential consistency one of the two sees the other. Where cores are plenty the plain store is used, which does
    // not hold up this core for the cache line: a wake-up that is lost in that window is made good by the sleeper's
    // first, short slice.
    if (policy_.oversubscribed)
      word.exchange(value, std::memory_order_seq_cst);
    else
      word.store(value, std::memory_order_release);
    if (doorbell_->sleepers.load(std::memory_order_seq_cst) != 0) futexWakeAll(word);
  }

  /// For conditions over several words: call in a loop with a growing `attempt`; sleeps on this rank's own doorbell.
  /// The caller reads `rings()` before it looks at its words.
  std::uint32_t rings() const noexcept { return doorbell_->rings.load(std::memory_order_seq_cst); }
  void pauseForRing(int attempt, std::uint32_t seenRings, int suspect);
  /// Wakes `rank` from pauseForRing.
  void ring(int rank) noexcept;

  /// For a wait for `owner` in another way than through this object, about every millisecond. Throws what ends it.
  /// `isDone`: whether the rank has done its part, asked once it has gone.
  void lookAt(int owner, double waitedSeconds, const std::function<bool()>& isDone);

  /// Throws if another rank has reported an error or this communicator was aborted. Costs one load.
  void checkErrors() const {
    if (segment_.errorBoard().state.load(std::memory_order_acquire) != 0) throwPosted();
  }
  /// For a wait in another communicator: the idle work, and checkErrors().
  void lookAround() const {
    if (idleWork_) idleWork_();
    checkErrors();
  }

  /// checkErrors() after memory of other ranks has been read where they may use it anew once they have failed: who
  /// returns from this has read what they meant. They report before they use it.
  void checkAfterReading() const {
    finishReads();
    checkErrors();
  }

  /// Whether `rank` is still in the communicator.
  bool isThere(int rank) const { return presence_ == nullptr || presence_->isThere(rank); }

  /// Makes all waits of all ranks end with this message; the first error wins. Never throws.
  void post(taccResult_t result, std::string_view message) noexcept;

  const WaitPolicy& policy() const noexcept { return policy_; }

 private:
  void waitLonger(std::atomic<std::uint32_t>& word, std::uint32_t target, int owner);
  /// Spins for the policy's competingSpinSeconds. Whether `reached` became true; at once where `owner` is on this core.
  template <class Reached>
  bool spinAmongOthers(const Reached& reached, int owner);
  /// Whether both ranks wait on one core though there are enough. Two ranks that yield to each other look busy to the
  /// scheduler, which then leaves them together for seconds. Leaves a note of this rank's core.
  bool sharesCore(int owner) const noexcept;
  /// Whether other programs want this core, and this rank has a right to it.
  bool keepsCore() const noexcept {
    return !policy_.oversubscribed && policy_.competingSpinSeconds > 0 && coreCompetition().wasSeen();
  }
  /// Whether other programs want this core, and this rank shares it with others that are to be woken.
  bool sleepsAtOnce() const noexcept { return policy_.sleepsAmongOthers && coreCompetition().isSteady(); }
  bool sleepsShort() const noexcept { return idleWork_ || idleCall_; }
  /// Throws if `owner` has gone or is overdue, unless `isDone`: what a rank did before it left still counts.
  template <class IsDone>
  void checkPeer(int owner, double waitedSeconds, const IsDone& isDone) const;
  [[noreturn]] void throwPosted() const;

  NodeSegment segment_;
  int rank_;
  std::vector<int> processes_;
  const Presence* presence_;
  WaitPolicy policy_;
  double timeout_;
  std::function<std::string()> describe_;
  RankNames names_;
  std::function<void()> idleWork_;  // empty: none
  IdleCall idleCall_;
  Doorbell* doorbell_;  // own
  double ringStart_ = 0;
};

}  // namespace tacc

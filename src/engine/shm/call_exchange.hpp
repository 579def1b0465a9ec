// The opening of every call: each rank posts its line (number, signature, 48 bytes), and sees those of the others.
//
// Who may overwrite which slot when. Lines and notes are rings; a ring of depth d has the slot of call n again in call
// n + d. Longer payloads lie in a ring of bytes (post_ring.hpp), each where its rank's line says: the slot of call n is
// then any place that it has taken. A rank that posts line n has finished call n - 1, and with it all that it reads of
// call n - 1. So, for all ranks p and q:
//
//   (1) p writes to the slot of call n, for a later one, only when every rank is known to have posted line n + 1. It is
//       known from `confirmed_`: all ranks have posted that call.
//   (2) Until q has posted line s nobody else gets beyond call s + d - 2, which has the line of call s - 2. So p's line
//       s - 1 stays as it is once it is posted; the slot of any older call of p may hold, or be getting, what belongs
//       to the call d later.
//   (3) Once q has posted line s it reads p's line, note and slot of call s, which stay as they are until q posts
//       s + 1. Payloads are read only then: so they are plain memory.
//   (4) p writes to the words of line n for call n + d only after it has posted line n + d - 1. A rank that has read a
//       word of line n, and then sees that line n + d - 1 is not posted, has read what belongs to call n. The words are
//       stored with release and loaded with acquire, so that seeing a later one means to see that post.
//
// What may be read outside of (3), in begin() and to name a mismatch, is checked by (2) or (4). A number that is newer
// than the one looked for says how far the other rank has come, but not that the line is that call's.
//
// Numbers are counted modulo 2^32, which all depths divide, and compared by their difference: ranks are never further
// apart than a ring is deep.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "engine/shm/post_ring.hpp"
#include "transports/shm/node_segment.hpp"
#include "transports/shm/waiter.hpp"

namespace tacc {

/// Where in the eager ring of a rank a payload lies; behind what else the line holds of such a call.
using EagerOffset = std::uint32_t;
inline constexpr std::size_t lineBesideEager = linePayload - sizeof(EagerOffset);

/// One rank's end. `Segment` has the rings, `Waiting` waits for others and publishes: NodeSegment and Waiter, but in
/// the test that goes through all interleavings, whose rings are shallow and whose ranks take turns.
template <class Segment, class Waiting>
class BasicCallExchange {
 public:
  /// Calls are counted on from the number that the first line of all ranks holds: 0 in new memory.
  BasicCallExchange(const Segment& segment, int rank, Waiting& waiter)
      : segment_(segment),
        rank_(rank),
        ranks_(segment.geometry().ranks),
        waiter_(&waiter),
        sequence_(segment.callLine(rank, 0).sequence.load(std::memory_order_relaxed)),
        confirmed_(sequence_),
        posts_(segment.eagerRingBytes()) {}

  /// Begins the next call, whose payload here has at most `bytes`: waits, if need be, until all ranks have finished
  /// with the line and the place in the eager ring that it will use. One way: who has a payload waits for nobody's, and
  /// `bytes` are those of the largest on any rank. `ahead`: by how many calls this rank may be ahead of others at most.
  [[gnu::always_inline]] void begin(std::uint64_t signature, std::size_t bytes, bool isOneWay = false,
                                    std::uint32_t ahead = Segment::callDepth) {
    isOneWay_ = isOneWay;
    isNoted_ = isOneWay && bytes <= notePayload;
    const std::uint32_t before = history();
    ++sequence_;
    signature_ = signature;
    history() = extendHistory(before, signature);
    // The line was last used `callDepth` calls ago.
    const std::uint32_t placed = posts_.place(sequence_, bytes <= linePayload ? 0 : bytes),
                        allowed = sequence_ - ahead + 1;
    const std::uint32_t needed = hasReached(placed, allowed) ? placed : allowed;
    if (!hasReached(confirmed_, needed)) confirm(needed);
    CallLine& line = segment_.callLine(rank_, sequence_);
    line.signature.store(signature, std::memory_order_release);
    line.history.store(history(), std::memory_order_release);
  }
  /// Where this rank's payload goes: into the note or the line if it fits, else into the eager ring, which is then
  /// noted in the last bytes of the line's.
  std::byte* payload(std::size_t bytes) const noexcept {
    if (isNoted_) return segment_.callNote(rank_, sequence_).payload;
    std::byte* const line = segment_.callLine(rank_, sequence_).payload;
    if (bytes <= linePayload) return line;
    const auto offset = static_cast<EagerOffset>(posts_.offset(sequence_));
    std::memcpy(line + lineBesideEager, &offset, sizeof offset);
    return segment_.eagerRing(rank_) + offset;
  }
  /// Shows the line to the others, and the note.
  void post() noexcept {
    CallNote& note = segment_.callNote(rank_, sequence_);
    note.history = history();
    // Who waits for a note in a call that has none waits in vain: its own call is another. It need not be woken at
    // once.
    if (!isNoted_) note.sequence.store(sequence_, std::memory_order_release);
    waiter_->publish(segment_.callLine(rank_, sequence_).sequence, sequence_);
    if (isNoted_) waiter_->publish(note.sequence, sequence_);
  }
  /// Waits for `rank`'s line of this call and compares signatures. Throws taccInvalidUsage with both calls.
  void await(int rank) {
    if (isNoted_) {
      CallNote& note = segment_.callNote(rank, sequence_);
      waiter_->wait(note.sequence, sequence_, rank);
      __builtin_prefetch(&segment_.callNote(rank, sequence_ + 1));
      if (note.history == history()) return;  // else the lines tell what differs
    }
    CallLine& line = segment_.callLine(rank, sequence_);
    waiter_->wait(line.sequence, sequence_, rank);
    // A rank that waits for nobody has often posted the next call too.
    if (isOneWay_) __builtin_prefetch(&segment_.callLine(rank, sequence_ + 1));
    const std::uint64_t theirs = line.signature.load(std::memory_order_relaxed);
    if (theirs != signature_) failMismatch(rank, sequence_, signature_, theirs);
    if (line.history.load(std::memory_order_relaxed) != history()) failHistory(rank);
  }
  void awaitAll();
  /// Compares this rank's call, once it is posted, with those of the ranks that have posted theirs; waits for nobody.
  /// Throws taccInvalidUsage with both calls. Cost: a look at each rank's line.
  void compareSeen() const;
  /// The payload of a rank that was awaited, of the same `bytes` that it was posted with.
  const std::byte* payloadOf(int rank, std::size_t bytes) const noexcept {
    if (isNoted_) return segment_.callNote(rank, sequence_).payload;
    const std::byte* const line = segment_.callLine(rank, sequence_).payload;
    if (bytes <= linePayload) return line;
    EagerOffset offset;
    std::memcpy(&offset, line + lineBesideEager, sizeof offset);
    // What stands in shared memory is not believed.
    return segment_.eagerRing(rank) + (offset < segment_.eagerRingBytes() ? offset : 0);
  }

  std::uint32_t sequence() const noexcept { return sequence_; }
  /// "allreduce(count 5, float, sum), call 12".
  std::string describe() const;

 private:
  /// The digest of a rank's calls with one more.
  static std::uint32_t extendHistory(std::uint32_t history, std::uint64_t signature) noexcept {
    constexpr std::uint64_t odd = 0x9E37'79B9'7F4A'7C15ULL;  // 2^64 / golden ratio: spreads every bit upwards
    return static_cast<std::uint32_t>((history * odd ^ signature) * odd >> 32);
  }
  /// Waits until all ranks are known to have posted call `needed`, or a later one.
  void confirm(std::uint32_t needed);
  std::uint32_t& history() noexcept { return historyOf(sequence_); }
  std::uint32_t& historyOf(std::uint32_t call) noexcept { return histories_[call % Segment::callDepth]; }
  std::uint32_t historyOf(std::uint32_t call) const noexcept { return histories_[call % Segment::callDepth]; }
  /// Whether `rank`, which has posted `call`, may have begun to write its line for a later one.
  bool mayBeRewritten(int rank, std::uint32_t call) const noexcept {
    const std::uint32_t last = call + Segment::callDepth - 1;
    return waiter_->sees(segment_.callLine(rank, last).sequence, last);
  }
  /// In begin(): throws unless `rank`, which has posted `call`, has the same calls behind it as this rank.
  void compareHistories(int rank, std::uint32_t call);
  [[noreturn]] void failHistory(int rank) const;
  [[noreturn]] void failMismatch(int rank, std::uint32_t call, std::uint64_t mine, std::uint64_t theirs) const;

  Segment segment_;
  int rank_;
  int ranks_;
  Waiting* waiter_;
  std::uint32_t sequence_;   // of the last call that was begun
  std::uint32_t confirmed_;  // all ranks are known to have posted this call
  std::uint64_t signature_ = 0;
  bool isOneWay_ = false;                                      // as begin() was told
  bool isNoted_ = false;                                       // the payloads of this call are in the notes
  std::array<std::uint32_t, Segment::callDepth> histories_{};  // of the last calls, as in the lines
  PostRing<Segment::callDepth> posts_;
};

using CallExchange = BasicCallExchange<NodeSegment, Waiter>;
extern template class BasicCallExchange<NodeSegment, Waiter>;

}  // namespace tacc

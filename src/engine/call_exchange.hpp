// The opening of every call: each rank posts its line (number, signature, 48 bytes), and sees those of the others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "transports/node_segment.hpp"
#include "transports/waiter.hpp"

namespace tacc {

class CallExchange {
 public:
  CallExchange(const NodeSegment& segment, int rank, Waiter& waiter)
      : segment_(segment), rank_(rank), ranks_(segment.geometry().ranks), waiter_(waiter) {}

  /// Begins the next call, whose largest payload on any rank is `bytes`: waits, if need be, until all ranks have
  /// finished with the line (and eager slot) that it will use. One way: who has a payload waits for nobody's.
  void begin(std::uint64_t signature, std::size_t bytes, bool isOneWay = false);
  /// Where this rank's payload goes: into the note or the line if it fits, else into the eager slot.
  std::byte* payload(std::size_t bytes) const noexcept { return placeOf(rank_, bytes); }
  /// Shows the line to the others, and the note.
  void post() noexcept {
    CallNote& note = segment_.callNote(rank_, sequence_);
    note.history = history();
    // Who waits for a note in a call that has none waits in vain: its own call is another. It need not be woken at
    // once.
    if (!isNoted_) note.sequence.store(sequence_, std::memory_order_release);
    waiter_.publish(segment_.callLine(rank_, sequence_).sequence, sequence_);
    if (isNoted_) waiter_.publish(note.sequence, sequence_);
  }
  /// Waits for `rank`'s line of this call and compares signatures. Throws taccInvalidUsage with both calls.
  void await(int rank) {
    if (isNoted_) {
      CallNote& note = segment_.callNote(rank, sequence_);
      waiter_.wait(note.sequence, sequence_, rank);
      if (note.history == history()) return;  // else the lines tell what differs
    }
    CallLine& line = segment_.callLine(rank, sequence_);
    waiter_.wait(line.sequence, sequence_, rank);
    if (line.signature != signature_) failMismatch(rank, sequence_, signature_, line.signature);
    if (line.history != history()) failHistory(rank);
  }
  void awaitAll();
  /// The payload of a rank that was awaited, of the same `bytes` that it was posted with.
  const std::byte* payloadOf(int rank, std::size_t bytes) const noexcept { return placeOf(rank, bytes); }

  std::uint32_t sequence() const noexcept { return sequence_; }
  /// "allreduce(count 5, float, sum), call 12".
  std::string describe() const;

 private:
  std::byte* placeOf(int rank, std::size_t bytes) const noexcept {
    if (isNoted_) return segment_.callNote(rank, sequence_).payload;
    return bytes <= linePayload ? segment_.callLine(rank, sequence_).payload : segment_.eager(rank, sequence_);
  }
  std::uint32_t& history() noexcept { return histories_[sequence_ % callSlots]; }
  [[noreturn]] void failHistory(int rank) const;
  [[noreturn]] void failMismatch(int rank, std::uint32_t call, std::uint64_t mine, std::uint64_t theirs) const;

  NodeSegment segment_;
  int rank_;
  int ranks_;
  Waiter& waiter_;
  std::uint32_t sequence_ = 0;
  std::uint32_t confirmed_ = 0;  // all ranks are known to have posted this call
  std::uint64_t signature_ = 0;
  bool isNoted_ = false;                              // the payloads of this call are in the notes
  std::array<std::uint32_t, callSlots> histories_{};  // of the last calls, as in the lines
};

}  // namespace tacc

// What CallExchange does when it has to look at several ranks, or has found a mismatch; included where it is
// instantiated.
#pragma once

#include "core/error.hpp"
#include "engine/shm/call_exchange.hpp"
#include "engine/signature.hpp"

namespace tacc {

// A rank that would have to wait looks half the way further on: so a root that only sends looks at the others' lines
// rarely.
template <class Segment, class Waiting>
void BasicCallExchange<Segment, Waiting>::confirm(std::uint32_t needed) {
  const std::uint32_t target = needed + (sequence_ - needed) / 2;
  for (int rank = 0; rank < ranks_; ++rank)
    if (rank != rank_) {
      CallLine& line = segment_.callLine(rank, target);
      waiter_->wait(line.sequence, target, rank);
      if (line.history.load(std::memory_order_acquire) != historyOf(target)) compareHistories(rank, target);
    }
  confirmed_ = target;
}

template <class Segment, class Waiting>
void BasicCallExchange<Segment, Waiting>::awaitAll() {
  for (int rank = 0; rank < ranks_; ++rank)
    if (rank != rank_) await(rank);
  confirmed_ = sequence_;
}

template <class Segment, class Waiting>
void BasicCallExchange<Segment, Waiting>::compareSeen() const {
  // Until this rank posts the next line, the others' lines of this call stay once they are posted (1).
  if (segment_.callLine(rank_, sequence_).sequence.load(std::memory_order_relaxed) != sequence_) return;
  for (int rank = 0; rank < ranks_; ++rank) {
    const CallLine& line = segment_.callLine(rank, sequence_);
    if (rank == rank_ || !waiter_->sees(line.sequence, sequence_)) continue;
    const std::uint64_t theirs = line.signature.load(std::memory_order_relaxed);
    if (theirs != signature_) failMismatch(rank, sequence_, signature_, theirs);
    if (line.history.load(std::memory_order_relaxed) != historyOf(sequence_)) failHistory(rank);
  }
}

template <class Segment, class Waiting>
void BasicCallExchange<Segment, Waiting>::compareHistories(int rank, std::uint32_t call) {
  // Either the line is still that of `call`, and the ranks differ; or the other rank is almost a ring ahead. Then it
  // has posted the call before this one, and that line stays (2): it tells the same of more calls.
  if (mayBeRewritten(rank, call)) {
    const std::uint32_t last = sequence_ - 1;
    if (segment_.callLine(rank, last).history.load(std::memory_order_acquire) == historyOf(last)) return;
  }
  failHistory(rank);
}

template <class Segment, class Waiting>
std::string BasicCallExchange<Segment, Waiting>::describe() const {
  return fmt::format("{}, call {}", describeSignature(signature_), sequence_);
}

template <class Segment, class Waiting>
void BasicCallExchange<Segment, Waiting>::failMismatch(int rank, std::uint32_t call, std::uint64_t mine,
                                                       std::uint64_t theirs) const {
  fail(taccInvalidUsage,
       "call {} is {} on rank {} but {} on rank {}; all ranks must make the same calls in the same order", call,
       describeSignature(mine), waiter_->nameOf(rank_), describeSignature(theirs), waiter_->nameOf(rank));
}

template <class Segment, class Waiting>
void BasicCallExchange<Segment, Waiting>::failHistory(int rank) const {
  // The call that differed is one in which neither rank waited for the other; its lines are probably still there.
  for (std::uint32_t call = sequence_ - Segment::callDepth + 1; call != sequence_; ++call) {
    const CallLine& line = segment_.callLine(rank, call);
    if (segment_.callLine(rank_, call).sequence.load(std::memory_order_relaxed) != call) continue;
    if (line.sequence.load(std::memory_order_acquire) != call) continue;
    const std::uint64_t mine = segment_.callLine(rank_, call).signature.load(std::memory_order_relaxed);
    const std::uint64_t theirs = line.signature.load(std::memory_order_acquire);
    if (mine != theirs && !mayBeRewritten(rank, call)) failMismatch(rank, call, mine, theirs);
  }
  fail(taccInvalidUsage,
       "ranks {} and {} made different calls before call {} ({}), too far back to say which; all ranks must make the "
       "same calls in the same order",
       waiter_->nameOf(rank_), waiter_->nameOf(rank), sequence_, describeSignature(signature_));
}

}  // namespace tacc

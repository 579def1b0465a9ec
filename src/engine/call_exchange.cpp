#include "engine/call_exchange.hpp"

#include "base/error.hpp"
#include "engine/signature.hpp"

namespace tacc {
namespace {

std::uint32_t extendHistory(std::uint32_t history, std::uint64_t signature) noexcept {
  constexpr std::uint64_t odd = 0x9E37'79B9'7F4A'7C15ULL;  // 2^64 / golden ratio: spreads every bit upwards
  return static_cast<std::uint32_t>((history * odd ^ signature) * odd >> 32);
}

}  // namespace

void CallExchange::begin(std::uint64_t signature, std::size_t bytes, bool isOneWay) {
  isNoted_ = isOneWay && bytes <= notePayload;
  const std::uint32_t before = history();
  ++sequence_;
  signature_ = signature;
  history() = extendHistory(before, signature);
  // A slot was last used `slots` calls ago; whoever has posted the call after that one has finished with it. A rank
  // that would have to wait looks half the ring further on: so a root that only sends looks at the others' lines
  // rarely.
  const std::uint32_t slots = bytes <= linePayload ? callSlots : eagerSlots;
  if (!hasReached(confirmed_, sequence_ - slots + 1)) {
    const std::uint32_t target = sequence_ - slots / 2;
    for (int rank = 0; rank < ranks_; ++rank)
      if (rank != rank_) {
        waiter_.wait(segment_.callLine(rank, target).sequence, target, rank);
        if (segment_.callLine(rank, target).history != histories_[target % callSlots]) failHistory(rank);
      }
    confirmed_ = target;
  }
  CallLine& line = segment_.callLine(rank_, sequence_);
  line.signature = signature;
  line.history = history();
}

void CallExchange::awaitAll() {
  for (int rank = 0; rank < ranks_; ++rank)
    if (rank != rank_) await(rank);
  confirmed_ = sequence_;
}

std::string CallExchange::describe() const {
  return fmt::format("{}, call {}", describeSignature(signature_), sequence_);
}

void CallExchange::failMismatch(int rank, std::uint32_t call, std::uint64_t mine, std::uint64_t theirs) const {
  fail(taccInvalidUsage,
       "call {} is {} on rank {} but {} on rank {}; all ranks must make the same calls in the same order", call,
       describeSignature(mine), waiter_.nameOf(rank_), describeSignature(theirs), waiter_.nameOf(rank));
}

void CallExchange::failHistory(int rank) const {
  // The call that differed is one in which neither rank waited for the other; its lines are probably still there.
  for (std::uint32_t call = sequence_ - callSlots + 1; call != sequence_; ++call) {
    const CallLine& mine = segment_.callLine(rank_, call);
    const CallLine& theirs = segment_.callLine(rank, call);
    if (mine.sequence.load(std::memory_order_acquire) == call &&
        theirs.sequence.load(std::memory_order_acquire) == call && mine.signature != theirs.signature)
      failMismatch(rank, call, mine.signature, theirs.signature);
  }
  fail(taccInvalidUsage,
       "ranks {} and {} made different calls more than {} calls before call {} ({}); all ranks must make the same "
       "calls in "
       "the same order",
       waiter_.nameOf(rank_), waiter_.nameOf(rank), callSlots, sequence_, describeSignature(signature_));
}

}  // namespace tacc

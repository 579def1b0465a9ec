#include "engine/call_exchange.hpp"

#include "base/error.hpp"
#include "engine/signature.hpp"

namespace tacc {

void CallExchange::begin(std::uint64_t signature) {
  ++sequence_;
  signature_ = signature;
  // The slot was last used `callSlots` calls ago; whoever has posted the call after that one has finished with it.
  const std::uint32_t needed = sequence_ - callSlots + 1;
  if (!hasReached(confirmed_, needed)) {
    for (int rank = 0; rank < ranks_; ++rank)
      if (rank != rank_) waiter_.wait(segment_.callLine(rank, needed).sequence, needed, rank);
    confirmed_ = needed;
  }
  segment_.callLine(rank_, sequence_).signature = signature;
}

void CallExchange::awaitAll() {
  for (int rank = 0; rank < ranks_; ++rank)
    if (rank != rank_) await(rank);
  confirmed_ = sequence_;
}

std::string CallExchange::describe() const {
  return fmt::format("{}, call {}", describeSignature(signature_), sequence_);
}

void CallExchange::failMismatch(int rank, std::uint64_t theirs) const {
  fail(taccInvalidUsage,
       "call {} is {} on rank {} but {} on rank {}; all ranks must make the same calls in the same order", sequence_,
       describeSignature(signature_), rank_, describeSignature(theirs), rank);
}

}  // namespace tacc

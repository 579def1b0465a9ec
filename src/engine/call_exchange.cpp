#include "engine/call_exchange.hpp"

#include "base/error.hpp"
#include "engine/signature.hpp"

namespace tacc {

void CallExchange::begin(std::uint64_t signature, std::size_t bytes) {
  ++sequence_;
  signature_ = signature;
  // A slot was last used `slots` calls ago; whoever has posted the call after that one has finished with it. A rank that
  // would have to wait looks half the ring further on: so a root that only sends looks at the others' lines rarely.
  const std::uint32_t slots = bytes <= linePayload ? callSlots : eagerSlots;
  if (!hasReached(confirmed_, sequence_ - slots + 1)) {
    const std::uint32_t target = sequence_ - slots / 2;
    for (int rank = 0; rank < ranks_; ++rank)
      if (rank != rank_) waiter_.wait(segment_.callLine(rank, target).sequence, target, rank);
    confirmed_ = target;
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

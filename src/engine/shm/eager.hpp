// The way of small messages: every rank posts its whole input beside its call line, and takes what it needs from the
// others'. It is the direct exchange with the data inside the opening one: one cache line from each rank to each,
// and no more.
#pragma once

#include <cstddef>
#include <vector>

#include "algorithms/plan.hpp"
#include "compute/reduce/reduce.hpp"
#include "engine/shm/call_exchange.hpp"

namespace tacc {

struct EagerCall {
  Collective collective;
  const std::byte* send;
  std::byte* receive;
  std::size_t bytes;   // of `count` elements
  std::size_t posted;  // of the largest post, on any rank; 0 where there is no other rank
  std::size_t count;
  int root;
  ReduceKernel reduce;  // of reductions
  int divisor;
  bool stream;  // write the post non-temporally
};

/// What the largest post of this collective takes, on any rank: to be compared with the eager slot's size.
constexpr std::size_t eagerPostBytes(Collective collective, int ranks, std::size_t bytes) noexcept {
  const Holds holds = shapeOf(collective).send.holds;
  return holds == Holds::nothing ? 0 : holds == Holds::all ? bytes * static_cast<std::size_t>(ranks) : bytes;
}

class EagerPath {
 public:
  EagerPath(int rank, int ranks, CallExchange& exchange)
      : rank_(rank), ranks_(ranks), exchange_(exchange), sources_(static_cast<std::size_t>(ranks)) {}

  /// Runs the call to its end; exchange.begin() has been called.
  void run(const EagerCall& call);
  /// The same of a call whose posts fit a line, from its begin() on.
  void runShort(const EagerCall& call, std::uint64_t signature);

 private:
  /// Puts the bytes from `begin` to `end` of this rank's input into its payload, of `call.posted` bytes.
  void fill(const EagerCall& call, std::size_t begin, std::size_t end);
  /// The contributions of ranks 0 to `ranks` - 1.
  void reduceAll(const EagerCall& call, std::size_t offset, int ranks);
  void collectAll(const EagerCall& call, std::size_t offset);

  template <Collective c>
  void runAs(const EagerCall& call);
  template <Collective c>
  void runShortAs(const EagerCall& call, std::uint64_t signature);

  int rank_;
  int ranks_;
  CallExchange& exchange_;
  std::vector<const void*> sources_;
};

}  // namespace tacc

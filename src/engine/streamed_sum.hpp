// Sums of numbers that are made while the call runs, and used as they come: an element-wise update with a sum over the
// ranks in its middle, in one pass over memory.
#pragma once

#include <cstddef>
#include <functional>

namespace tacc {

/// What Call::streamed points to. The call is an allreduce with taccSum that has no buffers: every rank makes its
/// numbers part by part, and is given the sums part by part, while both are in the cache.
struct StreamedSum {
  int code = 0;  // of engine/signature.hpp
  /// Writes this rank's numbers [first, first + count), of the call's type, to `to`. Once for every element, in order.
  std::function<void(std::size_t first, std::size_t count, void* to)> make;
  /// Takes the sums of [first, first + count), equal on all ranks; they are gone afterwards. Once for every element, in
  /// order, each after it was made.
  std::function<void(std::size_t first, std::size_t count, const void* sums)> take;
};

}  // namespace tacc

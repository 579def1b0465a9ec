// An update of all ranks' numbers, of each part by the rank that it belongs to: for ranks of one host that reach each
// other's memory. Every number is read and written once, by one rank, and ranks wait for each other at the ends alone.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace tacc {

struct DirectUpdate {
  int code = 0;              // of engine/signature.hpp
  float* numbers = nullptr;  // this rank's, that are made new
  float* companions =
      nullptr;            // this rank's too, as many: read, or made new with them; null on all ranks: there are none
  std::size_t count = 0;  // of each
  /// Makes elements [first, first + count) new. `numbers[r]`, `companions[r]`: those of rank r, from element 0 on.
  std::function<void(std::size_t first, std::size_t count, float* const* numbers, float* const* companions)> update;
};

/// The elements [begin, end) that belong to `rank`.
std::pair<std::size_t, std::size_t> ownPart(std::size_t count, int ranks, int rank) noexcept;

}  // namespace tacc

// Sets of numbers that can be joined.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace tacc {

/// Each number from 0 to size - 1 in a separate set, at first.
class Sets {
 public:
  explicit Sets(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0u); }
  /// A member that stands for the whole set. Nearly constant time.
  std::uint32_t find(std::uint32_t one) {
    while (parent_[one] != one) one = parent_[one] = parent_[parent_[one]];
    return one;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<std::uint32_t> parent_;
};

}  // namespace tacc

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tacc/tacc.h"

namespace tacc::bench {

/// The inputs of all ranks and the results that follow from them. Rank r's input at index i is a small whole number
/// that depends on r and on i modulo a prime period, so that sums are exact in every type and an element that comes
/// from the wrong rank or the wrong place is seen. Because of the period, filling and checking run at memory speed
/// whatever the number of ranks.
class Pattern {
 public:
  /// The sources that stand for the reduction over all ranks, over the ranks up to `self`, and over those before it.
  static constexpr int reduced = -1, upToSelf = -2, beforeSelf = -3;
  /// A prime: no power-of-two displacement is a multiple of it.
  static constexpr size_t period = 8191;

  /// `op`: the reduction, or nothing for collectives that only move data. `self`: the rank that checks; rank 0 has
  /// nobody before it. Costs (ranks + 3) * period elements.
  Pattern(taccDataType_t type, std::optional<taccRedOp_t> op, int ranks, int self = 0);

  /// Writes elements firstIndex, firstIndex + 1, ... of `source`'s values.
  void fill(void* at, size_t count, size_t firstIndex, int source) const;

  /// How many of the elements at `at` are not those of `source`. An average in a floating type may be off by two units
  /// in the last place, because multiplying by 1/ranks is as good as dividing.
  int64_t countWrong(const void* at, size_t count, size_t firstIndex, int source) const;

 private:
  double input(int rank, size_t position) const;
  /// Over ranks 0 to end - 1.
  double reduce(size_t position, int end) const;
  const char* table(int source) const;
  int64_t countWrongElements(const char* actual, const char* expected, size_t count) const;

  taccDataType_t type_;
  std::optional<taccRedOp_t> op_;
  int ranks_;
  size_t elementSize_;
  /// Inputs are below this number.
  unsigned modulus_;
  /// One period of each rank's values, then one of each reduction's.
  std::vector<char> tables_;
};

}  // namespace tacc::bench

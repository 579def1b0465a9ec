// How sums of the gradient of grouped weights come to where they belong.
#pragma once

#include "compute/conv/algorithms/grouped.hpp"
#include "compute/conv/weights.hpp"

namespace tacc::conv {

/// Sums of a block of output channels, of a line of the kernel: rows of 16, `steps` of them for each tap.
struct GroupSums {
  const float* rows;
  std::ptrdiff_t steps;
};

/// Keeps the cut, which must outlive it, and tables of where weights are. Thread safe: nothing in it changes.
class GroupDelivery {
 public:
  GroupDelivery(const Description& d, const GroupCut& cut) : description_(d), cut_(cut), weights_(d, cut, false) {}

  /// Before the first sums come to `result`: zeros where no row brings them.
  void begin(float* result) const;
  /// Sums of block `ofSpan` of a span, of line `r` of the kernel: to what is there, or in its place. Rows of 16 weights
  /// that groups do not fill are filled with zeros.
  void deliverBlock(GroupSums sums, std::size_t span, int ofSpan, int r, float* result) const;

 private:
  const Shape& shape() const { return description_.shape; }
  void deliverApart(GroupSums sums, std::size_t span, int ofSpan, int r, float* result) const;
  void deliverTaps(const float* from, std::ptrdiff_t nextTap, GroupWeights::Place place, int r, float* result) const;
  void deliverLanes(GroupSums sums, std::size_t span, int ofSpan, int r, float* result) const;
  void deliverRows(const float* from, const WeightBlock& place, int lanes, int filling, float* to) const;

  Description description_;
  const GroupCut& cut_;
  GroupWeights weights_;
};

}  // namespace tacc::conv

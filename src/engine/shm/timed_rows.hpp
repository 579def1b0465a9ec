// Rows of calls that went one way whose time is not known of all ranks yet. Who gives is ahead of who takes, by as many
// calls as there are lines: so it waits for the others' times while it makes the next rows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "engine/shm/post_policy.hpp"
#include "transports/shm/node_segment.hpp"

namespace tacc {

class TimedRows {
 public:
  /// The number of the row that is timed next: the same on all ranks.
  std::uint32_t next() const noexcept { return end_; }
  /// A row is over here. `lastCall`: the number of its last call. What has not been judged for `postRows` rows never
  /// is.
  void add(const PostPolicyTuner::Choice& choice, std::uint32_t lastCall) noexcept {
    rows_[end_ % postRows] = {choice, lastCall};
    ++end_;
    if (end_ - begin_ > postRows) begin_ = end_ - postRows;
  }
  /// Records what is known. `slowest(row, lastCall)`: the seconds of the slowest rank, if all have told theirs; 0 where
  /// they are none.
  template <class Slowest>
  void judge(const Slowest& slowest) noexcept {
    for (; begin_ != end_; ++begin_) {
      const Row& row = rows_[begin_ % postRows];
      const std::optional<float> seconds = slowest(begin_, row.lastCall);
      if (!seconds) return;
      if (*seconds > 0) PostPolicyTuner::record(row.choice, static_cast<double>(*seconds));
    }
  }

 private:
  struct Row {
    PostPolicyTuner::Choice choice;
    std::uint32_t lastCall;
  };
  std::array<Row, postRows> rows_{};
  std::uint32_t begin_ = 0, end_ = 0;  // of those that are not judged, counted on and on
};

}  // namespace tacc

// How fast a long message comes in once links hold it back: token buckets and shallow queues let its first bytes pass
// at once, and prices of calls that keep links busy all the time would be too low by their share.
#pragma once

#include <algorithm>

namespace tacc {

/// The line through the moments at which the pieces of a message were here, by least squares of the moments. The first
/// pieces are left out, which may have come faster, and the last one: where the network carries lumps as long as a
/// piece, its end comes right behind the piece before.
class SteadyRate {
 public:
  /// Of a message of `pieces`, the first `unhindered` of which may come faster than the others.
  SteadyRate(double pieces, double unhindered) : pieces_(pieces), unhindered_(std::min(unhindered, pieces / 2)) {}

  /// So many pieces are here, so many seconds after the first was asked for; in the order of time, all of them at last.
  void saw(double pieces, double seconds) {
    took_ = seconds;
    if (pieces == seen_ || pieces < unhindered_ || pieces >= pieces_) return;
    seen_ = pieces;
    ++looks_;
    sum_ += pieces;
    sumSeconds_ += seconds;
    squares_ += pieces * pieces;
    products_ += pieces * seconds;
  }

  /// Pieces a second, never more than of all together: who looks late finds much that waited, and what then follows at
  /// once was not that fast.
  double perSecond() const {
    constexpr double shortest = 1e-9;
    const double whole = pieces_ / std::max(took_, shortest);
    const double spread = looks_ * squares_ - sum_ * sum_, secondsOfSpread = looks_ * products_ - sum_ * sumSeconds_;
    return looks_ < 2 || secondsOfSpread <= 0 ? whole : std::min(whole, spread / secondsOfSpread);
  }

 private:
  double pieces_, unhindered_;
  double seen_ = -1, looks_ = 0;
  double sum_ = 0, sumSeconds_ = 0, squares_ = 0, products_ = 0;  // over the looks that count
  double took_ = 0;
};

}  // namespace tacc

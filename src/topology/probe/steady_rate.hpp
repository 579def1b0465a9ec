// How fast a long message comes in once links hold it back: token buckets and shallow queues let its first bytes pass
// at once, and prices of calls that keep links busy all the time would be too low by their share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tacc {

/// The median of what each two pieces of a message tell by the moments at which they were here (Theil and Sen's line),
/// which does not care for some that were looked at late. The first pieces are left out, which may have come faster,
/// and the last one: where the network carries lumps as long as a piece, its end comes right behind the piece before.
class SteadyRate {
 public:
  /// Of a message of `pieces`, the first `unhindered` of which may come faster than the others.
  SteadyRate(std::size_t pieces, std::size_t unhindered)
      : pieces_(pieces), unhindered_(std::min(unhindered, pieces / 2)) {}

  /// `pieces` have arrived `seconds` after the first was asked for; in the order of time, all of them at last.
  void saw(std::size_t pieces, double seconds) {
    took_ = seconds;
    if (pieces < unhindered_ || pieces >= pieces_ || (!looks_.empty() && looks_.back().pieces == pieces)) return;
    looks_.push_back({pieces, seconds});
  }

  /// Pieces a second, never more than of all together: who looks late finds much that waited, and what then follows at
  /// once was not that fast.
  double perSecond() const {
    constexpr double shortest = 1e-9;
    const double whole = static_cast<double>(pieces_) / std::max(took_, shortest);
    std::vector<double> seconds;  // of a piece
    for (std::size_t i = 0; i < looks_.size(); ++i)
      for (std::size_t j = i + 1; j < looks_.size(); ++j)
        seconds.push_back((looks_[j].seconds - looks_[i].seconds) /
                          static_cast<double>(looks_[j].pieces - looks_[i].pieces));
    if (seconds.empty()) return whole;
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::ranges::nth_element(seconds, middle);
    return std::min(whole, 1 / std::max(*middle, shortest));
  }

 private:
  struct Look {
    std::size_t pieces;
    double seconds;
  };

  std::size_t pieces_, unhindered_;
  std::vector<Look> looks_;
  double took_ = 0;
};

}  // namespace tacc

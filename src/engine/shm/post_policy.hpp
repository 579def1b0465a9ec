// How a rank writes posts that others read in a call that goes one way: into its cache, or non-temporally.
//
// Stores into its cache are the fastest while the reader is near and the post is short; where cores are far apart, or
// posts long, it can be the other way round. Who writes does not feel what the reader pays, and a rank that is ahead of
// the others not even what it pays itself. So all ranks take the time of the same rows of calls, and the slowest one's
// counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "core/collective.hpp"

namespace tacc {

class PostPolicyTuner {
  struct Class;

 public:
  /// `ranks`: who looks at the times of how many; where they are more, rows are longer.
  explicit PostPolicyTuner(int ranks) : row_(ranks <= 16 ? shortestRow : 2 * static_cast<std::uint32_t>(ranks)) {}

  struct Choice {
    bool stream;        // non-temporally
    bool isFirst;       // time is taken from before this call,
    bool isLast;        // to behind this one; of the same calls on all ranks
    Class* of;          // lives as long as this
    std::size_t bytes;  // of the calls that are timed
  };
  /// For the next call, whose largest post has `bytes`.
  Choice choose(Collective collective, std::size_t bytes);
  /// What the calls up to a last one took on the slowest rank.
  static void record(const Choice& choice, double seconds) noexcept;

 private:
  static constexpr std::uint32_t shortestRow = 32;
  static constexpr std::uint32_t settling = 8;  // calls of a row that are not timed: the other way's are under way

  struct Class {
    std::array<float, 2> estimate{};  // seconds per byte, of either way; 0: not tried
    std::uint32_t calls = 0;          // of the row
    std::uint32_t rows = 0;           // that are over
    bool streams = false;             // what serves
    bool isTrying = false;            // the other way, in this row
    bool isBroken = false;            // other calls came between those of this row
  };
  void beginRow(Class& c) const noexcept;

  std::uint32_t row_;
  std::unordered_map<std::uint32_t, Class> classes_;
  std::uint32_t lastKey_ = 0;  // of the last call: the next one is probably alike
  Class* last_ = nullptr;
};

}  // namespace tacc

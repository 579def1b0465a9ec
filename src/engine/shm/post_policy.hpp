// How a rank writes posts that others read in a call that goes one way: into its cache, or non-temporally.
//
// Stores into its cache are the fastest while the reader is near and the post is short; where cores are far apart, or
// posts long, it is the other way round. Who writes does not feel what the reader pays. So all ranks take the time of
// the same calls, and the slowest one's counts.
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
  /// `ranks`: who looks at the times of how many; where they are more, fewer calls are timed.
  explicit PostPolicyTuner(int ranks) : period_(ranks <= 4 ? 8 : 2 * static_cast<std::uint32_t>(ranks)) {}

  struct Choice {
    bool stream;   // non-temporally
    bool isTimed;  // the same on all ranks
    Class* of;     // lives as long as this
    std::size_t bytes;
  };
  /// For the next call, whose largest post has `bytes`.
  Choice choose(Collective collective, std::size_t bytes);
  /// What a call took on the slowest rank.
  static void record(const Choice& choice, double seconds) noexcept;

 private:
  struct Class {
    std::array<float, 2> estimate{};  // seconds per byte, of either way; 0: not tried
    std::uint32_t calls = 0;
    bool streams = false;  // what serves
  };

  std::uint32_t period_;
  std::unordered_map<std::uint32_t, Class> classes_;
  std::uint32_t lastKey_ = 0;  // of the last call: the next one is probably alike
  Class* last_ = nullptr;
};

}  // namespace tacc

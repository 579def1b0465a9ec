// How much of the next copy its reader takes at once: by what the owners of such copies made of them lately.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/collective.hpp"
#include "core/index.hpp"

namespace tacc {

/// Of copies of one kind. Each call of the kernel costs about 2 us beside the bytes that it moves, so a reader whose
/// owners have work of their own reads a copy in one, and leaves a part only now and then, to see whether that is so.
class CopyHabit {
 public:
  /// Of `pieces` that nobody has claimed yet, those that the reader claims.
  std::uint32_t firstClaim(std::uint32_t pieces) const noexcept {
    if (alone_ < settled) return half(pieces);
    return alone_ < trial || pieces < 2 ? pieces : pieces - std::max(1U, pieces / partLeft);
  }
  /// Of a copy of `pieces`, of which the reader claimed so many at first and the owner made `others`. Copies may be
  /// claimed side by side and recorded one after the other.
  void record(std::uint32_t pieces, std::uint32_t claimed, std::uint32_t others) noexcept {
    const bool wasWhole = claimed == pieces, wasShared = claimed == half(pieces);
    const std::uint32_t least = std::max(1U, wasShared ? pieces / partLeft : pieces / partLeft / 2);
    if (!wasWhole && others >= least)
      alone_ = 0;
    else if (!wasWhole && !wasShared)
      alone_ = settled;
    else if (alone_ < trial)
      ++alone_;
  }

 private:
  static constexpr std::uint32_t partLeft = 8;        // one in so many
  static constexpr std::uint8_t settled = 2;          // copies without help in a row, after which they are read whole
  static constexpr std::uint8_t trial = settled + 7;  // and after so many of these a part is left

  static constexpr std::uint32_t half(std::uint32_t pieces) noexcept { return (pieces + 1) / 2; }

  /// Copies in a row of which the owner made little; those of the trial begin the row that follows it.
  std::uint8_t alone_ = 0;
};

/// All of a rank's, by collective and length.
class CopyHabits {
 public:
  CopyHabit& of(Collective collective, std::size_t bytes) noexcept {
    return habits_[at(static_cast<int>(collective))][static_cast<std::size_t>(std::bit_width(bytes))];
  }

 private:
  std::array<std::array<CopyHabit, 65>, collectiveCount + 1> habits_{};
};

}  // namespace tacc

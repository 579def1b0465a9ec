// How much of the next copy its reader takes at once: by what the owners of such copies made of them lately.
#pragma once

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
    if (isShared()) return (pieces + 1) / 2;
    return isTrying() ? pieces - pieces / partLeft : pieces;
  }
  /// Of a copy of `pieces` whose owner made `others`.
  void record(std::uint32_t pieces, std::uint32_t others) noexcept {
    const std::uint32_t least = isShared() ? pieces / partLeft : pieces / partLeft / 2;
    if (!isShared() && !isTrying()) {
      ++alone_;
    } else if (others > 0 && others >= least) {
      alone_ = 0;
    } else {
      alone_ = isShared() ? static_cast<std::uint8_t>(alone_ + 1) : settled;
    }
  }

 private:
  static constexpr std::uint32_t partLeft = 8;   // one in so many
  static constexpr std::uint8_t settled = 2;     // copies without help in a row
  static constexpr std::uint8_t untilTrial = 7;  // copies that are then read as a whole

  bool isShared() const noexcept { return alone_ < settled; }
  bool isTrying() const noexcept { return alone_ == settled + untilTrial; }

  std::uint8_t alone_ =
      0;  // copies in a row of which the owner made little, the last trial's counted as the first ones
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

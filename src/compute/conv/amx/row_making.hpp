// Rows of tiles made of pixels, unit after unit: of a pair of blocks of channels, of one group and phase; or of all of
// them, as runs say. In one go, or a few at a time while products are made.
#pragma once

#include <span>
#include <vector>

#include "compute/conv/amx/bf16x3_image.hpp"
#include "compute/conv/amx/bf16x3_jobs.hpp"

namespace tacc::conv {

/// What rows are made of, and where they go.
struct RowSource {
  const Bf16x3Kernels& kernels;
  const SplitSides& sides;
  const Bf16x3Image& image;
  int part;                        // of the image
  std::span<const Bf16x3Run> all;  // of all units, as one, where it is not empty; sources count from the image
  const std::byte* tensor;
  std::byte* to;
  std::ptrdiff_t rows;  // of a unit in memory
};

class RowMaking {
 public:
  explicit RowMaking(const RowSource& source);

  /// The next rows of one unit; those of the next one come with the next call.
  Bf16x3Work& work() {
    if (work_.at == work_.rows && unit_ < end_) {
      ++unit_;
      load();
    }
    return work_;
  }
  /// About.
  int rowsLeft() const { return rows_; }
  void count(int rows) { rows_ = rows_ > rows ? rows_ - rows : 0; }
  void finish() {
    while (unit_ < end_) source_.kernels.split(work(), static_cast<int>(source_.rows));
  }

 private:
  void load();

  RowSource source_;
  int unit_ = 0, end_;
  int rows_ = 0;
  Bf16x3Work work_;
};

/// Runs for RowSource::all, of some rows at a time.
using RunsOfStrips = std::vector<std::vector<Bf16x3Run>>;
/// Of a part of an image that has one phase: `rows` at a time, each in units `rows` apart.
RunsOfStrips runsOfStrips(const Bf16x3Image& image, int part, const SplitSides& sides, int rows);

}  // namespace tacc::conv

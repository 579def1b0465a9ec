// Products of matrices that lie in memory line by line, in strips of pixels:
//
//   result[row][pixel] = sum over values of weights[value][row] * read[value][pixel]
//
// Nothing is copied nor transposed, but for pixels behind the last whole vector where the result is added to. A tile of
// rows is computed for some strips, one after the other, before the next tile: so many lines on as few pages. What
// comes next is fetched, as hardware does not look ahead over lines that are far apart.
#pragma once

#include <cstddef>
#include <vector>

#include "compute/conv/kernels/kernels.hpp"
#include "compute/conv/kernels/plain_kernels.hpp"
#include "compute/conv/task_partition.hpp"

namespace tacc::conv {

class PlainStrips {
 public:
  /// Everything of a product, of the first pixel and row.
  struct Matrices {
    const float* read;
    std::ptrdiff_t readLine;  // from value to value, in floats
    const float* packed;      // pack()
    const float* bias;        // of rows, or null
    const float* addend;      // laid out as the result and may be it; or null
    float* result;
    std::ptrdiff_t resultLine;  // from row to row
    taccActivation_t activation;
    bool isNonTemporal;                             // the result, whose lines are aligned: the caller ends that
    std::ptrdiff_t firstRead = 0, firstResult = 0;  // the pixels that `read` and the result begin with
  };

  PlainStrips(const KernelSet& kernels, int values, int rows, std::ptrdiff_t pixels);

  std::size_t strips() const { return static_cast<std::size_t>((pixels_ + stripPixels() - 1) / stripPixels()); }
  std::ptrdiff_t stripPixels() const { return std::ptrdiff_t{blocks_} * plainBlock; }
  /// Strips that a tile goes through before the next one.
  std::ptrdiff_t stripsTogether() const;
  /// Of the rows. Those of one follow each other in the packed weights.
  std::size_t tiles() const { return tiles_.size(); }
  double cycles() const { return cycles_; }
  /// More of half vectors, of lines that are no whole ones of the cache: most of what is read of a line is in one more
  /// of these, and of many values the L1 cache keeps none of them for the next tile.
  double cutLineCycles() const;
  /// Pixels behind the last whole vector, of what is read and of results.
  std::size_t scratchFloats() const { return static_cast<std::size_t>(values_ + rows_) * plainBlock; }
  std::size_t packedFloats() const { return static_cast<std::size_t>(values_) * static_cast<std::size_t>(rows_); }

  /// weight(value, row), in the order of run().
  template <class Weight>
  void pack(float* packed, const Weight& weight) const {
    for (const TaskPart& tile : tiles_) {
      for (int value = 0; value < values_; ++value) {
        for (auto row = static_cast<int>(tile.from); row < static_cast<int>(tile.to); ++row) {
          *packed++ = weight(value, row);
        }
      }
    }
  }

  /// Some strips of some tiles: all tiles of a few strips before the next ones.
  void run(const Matrices& m, TaskPart strips, TaskPart tiles, float* scratch) const;

 private:
  double stripCycles(const KernelSet& kernels, int blocks) const;
  void runTile(const Matrices& m, std::size_t tile, int blocks, bool isFirst) const;

  const PlainKernels& kernels_;
  int values_, rows_;
  std::ptrdiff_t pixels_;
  int blocks_ = 0;               // of a strip
  std::vector<TaskPart> tiles_;  // of the rows
  double cycles_ = 0;            // of all
};

}  // namespace tacc::conv

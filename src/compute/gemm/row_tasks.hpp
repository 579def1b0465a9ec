// How C is cut into tasks. By rows alone, a task brings its own rows of A into its worker's memory, where
// they stay in the L2 cache; tasks that share rows, each of other columns, need copies of all of them before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "compute/conv/algorithms/direct_driver.hpp"
#include "compute/conv/shape.hpp"
#include "compute/conv/task_partition.hpp"

namespace tacc::gemm {

struct RowRange {
  int from, to;
  int count() const { return to - from; }
};

/// Immutable once made.
class RowTasks {
 public:
  /// Of `rows` rows, which are the pixels of `tiles`, or, without tiles, of a fixed number each.
  RowTasks(int rows, const conv::DirectDriver* tiles, int workers) : rows_(rows), tiles_(tiles) {
    if (tiles != nullptr) partition_.emplace(*tiles, 1, 1, rows, workers);
    for (std::size_t i = 0; areByRows() && i < count(); ++i) mostRows_ = std::max(mostRows_, range(i).count());
  }

  /// Of so many rows and panels of columns.
  RowTasks(int rows, int panels, int workers) : rows_(rows) {
    const int parts = static_cast<int>(partsOf(rows));
    if (parts < workers) panelParts_ = std::min(panels, conv::ceilDivide(workers, parts));
    panels_ = panels;
    mostRows_ = range(0).count();
  }

  std::size_t count() const {
    return partition_ ? partition_->tasks() : partsOf(rows_) * static_cast<std::size_t>(panelParts_);
  }
  bool areByRows() const { return partition_ ? partition_->isByTiles() && tiles_->areTilesAlike() : panelParts_ == 1; }
  /// Of the largest task by rows alone.
  int mostRows() const { return mostRows_; }
  /// Of a task by rows alone, or of panels.
  RowRange range(std::size_t index) const {
    if (!partition_) return part(rows_, index / static_cast<std::size_t>(panelParts_));
    const conv::TaskPart range = task(index).tiles;
    return {tiles_->firstPixel(range.from), tiles_->firstPixel(range.to)};
  }
  /// Of panels: [first, second).
  std::pair<int, int> panels(std::size_t index) const {
    const auto part = static_cast<int>(index % static_cast<std::size_t>(panelParts_));
    const auto begin = [&](std::int64_t i) { return static_cast<int>(i * panels_ / panelParts_); };
    return {begin(part), begin(part + 1)};
  }
  /// Of tiles.
  conv::TaskPartition::Task task(std::size_t index) const { return partition_->task(*tiles_, index); }

  /// Where nothing else says how many.
  static std::size_t partsOf(int rows) { return static_cast<std::size_t>(conv::ceilDivide(rows, rowsOfPart)); }
  static RowRange part(int rows, std::size_t index) {
    const int from = static_cast<int>(index) * rowsOfPart;
    return {from, std::min(rows, from + rowsOfPart)};
  }

 private:
  static constexpr int rowsOfPart = 64;

  int rows_, mostRows_ = 0;
  const conv::DirectDriver* tiles_ = nullptr;
  int panels_ = 0, panelParts_ = 1;
  std::optional<conv::TaskPartition> partition_;
};

}  // namespace tacc::gemm

// Products on kernels of vectors, of all columns or of those that AMX's tiles leave. One of three kinds, whichever the
// model takes for the fastest: tiles of the convolutions, for which rows of A are pixels and columns of B output
// channels; panels of columns; or the same tiles, and inner products for a few columns behind whole blocks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compute/conv/algorithms/direct_driver.hpp"
#include "compute/conv/task_executor.hpp"
#include "compute/gemm/few_columns.hpp"
#include "compute/gemm/gemm_description.hpp"
#include "compute/gemm/packed_columns.hpp"
#include "compute/gemm/panels.hpp"
#include "compute/gemm/row_tasks.hpp"
#include "compute/gemm/rows_of_a.hpp"

namespace tacc::gemm {

/// Immutable once made.
class PlainColumns {
 public:
  /// Of the columns from `first` on, a multiple of 16.
  PlainColumns(const Description& d, int first, const conv::KernelSet& kernels, int workers);

  double cycles() const { return cycles_; }
  std::string kernel() const { return std::string(layers_.isa) + " " + kernel_; }
  std::size_t packedFloats() const { return packedFloats_; }
  /// Of A that is brought into the workspace before it is multiplied, for all workers.
  std::size_t copiedFloats() const { return copiedFloats_; }

  /// `b`, `c` and `bias`, which is null or ends with a whole block, are those of the whole product.
  void pack(const float* b, float* packed) const;
  void run(const float* a, const float* packed, const float* bias, float* c, float* copies,
           const conv::TaskExecutor& executor) const;

 private:
  void chooseKernels(const conv::KernelSet& kernels);
  bool copiesA() const { return few_ && !tiles_ ? rows_.areCopiedForFew() : rows_.areCopied(); }
  void cutRows(int workers);
  void runTiles(const conv::TaskPartition::Task& task, const float* rows, const float* packed, const float* bias,
                float* c) const;

  Description d_;
  int first_;
  RowsOfA rows_;
  const layers::LayerKernels& layers_;
  std::unique_ptr<conv::DirectDriver> tiles_;  // stays where it is: the tasks refer to it
  std::vector<ColumnGroup> groups_;            // of the tiles
  std::optional<Panels> panels_;
  std::optional<FewColumns> few_;
  std::size_t packedFew_ = 0;  // where their part of B begins
  std::size_t packedFloats_ = 0;
  std::optional<RowTasks> tasks_;
  std::size_t copiedFloats_ = 0;
  double cycles_ = 0;
  std::string kernel_;
};

}  // namespace tacc::gemm

// Products of matrices on the convolutions' tile kernel: rows of A are its pixels, columns of B its output channels;
// and on CPUs with AMX on its tiles, where that is faster.
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
#include "compute/gemm/split_columns.hpp"
#include "tacc/compute.h"

namespace tacc::gemm {

/// Checks a description. Throws Error (taccInvalidArgument).
Description understand(const taccGemmDesc_t& desc);

/// Immutable once made: any number of threads may use it.
class GemmPlan {
 public:
  GemmPlan(const Description& description, const conv::KernelSet& kernels);

  std::size_t packedFloats() const { return packedFloats_ * static_cast<std::size_t>(description_.batch); }
  /// A multiple of 64.
  std::size_t workspaceBytes() const;
  const std::string& kernel() const { return kernel_; }
  double predictedSeconds() const;

  void pack(const float* b, float* packed) const;
  /// The buffers have been checked.
  void run(const taccGemmBuffers_t& buffers, const conv::TaskExecutor& executor) const;

 private:
  /// Columns from `first` on that tiles multiply.
  struct Columns {
    int first;
    conv::DirectDriver driver;
    std::size_t packed;  // where their part of B begins
    std::vector<ColumnGroup> groups;
  };

  /// For the columns from `first` on.
  void chooseKernels(int first, const conv::KernelSet& kernels);
  /// What the split columns leave.
  void cutRows();
  /// Several products are separate tasks when they keep all workers busy, each with its own workspace; else
  /// one follows the other.
  bool areTasks() const { return description_.batch > 1 && description_.batch >= description_.maxWorkers; }
  std::size_t workspaceOfOne() const;
  void packOne(const float* b, float* packed) const;
  void runOne(const taccGemmBuffers_t& buffers, const conv::TaskExecutor& executor) const;
  void runRows(const taccGemmBuffers_t& buffers, const conv::TaskExecutor& executor) const;
  void runTiles(const conv::TaskPartition::Task& task, const float* rows, const taccGemmBuffers_t& buffers) const;
  /// Whether A is brought into the workspace, a row after the other, before it is multiplied.
  bool copiesA() const;
  int splitWorkers() const { return areTasks() ? 1 : description_.maxWorkers; }

  Description description_;
  RowsOfA rows_;
  const layers::LayerKernels& layers_;
  std::optional<SplitColumns> split_;  // of whole blocks of columns, which are the first
  std::unique_ptr<Columns> columns_;   // stays where it is: the tasks refer to it
  std::optional<Panels> panels_;       // in place of both, where it is faster
  std::size_t packedPanels_ = 0;       // where their part of B begins
  std::optional<FewColumns> few_;      // of those behind whole blocks, where it is faster
  std::size_t packedFew_ = 0;          // where their part of B begins
  std::size_t packedFloats_ = 0;       // of one product
  std::optional<RowTasks> tasks_;
  std::size_t copiedFloats_ = 0;  // of A, for all workers of one product
  double plainCycles_ = 0;        // of the columns behind the split ones
  std::string kernel_;
};

}  // namespace tacc::gemm

// Products of matrices on kernels of vectors, and on CPUs with AMX on its tiles, where that is faster.
#pragma once

#include <optional>
#include <string>

#include "compute/conv/kernels/kernels.hpp"
#include "compute/conv/task_executor.hpp"
#include "compute/gemm/gemm_description.hpp"
#include "compute/gemm/plain_columns.hpp"
#include "compute/gemm/split_columns.hpp"
#include "tacc/compute.h"

namespace tacc::gemm {

/// Checks a description. Throws Error (taccInvalidArgument).
Description understand(const taccGemmDesc_t& desc);

/// Immutable once made: any number of threads may use it.
class GemmPlan {
 public:
  GemmPlan(const Description& description, const conv::KernelSet& kernels);

  std::size_t packedFloats() const { return packedOfOne() * static_cast<std::size_t>(description_.batch); }
  /// A multiple of 64.
  std::size_t workspaceBytes() const;
  const std::string& kernel() const { return kernel_; }
  double predictedSeconds() const;

  void pack(const float* b, float* packed) const;
  /// The buffers have been checked.
  void run(const taccGemmBuffers_t& buffers, const conv::TaskExecutor& executor) const;

 private:
  /// Several products are separate tasks when they keep all workers busy, each with its own workspace; else
  /// one follows the other.
  bool areTasks() const { return description_.batch > 1 && description_.batch >= description_.maxWorkers; }
  int splitWorkers() const { return areTasks() ? 1 : description_.maxWorkers; }
  std::size_t packedOfOne() const { return packedPlain_ + (plain_ ? plain_->packedFloats() : 0); }
  std::size_t copiedFloats() const { return plain_ ? plain_->copiedFloats() : 0; }
  std::size_t workspaceOfOne() const;
  void packOne(const float* b, float* packed) const;
  void runOne(const taccGemmBuffers_t& buffers, const conv::TaskExecutor& executor) const;

  Description description_;
  std::optional<SplitColumns> split_;  // of whole blocks of columns, which are the first
  std::optional<PlainColumns> plain_;  // of the others
  std::size_t packedPlain_ = 0;        // where their part of B begins
  std::string kernel_;
};

}  // namespace tacc::gemm

// Products of matrices on the convolutions' tile kernel: rows of A are its pixels, columns of B its output channels.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "compute/conv/correlation.hpp"
#include "compute/conv/executor.hpp"
#include "tacc/compute.h"

namespace tacc::gemm {

struct Description {
  int m, n, k;
  std::ptrdiff_t lda, ldb, ldc;
  bool transposeA, transposeB, bias, accumulate, relu;
  int maxWorkers;
};

/// Checks a description. Throws Error (taccInvalidArgument).
Description understand(const taccGemmDesc_t& desc);

/// Immutable once made: any number of threads may use it.
class Plan {
 public:
  Plan(const Description& description, const conv::KernelSet& kernels);

  std::size_t packedFloats() const { return packedFloats_; }
  /// A multiple of 64.
  std::size_t workspaceBytes() const;
  const std::string& kernel() const { return kernel_; }
  double predictedSeconds() const;

  void pack(const float* b, float* packed) const;
  /// The buffers have been checked.
  void run(const taccGemmBuffers_t& buffers, const conv::Executor& executor) const;

 private:
  /// Columns that fill blocks are written straight to C; the rest goes through scratch, as whole blocks do not fit
  /// there.
  struct Columns {
    int first, count;
    conv::Correlation correlation;
    std::size_t packed;  // where their part of B begins
    bool isWhole() const { return count % conv::blockLength == 0; }
  };

  const float* rowsOfA(const taccGemmBuffers_t& buffers) const;
  void runWhole(const Columns& columns, const float* a, const taccGemmBuffers_t& buffers,
                const conv::Executor& executor) const;
  void runRest(const Columns& columns, const float* a, const taccGemmBuffers_t& buffers) const;
  std::size_t transposedFloats() const;

  Description description_;
  std::vector<Columns> columns_;
  std::size_t packedFloats_ = 0;
  std::string kernel_;
};

}  // namespace tacc::gemm

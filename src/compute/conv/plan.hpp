// A convolution that is ready to run, and what every algorithm is asked for.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "compute/conv/executor.hpp"
#include "compute/conv/shape.hpp"

namespace tacc::conv {

/// taccConvBuffers_t, checked, with tensors of float32. Those of a plan for bfloat16 hold two numbers in one float.
struct Buffers {
  const float* input;
  const float* packedWeights;
  const float* outputGradient;
  const float* bias;
  const float* residual;
  float* result;
  void* workspace;
  std::size_t workspaceBytes;
};

/// Immutable once made: any number of threads may use it.
class Plan {
 public:
  virtual ~Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// Bytes that a run needs, for the description's maxWorkers. A multiple of 64.
  virtual std::size_t workspaceBytes() const { return 0; }
  /// Floats that pack() writes.
  virtual std::size_t packedFloats() const { return 0; }
  virtual void pack(const float* weights, float* packed) const {
    static_cast<void>(weights);
    static_cast<void>(packed);
  }
  /// On one worker, by a model.
  virtual double predictedSeconds() const = 0;
  /// Of these, what goes into reordering plain layouts.
  virtual double reorderSeconds() const { return 0; }
  /// The executor has no more than maxWorkers workers.
  virtual void run(const Buffers& buffers, const Executor& executor) const = 0;

  /// The instruction set and the sizes of the tiles, e.g. "avx512 14x2".
  const std::string& kernel() const { return kernel_; }

 protected:
  explicit Plan(std::string kernel) : kernel_(std::move(kernel)) {}

 private:
  std::string kernel_;
};

}  // namespace tacc::conv

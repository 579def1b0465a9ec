// A convolution that is ready to run, and what every algorithm is asked for.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "compute/conv/shape.hpp"
#include "compute/conv/task_executor.hpp"

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
class ConvPlan {
 public:
  virtual ~ConvPlan() = default;
  ConvPlan(const ConvPlan&) = delete;
  ConvPlan& operator=(const ConvPlan&) = delete;

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
  /// The part of these that goes into reordering plain layouts.
  virtual double reorderSeconds() const { return 0; }
  /// The executor has no more than maxWorkers workers.
  virtual void run(const Buffers& buffers, const TaskExecutor& executor) const = 0;

  /// The instruction set and the sizes of the tiles, e.g. "avx512 14x2", and what is done in another order than usual:
  /// "avx512 14x2 groups in turn".
  const std::string& kernel() const { return kernel_; }

 protected:
  explicit ConvPlan(std::string kernel) : kernel_(std::move(kernel)) {}
  /// For constructors: appends words to kernel().
  void describe(const char* words) { kernel_.append(" ").append(words); }

 private:
  std::string kernel_;
};

}  // namespace tacc::conv

// Tensors of bfloat16 as gradient kernels of pairs want them: a float is what two pixels that follow each other have.
//
// Of a 1x1 kernel without padding these are pixels 0 and 1, 2 and 3 and so on of those that it reads, of each image; so
// the copy takes as much as the tensor. Taps of others begin at any pixel: there each pixel is with the next one that
// the stride leaves, and the copy takes twice as much.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/conv/layout.hpp"
#include "compute/conv/shape.hpp"
#include "compute/conv/task_executor.hpp"

namespace tacc::conv {

/// Immutable once made.
class PixelPairs {
 public:
  /// Of a gradient of weights; `kernels` are those of pairs.
  PixelPairs(const Description& d, const KernelSet& kernels);

  /// The gradient of the copies.
  const Description& joined() const { return joined_; }
  std::size_t inputFloats() const { return input_.floats; }
  std::size_t gradientFloats() const { return gradient_.floats; }

  void joinInput(const std::uint16_t* from, float* to, const TaskExecutor& executor) const;
  void joinGradient(const std::uint16_t* from, float* to, const TaskExecutor& executor) const;

 private:
  struct Tensor {
    std::size_t numbers, floats;  // of it, and of its copy
    BlockSteps steps;
    int planes;                       // whose pixels lie side by side
    std::ptrdiff_t plane, copyPlane;  // from one to the next
    int width, strideHeight, strideWidth;
  };
  Tensor tensorOf(taccLayout_t layout, int channels, int height, int width, int strideHeight, int strideWidth) const;
  void join(const Tensor& tensor, const std::uint16_t* from, float* to, const TaskExecutor& executor) const;
  void joinEach(const Tensor& tensor, const std::uint16_t* from, float* to, const TaskExecutor& executor) const;
  /// Pairs [first, end) of one plane.
  void joinSome(const Tensor& tensor, const std::uint16_t* from, float* to, int first, int end) const;

  Description joined_;
  const KernelSet& kernels_;
  int outWidth_, outPixels_;
  Tensor input_, gradient_;
};

}  // namespace tacc::conv

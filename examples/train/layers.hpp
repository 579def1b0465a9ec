// Layers of a fixed batch over tacc/compute.h. Each keeps plans, packed weights and workspaces; weights, activations
// and gradients are the caller's. Nothing allocates but the constructors.
#pragma once

#include "memory.hpp"
#include "tacc/compute.h"

namespace tacc::train {

/// One pass of a convolution.
class ConvolutionPass {
 public:
  explicit ConvolutionPass(const taccConvDesc_t& desc);
  ~ConvolutionPass() { taccConvPlanDestroy(plan_); }
  ConvolutionPass(const ConvolutionPass&) = delete;
  ConvolutionPass& operator=(const ConvolutionPass&) = delete;
  /// `weights` NULL: the pass reads none. `buffers` has what is read and written; the rest is added here.
  void run(const float* weights, taccConvBuffers_t buffers);

 private:
  taccConvPlan_t plan_ = nullptr;
  Floats packed_, workspace_;
};

/// A convolution of `kernel` x `kernel` with as much padding as keeps the size, then max(x, 0). Activations are in
/// taccLayoutNchw16c, but for the input of the first layer, which is in taccLayoutNchw.
class Convolution {
 public:
  Convolution(int batch, int inChannels, int side, int outChannels, int kernel, bool isFirst);

  std::size_t weightCount() const { return weightCount_; }
  std::size_t outputCount() const { return outputCount_; }
  int outChannels() const { return desc_.outChannels; }
  /// Inputs of one output: what the size of the first weights goes by.
  int fanIn() const { return desc_.inChannels * desc_.kernelHeight * desc_.kernelWidth; }

  void forward(const float* input, const float* weights, const float* bias, float* output);
  /// The gradients of weights and bias; `outputGradient` becomes that before max(x, 0).
  void backwardWeights(const float* input, const float* output, float* outputGradient, float* weightGradient,
                       float* biasGradient);
  /// After backwardWeights; not of the first layer.
  void backwardData(const float* outputGradient, const float* weights, float* inputGradient);

 private:
  taccConvDesc_t desc_;
  std::size_t weightCount_, outputCount_;
  ConvolutionPass forward_, toWeights_, toInput_;
};

/// The largest of each 2 x 2 pixels.
class Pooling {
 public:
  Pooling(int batch, int channels, int side);
  std::size_t outputCount() const;
  void forward(const float* input, float* output) const;
  void backward(const float* input, const float* output, const float* outputGradient, float* inputGradient) const;

 private:
  taccPoolDesc_t desc_ = TACC_POOL_INITIALIZER;
};

/// A product of matrices.
class Product {
 public:
  explicit Product(const taccGemmDesc_t& desc);
  ~Product() { taccGemmPlanDestroy(plan_); }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  void run(const float* a, const float* b, const float* bias, float* c);

 private:
  taccGemmPlan_t plan_ = nullptr;
  Floats packed_, workspace_;
};

/// output = input * weights + bias, then, if wanted, max(x, 0). Rows are images.
class FullyConnected {
 public:
  FullyConnected(int batch, int inputs, int outputs, bool relu);

  std::size_t weightCount() const { return static_cast<std::size_t>(inputs_) * static_cast<std::size_t>(outputs_); }
  std::size_t outputCount() const { return static_cast<std::size_t>(batch_) * static_cast<std::size_t>(outputs_); }
  int inputs() const { return inputs_; }
  int outputs() const { return outputs_; }

  void forward(const float* input, const float* weights, const float* bias, float* output);
  /// The gradients of weights and bias; where there is a max(x, 0), `outputGradient` becomes that before it.
  void backwardWeights(const float* input, const float* output, float* outputGradient, float* weightGradient,
                       float* biasGradient);
  /// After backwardWeights.
  void backwardData(const float* outputGradient, const float* weights, float* inputGradient);

 private:
  int batch_, inputs_, outputs_;
  bool relu_;
  Product forward_, toWeights_, toInput_;
};

}  // namespace tacc::train

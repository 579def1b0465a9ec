// Models: from weights and images to scores, and back to the gradient.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataset.hpp"
#include "memory.hpp"

namespace tacc::train {

/// Where one tensor of the weights lies in the numbers that are all of them; its gradient lies at the same place.
struct Tensor {
  std::string name;
  std::size_t offset, count;
  int fanIn;  // inputs of one output; 0: a bias
};

/// A model for batches of one size. It keeps activations, not weights.
class Model {
 public:
  Model(int batch, int classes) : batch_(batch), classes_(classes) {}
  virtual ~Model() = default;

  int batch() const { return batch_; }
  int classes() const { return classes_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// Numbers of all tensors, one behind the other. Each begins at a multiple of 64 bytes; what lies between is 0.
  std::size_t parameterCount() const { return parameterCount_; }
  /// First weights, drawn by the seed: normal with a variance of 2 / fanIn; biases are 0.
  void initialize(float* weights, std::uint64_t seed) const;

  /// `batch` rows of `classes` scores, valid until the next call.
  virtual const float* forward(const float* weights, const float* images) = 0;
  /// After forward(), with the same weights and images. Writes all of `gradient` but what lies between tensors.
  /// `scoreGradient` may be changed.
  virtual void backward(const float* weights, const float* images, float* scoreGradient, float* gradient) = 0;

 protected:
  /// Adds a tensor behind those that are there; returns its offset.
  std::size_t add(const std::string& name, std::size_t count, int fanIn);

 private:
  int batch_, classes_;
  std::vector<Tensor> tensors_;
  std::size_t parameterCount_ = 0;
};

/// "softmax": softmax regression, one score for each class and pixel. "lenet": convolution, pooling, convolution,
/// pooling, two fully connected layers.
std::unique_ptr<Model> makeModel(const std::string& name, int batch, int side, int classes);
std::vector<std::string> modelNames();

/// How a model does on images.
struct Score {
  double loss = 0;  // mean of -log(softmax(scores)[label])
  std::size_t correct = 0;
};

/// The gradient of the mean loss over a batch of `model.batch()` images, and how the model did.
Score computeGradient(Model& model, const float* weights, const float* images, const int* labels, float* gradient);

/// On all images of `data`.
Score evaluate(Model& model, const float* weights, const Dataset& data);

}  // namespace tacc::train

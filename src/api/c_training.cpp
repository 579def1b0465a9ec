// The C functions of tacc/compute.h beside convolutions and products of matrices.
#include <limits>

#include "api/boundary.hpp"
#include "api/compute_check.hpp"
#include "compute/layers/layers.hpp"
#include "core/error.hpp"

using tacc::fail;
using tacc::guard;
using tacc::compute_check::require;
namespace check = tacc::compute_check;
namespace layers = tacc::layers;

namespace {

void requirePositive(const char* name, int value) {
  if (value <= 0) fail(taccInvalidArgument, "{} is {}; it has to be 1 or more", name, value);
}

}  // namespace

taccResult_t taccPoolForward(const taccPoolDesc_t* desc, const float* input, float* output,
                             const taccExecutor_t* executor) {
  return guard("taccPoolForward", nullptr, [&] {
    require(desc, "desc");
    require(input, "input");
    require(output, "output");
    check::checkExecutor(executor, check::anyWorkers);
    layers::poolForward(layers::understand(*desc), input, output, check::layerKernels(),
                        tacc::conv::TaskExecutor(*executor));
  });
}

taccResult_t taccPoolBackward(const taccPoolDesc_t* desc, const float* input, const float* output,
                              const float* outputGradient, float* inputGradient, const taccExecutor_t* executor) {
  return guard("taccPoolBackward", nullptr, [&] {
    require(desc, "desc");
    const layers::Pooling pooling = layers::understand(*desc);
    if (desc->kind == taccPoolMax) {
      require(input, "input");
      require(output, "output");
    }
    require(outputGradient, "outputGradient");
    require(inputGradient, "inputGradient");
    check::checkExecutor(executor, check::anyWorkers);
    layers::poolBackward(pooling, input, output, outputGradient, inputGradient, check::layerKernels(),
                         tacc::conv::TaskExecutor(*executor));
  });
}

taccResult_t taccReluBackward(const float* output, const float* outputGradient, float* inputGradient, size_t count) {
  return guard("taccReluBackward", nullptr, [&] {
    if (count == 0) return;
    require(output, "output");
    require(outputGradient, "outputGradient");
    require(inputGradient, "inputGradient");
    layers::reluBackward(output, outputGradient, inputGradient, count, check::layerKernels());
  });
}

taccResult_t taccBiasGradient(const float* outputGradient, float* gradient, int batch, int channels, int height,
                              int width, int accumulate) {
  return guard("taccBiasGradient", nullptr, [&] {
    require(outputGradient, "outputGradient");
    require(gradient, "gradient");
    if (taccTensorBytes(taccLayoutNchw16c, batch, channels, height, width) == 0) {
      fail(taccInvalidArgument, "{}x{}x{}x{} has a size that is not positive or too large", batch, channels, height,
           width);
    }
    layers::biasGradient(outputGradient, gradient, batch, channels, std::ptrdiff_t{height} * width, accumulate != 0,
                         check::layerKernels());
  });
}

taccResult_t taccSoftmaxLoss(const float* scores, const int* labels, double* loss, float* gradient, int rows,
                             int classes) {
  return guard("taccSoftmaxLoss", nullptr, [&] {
    require(scores, "scores");
    require(labels, "labels");
    require(loss, "loss");
    requirePositive("rows", rows);
    requirePositive("classes", classes);
    *loss = layers::softmaxLoss(scores, labels, gradient, rows, classes);
  });
}

taccResult_t taccSgdMomentum(float* weights, float* velocity, const float* gradient, size_t count, float rate,
                             float momentum, float decay) {
  return guard("taccSgdMomentum", nullptr, [&] {
    if (count == 0) return;
    require(weights, "weights");
    require(velocity, "velocity");
    require(gradient, "gradient");
    check::layerKernels().sgdMomentum(weights, velocity, gradient, count, rate, momentum, decay);
  });
}

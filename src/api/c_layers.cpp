// The C functions of tacc/compute.h for layers that have kernels of their own.
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
using tacc::conv::TaskExecutor;

namespace {

/// What both forward passes need.
void requireBuffers(const taccBatchNormBuffers_t& buffers) {
  require(buffers.input, "input");
  require(buffers.scale, "scale");
  require(buffers.shift, "shift");
  require(buffers.output, "output");
}

}  // namespace

taccResult_t taccBatchNormTrain(const taccBatchNormDesc_t* desc, const taccBatchNormBuffers_t* buffers,
                                const taccExecutor_t* executor) {
  return guard("taccBatchNormTrain", nullptr, [&] {
    require(desc, "desc");
    layers::check(*desc);
    require(buffers, "buffers");
    requireBuffers(*buffers);
    require(buffers->mean, "mean");
    require(buffers->inverseDeviation, "inverseDeviation");
    if ((buffers->runningMean == nullptr) != (buffers->runningVariance == nullptr)) {
      fail(taccInvalidArgument, "only one of runningMean and runningVariance is NULL; give both or none");
    }
    check::checkExecutor(executor, check::anyWorkers);
    layers::batchNormTrain(*desc, *buffers, check::layerKernels(), TaskExecutor(*executor));
  });
}

taccResult_t taccBatchNormInfer(const taccBatchNormDesc_t* desc, const taccBatchNormBuffers_t* buffers,
                                const taccExecutor_t* executor) {
  return guard("taccBatchNormInfer", nullptr, [&] {
    require(desc, "desc");
    layers::check(*desc);
    require(buffers, "buffers");
    requireBuffers(*buffers);
    require(buffers->runningMean, "runningMean");
    require(buffers->runningVariance, "runningVariance");
    check::checkExecutor(executor, check::anyWorkers);
    layers::batchNormInfer(*desc, *buffers, check::layerKernels(), TaskExecutor(*executor));
  });
}

taccResult_t taccBatchNormBackward(const taccBatchNormDesc_t* desc, const taccBatchNormGradients_t* buffers,
                                   const taccExecutor_t* executor) {
  return guard("taccBatchNormBackward", nullptr, [&] {
    require(desc, "desc");
    layers::check(*desc);
    require(buffers, "buffers");
    require(buffers->input, "input");
    require(buffers->outputGradient, "outputGradient");
    require(buffers->scale, "scale");
    require(buffers->mean, "mean");
    require(buffers->inverseDeviation, "inverseDeviation");
    require(buffers->scaleGradient, "scaleGradient");
    require(buffers->shiftGradient, "shiftGradient");
    check::checkExecutor(executor, check::anyWorkers);
    layers::batchNormBackward(*desc, *buffers, check::layerKernels(), TaskExecutor(*executor));
  });
}

taccResult_t taccLrnForward(const taccLrnDesc_t* desc, const float* input, float* output,
                            const taccExecutor_t* executor) {
  return guard("taccLrnForward", nullptr, [&] {
    require(desc, "desc");
    layers::check(*desc);
    require(input, "input");
    require(output, "output");
    check::checkExecutor(executor, check::anyWorkers);
    layers::lrnForward(*desc, input, output, check::layerKernels(), TaskExecutor(*executor));
  });
}

taccResult_t taccLrnBackward(const taccLrnDesc_t* desc, const float* input, const float* outputGradient,
                             float* inputGradient, const taccExecutor_t* executor) {
  return guard("taccLrnBackward", nullptr, [&] {
    require(desc, "desc");
    layers::check(*desc);
    require(input, "input");
    require(outputGradient, "outputGradient");
    require(inputGradient, "inputGradient");
    check::checkExecutor(executor, check::anyWorkers);
    layers::lrnBackward(*desc, input, outputGradient, inputGradient, check::layerKernels(), TaskExecutor(*executor));
  });
}

taccResult_t taccDropout(const float* input, float* output, size_t count, float rate, uint64_t seed, uint64_t step,
                         const taccExecutor_t* executor) {
  return guard("taccDropout", nullptr, [&] {
    if (!(rate >= 0 && rate < 1)) fail(taccInvalidArgument, "rate is {}; it has to be from 0 to below 1", rate);
    check::checkExecutor(executor, check::anyWorkers);
    if (count == 0) return;
    require(input, "input");
    require(output, "output");
    layers::dropout(input, output, count, rate, seed, step, check::layerKernels(), TaskExecutor(*executor));
  });
}

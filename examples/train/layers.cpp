#include "layers.hpp"

#include <algorithm>

namespace tacc::train {
namespace {

taccConvDesc_t describe(int batch, int inChannels, int side, int outChannels, int kernel, bool isFirst) {
  taccConvDesc_t desc = TACC_CONV_INITIALIZER;
  desc.batch = batch;
  desc.inChannels = inChannels;
  desc.height = desc.width = side;
  desc.outChannels = outChannels;
  desc.kernelHeight = desc.kernelWidth = kernel;
  desc.padHeight = desc.padWidth = kernel / 2;
  desc.inputLayout = isFirst ? taccLayoutNchw : taccLayoutNchw16c;
  return desc;
}

taccConvDesc_t forwardOf(taccConvDesc_t desc) {
  desc.bias = desc.relu = 1;
  return desc;
}

taccConvDesc_t backwardOf(taccConvDesc_t desc, taccConvPass_t pass) {
  desc.pass = pass;
  if (pass == taccConvBackwardData) desc.inputLayout = taccLayoutNchw16c;  // no other is written
  return desc;
}

std::size_t floatsOf(std::size_t bytes) { return bytes / sizeof(float); }

/// c (m x n) = a * b, with the inner length k.
taccGemmDesc_t product(int m, int n, int k) {
  taccGemmDesc_t desc = TACC_GEMM_INITIALIZER;
  desc.m = m;
  desc.n = n;
  desc.k = k;
  return desc;
}

taccGemmDesc_t forwardProduct(int batch, int inputs, int outputs, bool relu) {
  taccGemmDesc_t desc = product(batch, outputs, inputs);
  desc.bias = 1;
  desc.relu = relu ? 1 : 0;
  return desc;
}

taccGemmDesc_t toWeightsProduct(int batch, int inputs, int outputs) {
  taccGemmDesc_t desc = product(inputs, outputs, batch);
  desc.transposeA = 1;
  return desc;
}

taccGemmDesc_t toInputProduct(int batch, int inputs, int outputs) {
  taccGemmDesc_t desc = product(batch, inputs, outputs);
  desc.transposeB = 1;
  return desc;
}

}  // namespace

ConvolutionPass::ConvolutionPass(const taccConvDesc_t& desc) {
  check(taccConvPlanCreate(&plan_, &desc));
  taccConvInfo_t info;
  check(taccConvPlanGetInfo(plan_, &info));
  packed_ = Floats(floatsOf(info.packedWeightBytes));
  workspace_ = Floats(floatsOf(info.workspaceBytes + sizeof(float) - 1));
}

void ConvolutionPass::run(const float* weights, taccConvBuffers_t buffers) {
  if (weights != nullptr) check(taccConvPackWeights(plan_, weights, packed_.data()));
  buffers.packedWeights = packed_.data();
  buffers.workspace = workspace_.data();
  buffers.workspaceBytes = workspace_.size() * sizeof(float);
  check(taccConvRun(plan_, &buffers, taccSerialExecutor()));
}

Convolution::Convolution(int batch, int inChannels, int side, int outChannels, int kernel, bool isFirst)
    : desc_(describe(batch, inChannels, side, outChannels, kernel, isFirst)),
      weightCount_(floatsOf(taccWeightBytes(taccWeightsKcrs, outChannels, inChannels, kernel, kernel, 1))),
      outputCount_(floatsOf(taccTensorBytes(taccLayoutNchw16c, batch, outChannels, side, side))),
      forward_(forwardOf(desc_)),
      toWeights_(backwardOf(desc_, taccConvBackwardWeights)),
      toInput_(backwardOf(desc_, taccConvBackwardData)) {}

void Convolution::forward(const float* input, const float* weights, const float* bias, float* output) {
  taccConvBuffers_t buffers{};
  buffers.input = input;
  buffers.bias = bias;
  buffers.result = output;
  forward_.run(weights, buffers);
}

void Convolution::backwardWeights(const float* input, const float* output, float* outputGradient, float* weightGradient,
                                  float* biasGradient) {
  check(taccReluBackward(output, outputGradient, outputGradient, outputCount_));
  check(taccBiasGradient(outputGradient, biasGradient, desc_.batch, desc_.outChannels, desc_.height, desc_.width, 0));
  taccConvBuffers_t buffers{};
  buffers.input = input;
  buffers.outputGradient = outputGradient;
  buffers.result = weightGradient;
  toWeights_.run(nullptr, buffers);
}

void Convolution::backwardData(const float* outputGradient, const float* weights, float* inputGradient) {
  taccConvBuffers_t buffers{};
  buffers.outputGradient = outputGradient;
  buffers.result = inputGradient;
  toInput_.run(weights, buffers);
}

Pooling::Pooling(int batch, int channels, int side) {
  desc_.batch = batch;
  desc_.channels = channels;
  desc_.height = desc_.width = side;
  desc_.kernelHeight = desc_.kernelWidth = desc_.strideHeight = desc_.strideWidth = 2;
}

std::size_t Pooling::outputCount() const {
  return floatsOf(taccTensorBytes(taccLayoutNchw16c, desc_.batch, desc_.channels, desc_.height / 2, desc_.width / 2));
}

void Pooling::forward(const float* input, float* output) const {
  check(taccPoolForward(&desc_, input, output, taccSerialExecutor()));
}

void Pooling::backward(const float* input, const float* output, const float* outputGradient,
                       float* inputGradient) const {
  check(taccPoolBackward(&desc_, input, output, outputGradient, inputGradient, taccSerialExecutor()));
}

Product::Product(const taccGemmDesc_t& desc) {
  check(taccGemmPlanCreate(&plan_, &desc));
  taccGemmInfo_t info;
  check(taccGemmPlanGetInfo(plan_, &info));
  packed_ = Floats(floatsOf(info.packedBytes));
  workspace_ = Floats(floatsOf(info.workspaceBytes + sizeof(float) - 1));
}

void Product::run(const float* a, const float* b, const float* bias, float* c) {
  check(taccGemmPack(plan_, b, packed_.data()));
  const taccGemmBuffers_t buffers{a, packed_.data(), bias, c, workspace_.data(), workspace_.size() * sizeof(float)};
  check(taccGemmRun(plan_, &buffers, taccSerialExecutor()));
}

FullyConnected::FullyConnected(int batch, int inputs, int outputs, bool relu)
    : batch_(batch),
      inputs_(inputs),
      outputs_(outputs),
      relu_(relu),
      forward_(forwardProduct(batch, inputs, outputs, relu)),
      toWeights_(toWeightsProduct(batch, inputs, outputs)),
      toInput_(toInputProduct(batch, inputs, outputs)) {}

void FullyConnected::forward(const float* input, const float* weights, const float* bias, float* output) {
  forward_.run(input, weights, bias, output);
}

void FullyConnected::backwardWeights(const float* input, const float* output, float* outputGradient,
                                     float* weightGradient, float* biasGradient) {
  if (relu_) check(taccReluBackward(output, outputGradient, outputGradient, outputCount()));
  std::fill_n(biasGradient, outputs_, 0.0F);
  for (int row = 0; row < batch_; ++row)
    for (int i = 0; i < outputs_; ++i) biasGradient[i] += outputGradient[row * outputs_ + i];
  toWeights_.run(input, outputGradient, nullptr, weightGradient);
}

void FullyConnected::backwardData(const float* outputGradient, const float* weights, float* inputGradient) {
  toInput_.run(outputGradient, weights, nullptr, inputGradient);
}

}  // namespace tacc::train

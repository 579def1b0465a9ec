// The layers that tacc_bench layers times, on tensors as they are behind the first convolutions of a network.
#include <stdexcept>

#include "compute/layer_bench.hpp"

namespace tacc::bench {
namespace {

void check(taccResult_t result) {
  if (result != taccSuccess) throw std::runtime_error(taccGetLastError(nullptr));
}

/// What all layers of one size work on: tensors of the whole size, of which smaller ones use the beginning.
struct Tensors {
  Tensors(int theBatch, int theChannels, int theSize)
      : batch(theBatch),
        channels(theChannels),
        size(theSize),
        count(taccTensorBytes(taccLayoutNchw16c, batch, channels, size, size) / sizeof(float)),
        input(count),
        gradient(count),
        other(count),
        output(count),
        ofChannels(static_cast<std::size_t>(channels) * 8) {
    tools::fillWithSmallIntegers(input, 1);
    tools::fillWithSmallIntegers(gradient, 2);
    tools::fillWithSmallIntegers(other, 3);
    for (std::size_t i = 0; i < ofChannels.size(); ++i) ofChannels.data()[i] = 1;
  }
  double bytes() const { return static_cast<double>(count * sizeof(float)); }
  float* channelArray(int which) { return ofChannels.data() + std::ptrdiff_t{which} * channels; }

  int batch, channels, size;
  std::size_t count;
  tools::AlignedFloats input, gradient, other, output, ofChannels;
};
using Shared = std::shared_ptr<Tensors>;

taccBatchNormDesc_t batchNorm(const Tensors& t, bool relu) {
  taccBatchNormDesc_t desc = TACC_BATCH_NORM_INITIALIZER;
  desc.batch = t.batch;
  desc.channels = t.channels;
  desc.height = desc.width = t.size;
  desc.relu = relu;
  return desc;
}

taccBatchNormBuffers_t batchNormBuffers(Tensors& t, bool residual) {
  return {t.input.data(),   t.channelArray(0), t.channelArray(1), residual ? t.other.data() : nullptr,
          t.output.data(),  t.channelArray(2), t.channelArray(3), t.channelArray(4),
          t.channelArray(5)};
}

void addBatchNorm(const Shared& t, std::vector<LayerProblem>& problems) {
  const double bytes = t->bytes();
  const taccExecutor_t* const serial = taccSerialExecutor();
  problems.push_back({"batch norm, inference", bytes, bytes, [t, serial, desc = batchNorm(*t, false)] {
                        const taccBatchNormBuffers_t buffers = batchNormBuffers(*t, false);
                        check(taccBatchNormInfer(&desc, &buffers, serial));
                      }});
  problems.push_back({"batch norm, residual, relu", 2 * bytes, bytes, [t, serial, desc = batchNorm(*t, true)] {
                        const taccBatchNormBuffers_t buffers = batchNormBuffers(*t, true);
                        check(taccBatchNormInfer(&desc, &buffers, serial));
                      }});
  problems.push_back({"batch norm, training", 2 * bytes, bytes, [t, serial, desc = batchNorm(*t, false)] {
                        const taccBatchNormBuffers_t buffers = batchNormBuffers(*t, false);
                        check(taccBatchNormTrain(&desc, &buffers, serial));
                      }});
  problems.push_back({"batch norm, backward", 4 * bytes, bytes, [t, serial, desc = batchNorm(*t, false)] {
                        const taccBatchNormGradients_t buffers = {
                            t->input.data(),    t->gradient.data(), t->channelArray(0), t->channelArray(2),
                            t->channelArray(3), t->output.data(),   t->channelArray(6), t->channelArray(7)};
                        check(taccBatchNormBackward(&desc, &buffers, serial));
                      }});
}

void addPooling(const Shared& t, std::vector<LayerProblem>& problems) {
  struct Window {
    const char* name;
    taccPoolKind_t kind;
    int kernel, stride, pad;
  };
  for (const Window& w : {Window{"max pool 3x3, stride 2", taccPoolMax, 3, 2, 1},
                          {"max pool 2x2, stride 2", taccPoolMax, 2, 2, 0},
                          {"average pool 3x3, stride 1", taccPoolAverage, 3, 1, 1},
                          {"average pool, whole image", taccPoolAverage, t->size, t->size, 0}}) {
    taccPoolDesc_t desc = TACC_POOL_INITIALIZER;
    desc.kind = w.kind;
    desc.batch = t->batch;
    desc.channels = t->channels;
    desc.height = desc.width = t->size;
    desc.kernelHeight = desc.kernelWidth = w.kernel;
    desc.strideHeight = desc.strideWidth = w.stride;
    desc.padHeight = desc.padWidth = w.pad;
    const int out = (t->size + 2 * w.pad - w.kernel) / w.stride + 1;
    const auto outBytes = static_cast<double>(taccTensorBytes(taccLayoutNchw16c, t->batch, t->channels, out, out));
    const auto forward = [t, desc] {
      check(taccPoolForward(&desc, t->input.data(), t->output.data(), taccSerialExecutor()));
    };
    problems.push_back({w.name, t->bytes(), outBytes, forward});
    // The largest values are those of `output`, which the forward run before it has left there.
    const double read = w.kind == taccPoolMax ? t->bytes() + 2 * outBytes : outBytes;
    problems.push_back({std::string(w.name) + ", backward", read, t->bytes(), [t, desc] {
                          check(taccPoolBackward(&desc, t->input.data(), t->output.data(), t->gradient.data(),
                                                 t->other.data(), taccSerialExecutor()));
                        }});
  }
}

void addElementwise(const Shared& t, std::vector<LayerProblem>& problems) {
  const double bytes = t->bytes();
  problems.push_back({"relu, backward", 2 * bytes, bytes, [t] {
                        check(taccReluBackward(t->input.data(), t->gradient.data(), t->output.data(), t->count));
                      }});
  problems.push_back(
      {"bias gradient", bytes, 0, [t] {
         check(taccBiasGradient(t->gradient.data(), t->channelArray(6), t->batch, t->channels, t->size, t->size, 0));
       }});
  problems.push_back(
      {"SGD with momentum", 3 * bytes, 2 * bytes, [t] {
         check(taccSgdMomentum(t->other.data(), t->output.data(), t->gradient.data(), t->count, 1e-3F, 0.9F, 1e-4F));
       }});
  problems.push_back(
      {"dropout", bytes, bytes,
       [t] { check(taccDropout(t->input.data(), t->output.data(), t->count, 0.5F, 1, 2, taccSerialExecutor())); }});
}

void addLrn(const Shared& t, std::vector<LayerProblem>& problems) {
  taccLrnDesc_t desc = TACC_LRN_INITIALIZER;
  desc.batch = t->batch;
  desc.channels = t->channels;
  desc.height = desc.width = t->size;
  const double bytes = t->bytes();
  problems.push_back({"response normalisation", bytes, bytes, [t, desc] {
                        check(taccLrnForward(&desc, t->input.data(), t->output.data(), taccSerialExecutor()));
                      }});
  problems.push_back(
      {"response normalisation, backward", 2 * bytes, bytes, [t, desc] {
         check(taccLrnBackward(&desc, t->input.data(), t->gradient.data(), t->output.data(), taccSerialExecutor()));
       }});
}

void addCopies(const Shared& t, std::vector<LayerProblem>& problems) {
  const double bytes = t->bytes();
  const auto reorder = [t](taccLayout_t from, taccLayout_t to) {
    check(taccReorder(from, t->input.data(), to, t->output.data(), t->batch, t->channels, t->size, t->size));
  };
  problems.push_back({"reorder from NCHW", bytes, bytes, [reorder] { reorder(taccLayoutNchw, taccLayoutNchw16c); }});
  problems.push_back({"reorder to NCHW", bytes, bytes, [reorder] { reorder(taccLayoutNchw16c, taccLayoutNchw); }});
  problems.push_back(
      {"to bfloat16", bytes, bytes / 2,
       [t] { check(taccConvertNumbers(taccFloat32, t->input.data(), taccBfloat16, t->output.data(), t->count)); }});
  problems.push_back(
      {"from bfloat16", bytes / 2, bytes,
       [t] { check(taccConvertNumbers(taccBfloat16, t->input.data(), taccFloat32, t->output.data(), t->count)); }});
}

}  // namespace

std::vector<LayerProblem> layerProblems(int batch, int channels, int size) {
  const auto tensors = std::make_shared<Tensors>(batch, channels, size);
  std::vector<LayerProblem> problems;
  addElementwise(tensors, problems);
  addBatchNorm(tensors, problems);
  addPooling(tensors, problems);
  addLrn(tensors, problems);
  addCopies(tensors, problems);
  return problems;
}

}  // namespace tacc::bench

// libxsmm's direct convolutions as a contestant: its own blocked layout, with the zeros of the padding in memory, which
// is how it is the fastest. It has no groups.
#include <libxsmm.h>
#ifdef TACC_BENCH_OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <stdexcept>

#include "compute/conv_problem.hpp"

namespace tacc::bench {
namespace {

void check(libxsmm_dnn_err_t status) {
  if (status != LIBXSMM_DNN_SUCCESS) throw std::runtime_error(libxsmm_dnn_get_error(status));
}

/// A tensor in libxsmm's layout.
class Tensor {
 public:
  Tensor(libxsmm_dnn_layer* layer, libxsmm_dnn_tensor_type type) : floats_(0) {
    libxsmm_dnn_err_t status = LIBXSMM_DNN_SUCCESS;
    libxsmm_dnn_tensor_datalayout* const layout = libxsmm_dnn_create_tensor_datalayout(layer, type, &status);
    check(status);
    floats_ = tools::AlignedFloats(libxsmm_dnn_get_tensor_size(layout, &status) / sizeof(float));
    check(status);
    tensor_ = libxsmm_dnn_link_tensor(layout, floats_.data(), &status);
    libxsmm_dnn_destroy_tensor_datalayout(layout);
    check(status);
    check(libxsmm_dnn_bind_tensor(layer, tensor_, type));
  }
  ~Tensor() { libxsmm_dnn_destroy_tensor(tensor_); }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  void copyIn(const float* plain, libxsmm_dnn_tensor_format format) {
    check(libxsmm_dnn_copyin_tensor(tensor_, plain, format));
  }
  void copyOut(float* plain, libxsmm_dnn_tensor_format format) const {
    check(libxsmm_dnn_copyout_tensor(tensor_, plain, format));
  }

 private:
  tools::AlignedFloats floats_;
  libxsmm_dnn_tensor* tensor_ = nullptr;
};

/// Planes of height x width, each between `pad` zeros on every side, or what is between them taken out again.
std::vector<float> padded(const float* plain, std::size_t planes, int height, int width, const tools::BothWays& pad) {
  const std::ptrdiff_t wide = width + 2 * pad.width, high = height + 2 * pad.height;
  std::vector<float> result(planes * static_cast<std::size_t>(wide * high));
  for (std::size_t p = 0; p < planes; ++p) {
    for (int y = 0; y < height; ++y, plain += width) {
      std::copy_n(plain, width,
                  result.data() + (static_cast<std::ptrdiff_t>(p) * high + y + pad.height) * wide + pad.width);
    }
  }
  return result;
}

std::vector<float> unpadded(const std::vector<float>& from, std::size_t planes, int height, int width,
                            const tools::BothWays& pad) {
  const std::ptrdiff_t wide = width + 2 * pad.width, high = height + 2 * pad.height;
  std::vector<float> plain(planes * static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  auto to = plain.begin();
  for (std::size_t p = 0; p < planes; ++p) {
    for (int y = 0; y < height; ++y) {
      to = std::copy_n(from.data() + (static_cast<std::ptrdiff_t>(p) * high + y + pad.height) * wide + pad.width, width,
                       to);
    }
  }
  return plain;
}

struct DestroyLayer {
  void operator()(libxsmm_dnn_layer* layer) const { libxsmm_dnn_destroy_conv_layer(layer); }
};

class LibxsmmContestant final : public ConvContestant {
 public:
  LibxsmmContestant(const ConvProblem& problem, int threads)
      : problem_(problem), threads_(threads), layer_(makeLayer(problem, threads)), scratch_(0) {
    const bool isForward = problem.pass == taccConvForward;
    const bool isData = problem.pass == taccConvBackwardData;
    kind_ = isForward ? LIBXSMM_DNN_COMPUTE_KIND_FWD
            : isData  ? LIBXSMM_DNN_COMPUTE_KIND_BWD
                      : LIBXSMM_DNN_COMPUTE_KIND_UPD;
    input_ = std::make_unique<Tensor>(layer_.get(), isData ? LIBXSMM_DNN_GRADIENT_INPUT : LIBXSMM_DNN_REGULAR_INPUT);
    output_ =
        std::make_unique<Tensor>(layer_.get(), isForward ? LIBXSMM_DNN_REGULAR_OUTPUT : LIBXSMM_DNN_GRADIENT_OUTPUT);
    weights_ = std::make_unique<Tensor>(layer_.get(),
                                        isForward || isData ? LIBXSMM_DNN_REGULAR_FILTER : LIBXSMM_DNN_GRADIENT_FILTER);
    libxsmm_dnn_err_t status = LIBXSMM_DNN_SUCCESS;
    scratch_ = tools::AlignedFloats(
        libxsmm_dnn_get_scratch_size(layer_.get(), LIBXSMM_DNN_COMPUTE_KIND_ALL, &status) / sizeof(float) + 1);
    check(status);
    check(libxsmm_dnn_bind_scratch(layer_.get(), LIBXSMM_DNN_COMPUTE_KIND_ALL, scratch_.data()));
    fillActivations();
    if (isForward || isData) weights_->copyIn(problem.weights.data(), LIBXSMM_DNN_TENSOR_FORMAT_KCRS);
  }

  void run() override {
#ifdef TACC_BENCH_OPENMP
    if (threads_ > 1) {
#pragma omp parallel num_threads(threads_)
      libxsmm_dnn_execute_st(layer_.get(), kind_, 0, omp_get_thread_num());
      return;
    }
#endif
    libxsmm_dnn_execute_st(layer_.get(), kind_, 0, 0);
  }
  std::string implementation() const override { return libxsmm_get_target_arch(); }

  std::vector<float> result() override {
    const tools::Layer& l = problem_.layer;
    if (problem_.pass == taccConvBackwardWeights) {
      std::vector<float> plain(problem_.resultSize());
      weights_->copyOut(plain.data(), LIBXSMM_DNN_TENSOR_FORMAT_KCRS);
      return plain;
    }
    const bool isForward = problem_.pass == taccConvForward;
    const int height = isForward ? l.outHeight() : l.height;
    const int width = isForward ? l.outWidth() : l.width;
    const std::size_t planes = planesOf(isForward ? l.outChannels : l.inChannels);
    std::vector<float> all(planes * static_cast<std::size_t>((height + 2 * l.pad.height) * (width + 2 * l.pad.width)));
    (isForward ? output_ : input_)->copyOut(all.data(), LIBXSMM_DNN_TENSOR_FORMAT_NCHW);
    return unpadded(all, planes, height, width, l.pad);
  }

  bool reorders() const override { return true; }

 private:
  static libxsmm_dnn_layer* makeLayer(const ConvProblem& problem, int threads) {
    const tools::Layer& l = problem.layer;
    libxsmm_dnn_conv_desc desc{};
    desc.N = problem.batch;
    desc.C = l.inChannels;
    desc.H = l.height;
    desc.W = l.width;
    desc.K = l.outChannels;
    desc.R = l.kernel.height;
    desc.S = l.kernel.width;
    desc.u = l.stride.height;
    desc.v = l.stride.width;
    desc.pad_h = desc.pad_h_in = desc.pad_h_out = l.pad.height;
    desc.pad_w = desc.pad_w_in = desc.pad_w_out = l.pad.width;
    desc.threads = threads;
    desc.datatype_in = desc.datatype_out = LIBXSMM_DNN_DATATYPE_F32;
    desc.buffer_format = desc.filter_format = LIBXSMM_DNN_TENSOR_FORMAT_LIBXSMM;
    desc.algo = LIBXSMM_DNN_CONV_ALGO_DIRECT;
    desc.options = LIBXSMM_DNN_CONV_OPTION_OVERWRITE;
    libxsmm_dnn_err_t status = LIBXSMM_DNN_SUCCESS;
    libxsmm_dnn_layer* const layer = libxsmm_dnn_create_conv_layer(desc, &status);
    if (layer == nullptr) throw std::runtime_error(libxsmm_dnn_get_error(status));
    return layer;
  }

  std::size_t planesOf(int channels) const {
    return static_cast<std::size_t>(problem_.batch) * static_cast<std::size_t>(channels);
  }
  void fillActivations() override {
    const tools::Layer& l = problem_.layer;
    if (problem_.pass != taccConvBackwardData) {
      input_->copyIn(padded(problem_.input.data(), planesOf(l.inChannels), l.height, l.width, l.pad).data(),
                     LIBXSMM_DNN_TENSOR_FORMAT_NCHW);
    }
    if (problem_.pass != taccConvForward) {
      output_->copyIn(
          padded(problem_.outputGradient.data(), planesOf(l.outChannels), l.outHeight(), l.outWidth(), l.pad).data(),
          LIBXSMM_DNN_TENSOR_FORMAT_NCHW);
    }
  }

  const ConvProblem& problem_;
  int threads_;
  std::unique_ptr<libxsmm_dnn_layer, DestroyLayer> layer_;
  libxsmm_dnn_compute_kind kind_;
  tools::AlignedFloats scratch_;
  std::unique_ptr<Tensor> input_, output_, weights_;
};

}  // namespace

Contestants makeLibxsmmContestants(const ConvProblem& problem, int threads, bool) {
  Contestants contestants;
  if (problem.layer.groups > 1 || !problem.layer.dilation.isAll(1)) return contestants;
  try {
    contestants.push_back(std::make_unique<LibxsmmContestant>(problem, threads));
  } catch (const std::runtime_error&) {
    // It does not take this layer.
  }
  return contestants;
}

}  // namespace tacc::bench

// oneDNN, asked for its best: layouts of its own choice, training and inference kernels, with Winograd if it is
// allowed.
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <set>
#include <unordered_map>

#include "compute/conv_problem.hpp"

namespace tacc::bench {
namespace {

using Format = dnnl::memory::format_tag;

dnnl::engine& cpu() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::memory::dims activationDims(int batch, int channels, int height, int width) {
  return {batch, channels, height, width};
}

using Type = dnnl::memory::data_type;

dnnl::memory::desc plain(const dnnl::memory::dims& dims, Format format, Type type = Type::f32) {
  return {dims, type, format};
}

/// What the primitives read and write: bfloat16 where weights may be rounded to it, as they are with it.
struct Types {
  explicit Types(const ConvProblem& p)
      : activations(p.numbers.areBfloat16 && p.numbers.roundsWeights ? Type::bf16 : Type::f32),
        weights(p.pass == taccConvBackwardWeights ? Type::f32 : activations) {}
  Type activations, weights;  // or their gradients
};

/// Sizes as oneDNN wants them.
struct Dims {
  explicit Dims(const ConvProblem& p)
      : input(activationDims(p.batch, p.layer.inChannels, p.layer.height, p.layer.width)),
        output(activationDims(p.batch, p.layer.outChannels, p.layer.outHeight(), p.layer.outWidth())),
        strides{p.layer.stride.height, p.layer.stride.width},
        pads{p.layer.pad.height, p.layer.pad.width},
        dilates{p.layer.dilation.height - 1, p.layer.dilation.width - 1} {
    const tools::Layer& l = p.layer;
    if (l.groups > 1) {
      weights = {l.groups, l.outChannels / l.groups, l.inChannels / l.groups, l.kernel.height, l.kernel.width};
      weightFormat = Format::goihw;
    } else {
      weights = {l.outChannels, l.inChannels, l.kernel.height, l.kernel.width};
      weightFormat = Format::oihw;
    }
  }
  dnnl::memory::dims input, output, weights, strides, pads;
  dnnl::memory::dims dilates;  // pixels between those that a kernel takes
  Format weightFormat;
};

class OnednnContestant final : public ConvContestant {
 public:
  /// `isAsItIs`: its activations have the problem's plain layout, where it has kernels for that.
  OnednnContestant(const ConvProblem& problem, dnnl::prop_kind kind, dnnl::algorithm algorithm, bool isAsItIs)
      : problem_(problem),
        dims_(problem),
        types_(problem),
        stream_(cpu()),
        format_(problem.plainLayout == taccLayoutNhwc ? Format::nhwc : Format::nchw),
        isAsItIs_(isAsItIs),
        plain_(problem.isPlain ? problem.resultSize() : 0) {
    using Forward = dnnl::convolution_forward;
    using BackwardData = dnnl::convolution_backward_data;
    using BackwardWeights = dnnl::convolution_backward_weights;
    const Format activations = isAsItIs ? format_ : Format::any;
    const dnnl::memory::desc input = plain(dims_.input, activations, types_.activations),
                             weights = plain(dims_.weights, Format::any, types_.weights),
                             output = plain(dims_.output, activations, types_.activations);
    // What it is a gradient of reads weights of the activations' type.
    const dnnl::memory::desc read = plain(dims_.weights, Format::any, types_.activations);
    const auto forward = describe<Forward>(cpu(), kind, algorithm, input, read, output);
    if (problem.pass == taccConvForward) {
      take(forward, forward.src_desc(), forward.weights_desc(), forward.dst_desc());
      primitive_ = Forward(forward);
      arguments_ = {{DNNL_ARG_SRC, input_}, {DNNL_ARG_WEIGHTS, weights_}, {DNNL_ARG_DST, output_}};
    } else if (problem.pass == taccConvBackwardData) {
      const auto backward = describeBackward<BackwardData>(cpu(), algorithm, input, weights, output, forward);
      take(backward, backward.diff_src_desc(), backward.weights_desc(), backward.diff_dst_desc());
      primitive_ = BackwardData(backward);
      arguments_ = {{DNNL_ARG_DIFF_SRC, input_}, {DNNL_ARG_WEIGHTS, weights_}, {DNNL_ARG_DIFF_DST, output_}};
    } else {
      const auto backward = describeBackward<BackwardWeights>(cpu(), algorithm, input, weights, output, forward);
      take(backward, backward.src_desc(), backward.diff_weights_desc(), backward.diff_dst_desc());
      primitive_ = BackwardWeights(backward);
      arguments_ = {{DNNL_ARG_SRC, input_}, {DNNL_ARG_DIFF_WEIGHTS, weights_}, {DNNL_ARG_DIFF_DST, output_}};
    }
    fill();
  }

  void run() override {
    if (reordersInRun()) fillActivations();
    primitive_.execute(stream_, arguments_);
    stream_.wait();
    // Gradients of the weights are wanted in KCRS from all.
    if (reordersInRun() || (problem_.isPlain && problem_.pass == taccConvBackwardWeights)) {
      bringBack(plain_.data(), format_, types_.activations);
    }
  }
  std::string implementation() const override { return implementation_; }

  std::vector<float> result() override {
    std::vector<float> plainResult(problem_.resultSize());
    bringBack(plainResult.data(), Format::nchw, Type::f32);
    return plainResult;
  }

  bool reorders() const override { return !isAsItIs_; }

  bool readsWhatIsWrittenBy(ConvContestant& before) override {
    const auto* const other = dynamic_cast<OnednnContestant*>(&before);
    if (other == nullptr || other->output_.get_desc() != input_.get_desc()) return false;
    input_.set_data_handle(other->output_.get_data_handle());
    return true;
  }

 private:
  // oneDNN 3 describes a primitive in one step; 2 in two.
#if DNNL_VERSION_MAJOR >= 3
  template <class Primitive, class... More>
  typename Primitive::primitive_desc describe(const dnnl::engine& engine, const More&... more) const {
    return {engine, more..., dims_.strides, dims_.dilates, dims_.pads, dims_.pads};
  }
  template <class Primitive, class Forward>
  typename Primitive::primitive_desc describeBackward(const dnnl::engine& engine, dnnl::algorithm algorithm,
                                                      const dnnl::memory::desc& input,
                                                      const dnnl::memory::desc& weights,
                                                      const dnnl::memory::desc& output, const Forward& forward) const {
    return {engine, algorithm, input, weights, output, dims_.strides, dims_.dilates, dims_.pads, dims_.pads, forward};
  }
#else
  template <class Primitive, class... More>
  typename Primitive::primitive_desc describe(const dnnl::engine& engine, const More&... more) const {
    return {{more..., dims_.strides, dims_.dilates, dims_.pads, dims_.pads}, engine};
  }
  template <class Primitive, class Forward>
  typename Primitive::primitive_desc describeBackward(const dnnl::engine& engine, dnnl::algorithm algorithm,
                                                      const dnnl::memory::desc& input,
                                                      const dnnl::memory::desc& weights,
                                                      const dnnl::memory::desc& output, const Forward& forward) const {
    return {{algorithm, input, weights, output, dims_.strides, dims_.dilates, dims_.pads, dims_.pads}, engine, forward};
  }
#endif

  template <class PrimitiveDesc>
  void take(const PrimitiveDesc& desc, const dnnl::memory::desc& input, const dnnl::memory::desc& weights,
            const dnnl::memory::desc& output) {
    implementation_ = desc.impl_info_str();
    if (types_.activations == Type::bf16) implementation_ += " bf16";
    if (isAsItIs_) implementation_ += problem_.plainLayout == taccLayoutNhwc ? " in NHWC" : " in NCHW";
    input_ = dnnl::memory(input, cpu());
    weights_ = dnnl::memory(weights, cpu());
    output_ = dnnl::memory(output, cpu());
  }

  bool reordersInRun() const { return problem_.isPlain && !isAsItIs_; }

  /// From where a program has them.
  void fillActivations() override {
    if (problem_.pass != taccConvBackwardData) copy(givenInput_, input_);
    if (problem_.pass != taccConvForward) copy(givenGradient_, output_);
  }

  /// The result to that format and type, or to KCRS.
  void bringBack(float* to, Format format, Type type) {
    const bool isForward = problem_.pass == taccConvForward;
    const bool isData = problem_.pass == taccConvBackwardData;
    const dnnl::memory& from = isForward ? output_ : isData ? input_ : weights_;
    const dnnl::memory::desc desc = isForward ? plain(dims_.output, format, type)
                                    : isData  ? plain(dims_.input, format, type)
                                              : plain(dims_.weights, dims_.weightFormat);
    dnnl::memory target(desc, cpu(), to);
    copy(from, target);
  }

  void copy(const dnnl::memory& from, dnnl::memory& to) {
    dnnl::memory source = from;
    dnnl::reorder(source, to).execute(stream_, source, to);
    stream_.wait();
  }
  void fillFrom(const tools::AlignedFloats& floats, const dnnl::memory::desc& desc, dnnl::memory& to) {
    copy(dnnl::memory(desc, cpu(), const_cast<float*>(floats.data())), to);
  }
  void fill() {
    fillFrom(problem_.weights, plain(dims_.weights, dims_.weightFormat), weights_);
    const Format given = problem_.isPlain ? format_ : Format::nchw;
    givenInput_ = dnnl::memory(plain(dims_.input, given, types_.activations), cpu());
    givenGradient_ = dnnl::memory(plain(dims_.output, given, types_.activations), cpu());
    for (dnnl::memory* to : {&givenInput_, &input_}) fillFrom(problem_.input, plain(dims_.input, Format::nchw), *to);
    for (dnnl::memory* to : {&givenGradient_, &output_}) {
      fillFrom(problem_.outputGradient, plain(dims_.output, Format::nchw), *to);
    }
  }

  const ConvProblem& problem_;
  Dims dims_;
  Types types_;
  dnnl::stream stream_;
  Format format_;  // of a plain problem
  bool isAsItIs_;
  dnnl::primitive primitive_;
  dnnl::memory input_, weights_, output_;
  std::unordered_map<int, dnnl::memory> arguments_;
  std::string implementation_;
  dnnl::memory givenInput_, givenGradient_;  // as a program has them
  tools::AlignedFloats plain_;               // the result of a plain problem
};

/// Whether oneDNN 2 writes behind memory of its own: seen with gradients of strided 1x1 weights that read NHWC whose
/// channels fill no whole blocks.
bool isUnsafe(const ConvProblem& problem, const std::string& implementation) {
  const tools::Layer& l = problem.layer;
  const bool isStridedProduct =
      l.kernel.height * l.kernel.width == 1 && (l.stride.height > 1 || l.stride.width > 1) && l.groups == 1;
  return DNNL_VERSION_MAJOR < 3 && problem.pass == taccConvBackwardWeights && isStridedProduct &&
         (l.inChannels % 16 != 0 || l.outChannels % 16 != 0) && implementation.starts_with("jit_1x1") &&
         implementation.ends_with("in NHWC");
}

}  // namespace

Contestants makeOnednnContestants(const ConvProblem& problem, int threads, bool winograd) {
  omp_set_num_threads(threads);
  Contestants contestants;
  std::set<std::string> seen;  // training and inference often mean the same kernel
  for (const dnnl::prop_kind kind : {dnnl::prop_kind::forward_training, dnnl::prop_kind::forward_inference}) {
    if (problem.pass != taccConvForward && kind == dnnl::prop_kind::forward_inference) continue;
    for (const dnnl::algorithm algorithm : {dnnl::algorithm::convolution_direct, dnnl::algorithm::convolution_auto,
                                            dnnl::algorithm::convolution_winograd}) {
      if (algorithm != dnnl::algorithm::convolution_direct && !winograd) continue;
      for (const bool isAsItIs : {false, true}) {
        if (isAsItIs && !problem.isPlain) continue;
        try {
          auto contestant = std::make_unique<OnednnContestant>(problem, kind, algorithm, isAsItIs);
          if (isUnsafe(problem, contestant->implementation())) continue;
          if (seen.insert(contestant->implementation()).second) contestants.push_back(std::move(contestant));
        } catch (const dnnl::error&) {
          // It has no such kernel for this layer.
        }
      }
    }
  }
  return contestants;
}

}  // namespace tacc::bench

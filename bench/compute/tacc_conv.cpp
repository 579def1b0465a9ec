// tacc as a contestant.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "compute/conv_problem.hpp"
#include "compute/tacc_calls.hpp"

namespace tacc::bench {
namespace {

double predictedSeconds(const taccConvDesc_t& desc) {
  taccConvPlan_t plan = nullptr;
  check(taccConvPlanCreate(&plan, &desc));
  const std::unique_ptr<taccConvPlan, DestroyConvPlan> owner(plan);
  taccConvInfo_t info{};
  check(taccConvPlanGetInfo(plan, &info));
  return info.predictedSeconds;
}

/// The layouts of a program that may choose them, as all contestants may: blocks of 16 or, for a first layer, an image
/// in NCHW, as `desc` has; of few channels, where blocks would be mostly zeros, NCHW before and behind, or an image in
/// NHWC; of a first layer and of groups of few channels NCHW before and behind, too; and NHWC so. By what the plans
/// say: the cheapest, but where there are more channels only of those that are cheaper than blocks by more than prices
/// are wrong by: most of all in NHWC where blocks are full, of channel-wise layers, first layers forward, and backward
/// to the data.
void chooseLayouts(taccConvDesc_t& desc) {
  constexpr int few = 8;
  constexpr int blockLength = 16;
  constexpr double gainOfFullBlocks = 0.75, gainOfOthers = 0.85;
  const taccConvDesc_t given = desc;
  const double ofBlocks = predictedSeconds(given);
  double least = ofBlocks;
  const auto offer = [&](taccLayout_t input, taccLayout_t output, double gain) {
    taccConvDesc_t other = given;
    other.inputLayout = input;
    other.outputLayout = output;
    const double seconds = predictedSeconds(other);
    if (seconds >= std::min(least, ofBlocks * gain)) return;
    least = seconds;
    desc = other;
  };
  // What products of planes, whose results are the sums over many outputs, take of memory is priced far too low.
  constexpr int mostOutputsOfData = 128;
  const bool isData = given.pass == taccConvBackwardData;
  const int ofGroup = std::max(given.inChannels, given.outChannels) / given.groups;
  if (given.inChannels <= few && given.outChannels <= few) {
    offer(taccLayoutNchw, taccLayoutNchw, 1);
  } else if (given.groups == 1 && given.inChannels <= few && given.kernelHeight * given.kernelWidth > 1 &&
             given.activationType == taccFloat32 && !(isData && given.outChannels > mostOutputsOfData)) {
    offer(taccLayoutNchw, taccLayoutNchw, gainOfFullBlocks);
  } else if (ofGroup > 1 && ofGroup <= few && given.activationType == taccFloat32) {
    offer(taccLayoutNchw, taccLayoutNchw, gainOfOthers);
  }
  if (given.pass == taccConvForward && given.inChannels <= few) offer(taccLayoutNhwc, given.outputLayout, 1);
  const bool areFull = given.inChannels % blockLength == 0 && given.outChannels % blockLength == 0;
  const bool isFirstForward = given.pass == taccConvForward && given.inChannels <= few;
  const bool isChannelWise = given.groups > 1 && ofGroup == 1;
  const double gainOfNhwc = areFull || isChannelWise || isFirstForward || isData ? gainOfFullBlocks : gainOfOthers;
  if (given.activationType == taccFloat32) offer(taccLayoutNhwc, taccLayoutNhwc, gainOfNhwc);
}

class TaccContestant final : public ConvContestant {
 public:
  TaccContestant(const ConvProblem& problem, int threads, bool winograd, const std::string& algorithm)
      : problem_(problem),
        threads_(threads),
        isHalf_(problem.numbers.areBfloat16),
        input_(0),
        gradient_(0),
        packed_(0),
        workspace_(0),
        result_(0) {
    taccConvDesc_t desc = problem.layer.describe(problem.pass, problem.batch, threads, winograd);
    if (!algorithm.empty()) desc.algorithm = algorithm.c_str();
    if (isHalf_) desc.activationType = taccBfloat16;
    desc.roundWeights = problem.numbers.roundsWeights ? 1 : 0;
    // Before layouts are chosen: not every algorithm writes weights in blocks.
    if (problem.pass == taccConvBackwardWeights) {
      desc.weightLayout = problem.isPlain ? taccWeightsKcrs : taccWeightsBlocked;
    }
    if (problem.isPlain) {
      desc.inputLayout = desc.outputLayout = problem.plainLayout;
    } else if (algorithm == "planes") {
      desc.inputLayout = desc.outputLayout = taccLayoutNchw;
    } else if (algorithm.empty()) {
      chooseLayouts(desc);
    }
    inputLayout_ = desc.inputLayout;
    outputLayout_ = desc.outputLayout;
    taccConvPlan_t plan = nullptr;
    check(taccConvPlanCreate(&plan, &desc));
    plan_.reset(plan);
    check(taccConvPlanGetInfo(plan, &info_));
    fillBuffers();
  }

  void run() override {
    runOn(threads_, [&](const taccExecutor_t* executor) { return taccConvRun(plan_.get(), &buffers_, executor); });
  }

  std::string implementation() const override { return fmt::format("{} {}", info_.algorithm, info_.kernel); }

  double predictedSeconds() const override { return info_.predictedSeconds; }

  std::vector<float> result() override {
    std::vector<float> plain(problem_.resultSize());
    bringBack(plain.data());
    return plain;
  }

  bool reorders() const override { return !problem_.isPlain; }

 private:
  /// The result to NCHW or KCRS.
  void bringBack(float* plain) {
    const tools::Layer& l = problem_.layer;
    if (problem_.pass == taccConvBackwardWeights && problem_.isPlain) {
      std::copy_n(result_.data(), problem_.resultSize(), plain);
    } else if (problem_.pass == taccConvBackwardWeights) {
      check(taccReorderWeights(taccWeightsBlocked, result_.data(), taccWeightsKcrs, plain, l.outChannels, l.inChannels,
                               l.kernel.height, l.kernel.width, l.groups));
    } else if (problem_.pass == taccConvForward) {
      giveBack(plain, outputLayout_, l.outChannels, l.outHeight(), l.outWidth());
    } else {
      giveBack(plain, inputLayout_, l.inChannels, l.height, l.width);
    }
  }

  bool isAsItIs(taccLayout_t layout) const { return layout == taccLayoutNchw && !isHalf_; }

  static std::size_t floatsOf(taccLayout_t layout, int batch, int channels, int height, int width) {
    return taccTensorBytes(layout, batch, channels, height, width) / sizeof(float);
  }

  /// A tensor in NCHW to where the plan wants it.
  void bring(const tools::AlignedFloats& plain, taccLayout_t layout, int channels, int height, int width,
             tools::AlignedFloats& to) {
    if (!isHalf_) {
      check(taccReorder(taccLayoutNchw, plain.data(), layout, to.data(), problem_.batch, channels, height, width));
      return;
    }
    tools::AlignedFloats wide(taccTensorBytes(layout, problem_.batch, channels, height, width) / sizeof(float));
    check(taccReorder(taccLayoutNchw, plain.data(), layout, wide.data(), problem_.batch, channels, height, width));
    check(taccConvertNumbers(taccFloat32, wide.data(), taccBfloat16, to.data(), wide.size()));
  }

  /// The result, a tensor of activations, to NCHW.
  void giveBack(float* plain, taccLayout_t layout, int channels, int height, int width) {
    tools::AlignedFloats wide(isHalf_ ? floatsOf(layout, problem_.batch, channels, height, width) : 0);
    if (isHalf_) check(taccConvertNumbers(taccBfloat16, result_.data(), taccFloat32, wide.data(), wide.size()));
    check(taccReorder(layout, isHalf_ ? wide.data() : result_.data(), taccLayoutNchw, plain, problem_.batch, channels,
                      height, width));
  }

  void fillActivations() override {
    const tools::Layer& l = problem_.layer;
    if (problem_.pass != taccConvBackwardData && !isAsItIs(inputLayout_)) {
      bring(problem_.input, inputLayout_, l.inChannels, l.height, l.width, input_);
    }
    if (problem_.pass != taccConvForward && !isAsItIs(outputLayout_)) {
      bring(problem_.outputGradient, outputLayout_, l.outChannels, l.outHeight(), l.outWidth(), gradient_);
    }
  }

  void fillBuffers() {
    packed_ = tools::AlignedFloats(info_.packedWeightBytes / sizeof(float));
    if (info_.packedWeightBytes > 0) check(taccConvPackWeights(plan_.get(), problem_.weights.data(), packed_.data()));
    if (!isAsItIs(inputLayout_)) input_ = tools::AlignedFloats((info_.inputBytes + 3) / sizeof(float));
    if (!isAsItIs(outputLayout_)) gradient_ = tools::AlignedFloats((info_.outputBytes + 3) / sizeof(float));
    fillActivations();
    workspace_ = tools::AlignedFloats(info_.workspaceBytes / sizeof(float));
    const std::size_t resultBytes = problem_.pass == taccConvForward        ? info_.outputBytes
                                    : problem_.pass == taccConvBackwardData ? info_.inputBytes
                                                                            : info_.weightBytes;
    result_ = tools::AlignedFloats((resultBytes + 3) / sizeof(float));
    buffers_ = {isAsItIs(inputLayout_) ? problem_.input.data() : input_.data(),
                packed_.data(),
                isAsItIs(outputLayout_) ? problem_.outputGradient.data() : gradient_.data(),
                nullptr,
                nullptr,
                result_.data(),
                workspace_.data(),
                info_.workspaceBytes};
  }

  const ConvProblem& problem_;
  int threads_;
  bool isHalf_;  // activations in bfloat16
  taccLayout_t inputLayout_ = taccLayoutNchw16c, outputLayout_ = taccLayoutNchw16c;
  std::unique_ptr<taccConvPlan, DestroyConvPlan> plan_;
  taccConvInfo_t info_{};
  tools::AlignedFloats input_, gradient_, packed_, workspace_, result_;
  taccConvBuffers_t buffers_{};
};

}  // namespace

std::unique_ptr<ConvContestant> makeTaccContestant(const ConvProblem& problem, int threads, bool winograd,
                                                   const std::string& algorithm) {
  return std::make_unique<TaccContestant>(problem, threads, winograd, algorithm);
}

Contestants makeTaccContestants(const ConvProblem& problem, int threads, bool winograd) {
  Contestants contestants;
  std::istringstream names(taccConvAlgorithms());
  for (std::string name; std::getline(names >> std::ws, name, ',');) {
    if (name == "reference" || (!winograd && name.starts_with("winograd"))) continue;
    try {
      contestants.push_back(makeTaccContestant(problem, threads, winograd, name));
    } catch (const std::runtime_error&) {
      // It does not serve this layer.
    }
  }
  return contestants;
}

}  // namespace tacc::bench

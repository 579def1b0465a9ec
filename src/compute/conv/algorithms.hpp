// All algorithms: for each which descriptions it serves, and how it makes a plan for one. One file each.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "compute/conv/cost.hpp"
#include "compute/conv/plan.hpp"

namespace tacc::conv {

/// When makePlan() takes an algorithm that serves: if it is the cheapest; always, as it serves only where it is worth
/// while by a special rule; or never, unless desc.algorithm names it.
enum class ConvOffer { byPrice, byOwnRule, byNameOnly };

/// Layouts of the output, or of its gradient, that an algorithm may serve; which of them, and of the input's, its
/// serves() says.
enum class OutputLayouts { blocked, plain, blockedOrNhwc, any };

struct ConvAlgorithm {
  std::string_view name;
  bool (*serves)(const Description&);
  std::unique_ptr<ConvPlan> (*make)(const Description&, const KernelSet&);
  ConvOffer offer = ConvOffer::byPrice;
  OutputLayouts outputs = OutputLayouts::blocked;
};

std::span<const ConvAlgorithm> allAlgorithms();

/// Whether an algorithm serves a description, layouts included.
inline bool serves(const ConvAlgorithm& algorithm, const Description& d) {
  const bool isPlain = d.outputLayout != taccLayoutNchw16c;
  const bool isKnown = algorithm.outputs == OutputLayouts::any ||
                       isPlain == (algorithm.outputs == OutputLayouts::plain) ||
                       (algorithm.outputs == OutputLayouts::blockedOrNhwc && d.outputLayout == taccLayoutNhwc);
  return isKnown && algorithm.serves(d);
}

/// The names of those that serve a description, or of all, with commas between.
std::string algorithmNames(const Description* served);

struct ChosenPlan {
  std::string_view algorithm;
  std::unique_ptr<ConvPlan> plan;
};

/// The one of the two with less predictedSeconds, `best` of equal ones; either may have no plan.
inline void takeCheaper(ChosenPlan& best, ChosenPlan other) {
  if (other.plan == nullptr) return;
  if (best.plan == nullptr || other.plan->predictedSeconds() < best.plan->predictedSeconds()) best = std::move(other);
}

/// The description with what algorithms want to know of the kernels, for `serves`.
Description withKernels(const Description& description, const KernelSet& kernels);

/// The cheapest plan of the algorithms that serve a description as it is, or of the one that it names, from
/// withKernels(); none where there is none.
ChosenPlan cheapestServing(const Description& description, const KernelSet& kernels);

/// The cheapest plan for a description with the given kernels, by predictedSeconds(). Throws when no algorithm serves
/// it, or not the one that it names.
ChosenPlan makePlan(const Description& description, const KernelSet& kernels);

/// The same for activations in bfloat16: a float32 plan for some images at a time, between conversions.
ChosenPlan makeBfloat16Plan(const Description& description, const KernelSet& kernels);

/// The same convolution without what does not matter: taps at the ends of the kernel that are outside the image for all
/// results, for gradients of the weights only where they are many; strides between results of which there is one; and
/// columns of pixels, which are lines, and one pixel of NCHW, which is one of NHWC, as they lie in memory alike.
Description simplified(const Description& description);
/// A plan for `description` of one for its simplified().
std::unique_ptr<ConvPlan> makeCropped(const Description& description, std::unique_ptr<ConvPlan> inner);

/// Whether the input or the output is NCHW or NHWC.
constexpr bool hasPlainLayout(const Description& d) {
  return d.inputLayout != taccLayoutNchw16c || d.outputLayout != taccLayoutNchw16c;
}
/// Whether it is from NCHW to NCHW, where the pixels of a channel follow each other.
constexpr bool isPlain(const Description& d) {
  return d.inputLayout == taccLayoutNchw && d.outputLayout == taccLayoutNchw;
}
/// The cheapest plan that reorders plain layouts, some images at a time, of those that serve what is reordered; none
/// where there is none. The description is from withKernels().
ChosenPlan makePlainPlan(const Description& description, const KernelSet& kernels);

bool servesSplitProducts(const Description& d);
std::unique_ptr<ConvPlan> makeSplitProducts(const Description& d, const KernelSet& kernels);
bool servesSplitGradient(const Description& d);
std::unique_ptr<ConvPlan> makeSplitGradient(const Description& d, const KernelSet& kernels);
bool servesStridedProduct(const Description& d);
bool servesStridedPlanes(const Description& d);
std::unique_ptr<ConvPlan> makeStridedProduct(const Description& d, const KernelSet& kernels);
bool servesProductScatter(const Description& d);
std::unique_ptr<ConvPlan> makeProductScatter(const Description& d, const KernelSet& kernels);
bool servesDirectForward(const Description& d);
std::unique_ptr<ConvPlan> makeDirectForward(const Description& d, const KernelSet& kernels);
bool servesDirectBackwardData(const Description& d);
std::unique_ptr<ConvPlan> makeDirectBackwardData(const Description& d, const KernelSet& kernels);
bool servesDirectBackwardWeights(const Description& d);
std::unique_ptr<ConvPlan> makeDirectBackwardWeights(const Description& d, const KernelSet& kernels);
bool servesFewOutputs(const Description& d);
std::unique_ptr<ConvPlan> makeFewOutputs(const Description& d, const KernelSet& kernels);
bool servesFewPixels(const Description& d);
std::unique_ptr<ConvPlan> makeFewPixels(const Description& d, const KernelSet& kernels);
bool servesFewChannelsForward(const Description& d);
std::unique_ptr<ConvPlan> makeFewChannelsForward(const Description& d, const KernelSet& kernels);
bool servesFewChannelsBackwardWeights(const Description& d);
std::unique_ptr<ConvPlan> makeFewChannelsBackwardWeights(const Description& d, const KernelSet& kernels);
bool servesDepthwise(const Description& d);
std::unique_ptr<ConvPlan> makeDepthwise(const Description& d, const KernelSet& kernels);
bool servesDepthwiseNhwc(const Description& d);
std::unique_ptr<ConvPlan> makeDepthwiseNhwc(const Description& d, const KernelSet& kernels);
bool servesDepthwisePhases(const Description& d);
std::unique_ptr<ConvPlan> makeDepthwisePhases(const Description& d, const KernelSet& kernels);
bool servesDepthwiseGradients(const Description& d);
std::unique_ptr<ConvPlan> makeDepthwiseGradients(const Description& d, const KernelSet& kernels);
bool servesWinogradTwo(const Description& d);
std::unique_ptr<ConvPlan> makeWinogradTwo(const Description& d, const KernelSet& kernels);
bool servesWinogradFour(const Description& d);
std::unique_ptr<ConvPlan> makeWinogradFour(const Description& d, const KernelSet& kernels);
bool servesWinogradFive(const Description& d);
std::unique_ptr<ConvPlan> makeWinogradFive(const Description& d, const KernelSet& kernels);
bool servesWinogradSix(const Description& d);
std::unique_ptr<ConvPlan> makeWinogradSix(const Description& d, const KernelSet& kernels);
bool servesGrouped(const Description& d);
std::unique_ptr<ConvPlan> makeGrouped(const Description& d, const KernelSet& kernels);
bool servesRegrouped(const Description& d);
std::unique_ptr<ConvPlan> makeRegrouped(const Description& d, const KernelSet& kernels);
bool servesGroupedBackwardWeights(const Description& d);
std::unique_ptr<ConvPlan> makeGroupedBackwardWeights(const Description& d, const KernelSet& kernels);
bool servesExplicitGemm(const Description& d);
std::unique_ptr<ConvPlan> makeExplicitGemm(const Description& d, const KernelSet& kernels);
bool servesPlanes(const Description& d);
std::unique_ptr<ConvPlan> makePlanes(const Description& d, const KernelSet& kernels);
bool servesDepthwisePlanes(const Description& d);
std::unique_ptr<ConvPlan> makeDepthwisePlanes(const Description& d, const KernelSet& kernels);
bool servesPlainProduct(const Description& d);
std::unique_ptr<ConvPlan> makePlainProduct(const Description& d, const KernelSet& kernels);
bool servesOuterProducts(const Description& d);
std::unique_ptr<ConvPlan> makeOuterProducts(const Description& d, const KernelSet& kernels);
bool servesFoldedProduct(const Description& d);
std::unique_ptr<ConvPlan> makeFoldedProduct(const Description& d, const KernelSet& kernels);
bool servesPlainGradient(const Description& d);
std::unique_ptr<ConvPlan> makePlainGradient(const Description& d, const KernelSet& kernels);
bool servesShortSums(const Description& d);
std::unique_ptr<ConvPlan> makeShortSums(const Description& d, const KernelSet& kernels);
bool servesInnerProducts(const Description& d);
std::unique_ptr<ConvPlan> makeInnerProducts(const Description& d, const KernelSet& kernels);
bool servesTapScatter(const Description& d);
std::unique_ptr<ConvPlan> makeTapScatter(const Description& d, const KernelSet& kernels);
bool servesReference(const Description& d);
std::unique_ptr<ConvPlan> makeReference(const Description& d, const KernelSet& kernels);

/// The vector kernels read bias in whole blocks: bytes of workspace for a copy that is long enough, often 0.
std::size_t biasWorkspaceBytes(const Description& d);
/// That copy at the beginning of the workspace, or the bias itself, or null when there is none.
const float* paddedBias(const Description& d, const Buffers& buffers);

}  // namespace tacc::conv

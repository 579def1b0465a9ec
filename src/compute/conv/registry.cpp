#include <fmt/format.h>

#include <algorithm>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/cost.hpp"
#include "compute/conv/weights.hpp"
#include "core/error.hpp"

namespace tacc::conv {
namespace {

constexpr ConvAlgorithm algorithms[] = {
    {"few-channels", servesFewChannelsForward, makeFewChannelsForward, ConvOffer::byPrice,
     OutputLayouts::blockedOrNhwc},
    {"few-channels", servesFewChannelsBackwardWeights, makeFewChannelsBackwardWeights, ConvOffer::byPrice,
     OutputLayouts::blockedOrNhwc},
    {"winograd-6x6", servesWinogradSix, makeWinogradSix, ConvOffer::byOwnRule},
    {"winograd-5x5", servesWinogradFive, makeWinogradFive, ConvOffer::byOwnRule},
    {"winograd-4x4", servesWinogradFour, makeWinogradFour, ConvOffer::byOwnRule},
    {"winograd-2x2", servesWinogradTwo, makeWinogradTwo, ConvOffer::byOwnRule},
    {"split", servesSplitProducts, makeSplitProducts, ConvOffer::byOwnRule, OutputLayouts::blockedOrNhwc},
    {"split", servesSplitGradient, makeSplitGradient, ConvOffer::byOwnRule, OutputLayouts::blockedOrNhwc},
    {"depthwise-planes", servesDepthwisePlanes, makeDepthwisePlanes, ConvOffer::byPrice, OutputLayouts::plain},
    {"planes", servesPlanes, makePlanes, ConvOffer::byPrice, OutputLayouts::plain},
    {"plain-product", servesPlainProduct, makePlainProduct, ConvOffer::byPrice, OutputLayouts::plain},
    {"plain-product", servesFoldedProduct, makeFoldedProduct, ConvOffer::byPrice, OutputLayouts::plain},
    {"plain-product", servesPlainGradient, makePlainGradient, ConvOffer::byPrice, OutputLayouts::plain},
    {"outer-products", servesOuterProducts, makeOuterProducts, ConvOffer::byPrice, OutputLayouts::any},
    {"product-scatter", servesProductScatter, makeProductScatter},
    {"strided-product", servesStridedProduct, makeStridedProduct, ConvOffer::byPrice, OutputLayouts::blockedOrNhwc},
    {"strided-product", servesStridedPlanes, makeStridedProduct, ConvOffer::byPrice, OutputLayouts::plain},
    {"direct", servesDirectForward, makeDirectForward, ConvOffer::byPrice, OutputLayouts::blockedOrNhwc},
    {"direct", servesDirectBackwardData, makeDirectBackwardData, ConvOffer::byPrice, OutputLayouts::blockedOrNhwc},
    {"direct", servesDirectBackwardWeights, makeDirectBackwardWeights, ConvOffer::byPrice,
     OutputLayouts::blockedOrNhwc},
    {"short-sums", servesShortSums, makeShortSums, ConvOffer::byPrice, OutputLayouts::blockedOrNhwc},
    {"inner-products", servesInnerProducts, makeInnerProducts, ConvOffer::byPrice, OutputLayouts::plain},
    {"tap-scatter", servesTapScatter, makeTapScatter},
    {"few-pixels", servesFewPixels, makeFewPixels, ConvOffer::byPrice, OutputLayouts::blockedOrNhwc},
    {"few-outputs", servesFewOutputs, makeFewOutputs, ConvOffer::byPrice, OutputLayouts::blockedOrNhwc},
    {"depthwise", servesDepthwise, makeDepthwise, ConvOffer::byPrice, OutputLayouts::blockedOrNhwc},
    {"depthwise", servesDepthwisePhases, makeDepthwisePhases, ConvOffer::byPrice, OutputLayouts::blockedOrNhwc},
    {"depthwise", servesDepthwiseGradients, makeDepthwiseGradients, ConvOffer::byPrice, OutputLayouts::blockedOrNhwc},
    {"depthwise-nhwc", servesDepthwiseNhwc, makeDepthwiseNhwc, ConvOffer::byPrice, OutputLayouts::plain},
    {"regrouped", servesRegrouped, makeRegrouped},
    {"grouped", servesGrouped, makeGrouped},
    {"grouped", servesGroupedBackwardWeights, makeGroupedBackwardWeights},
    {"explicit-gemm", servesExplicitGemm, makeExplicitGemm, ConvOffer::byNameOnly},
    {"reference", servesReference, makeReference, ConvOffer::byNameOnly},
};

constexpr const char* passNames[] = {"forward", "backward data", "backward weights"};

[[noreturn]] void failUnserved(const Description& d) {
  const auto isNamed = [&](const ConvAlgorithm& algorithm) { return algorithm.name == d.algorithm; };
  if (!d.algorithm.empty() && std::none_of(std::begin(algorithms), std::end(algorithms), isNamed)) {
    fail(taccInvalidArgument, "there is no algorithm \"{}\"; there are {}", d.algorithm, algorithmNames(nullptr));
  }
  Description served = d;
  served.inputLayout = served.outputLayout = taccLayoutNchw16c;  // others are reordered to it
  const std::string names = algorithmNames(&served);
  if (!d.algorithm.empty()) {
    Description plain = d;
    plain.inputLayout = plain.outputLayout = taccLayoutNchw;
    const bool isOfPlain =
        std::any_of(std::begin(algorithms), std::end(algorithms),
                    [&](const ConvAlgorithm& algorithm) { return isNamed(algorithm) && serves(algorithm, plain); });
    fail(taccInvalidArgument, "algorithm \"{}\" does not serve {} of {}{}; {} would", d.algorithm, passNames[d.pass],
         d.shape.text(), isOfPlain ? ", other than from NCHW to NCHW" : "", names);
  }
  fail(taccInvalidArgument, "no fast algorithm serves {} of {}; {} would, if desc.algorithm names it",
       passNames[d.pass], d.shape.text(), names);
}

}  // namespace

std::span<const ConvAlgorithm> allAlgorithms() { return algorithms; }

std::string algorithmNames(const Description* served) {
  std::string names;
  std::string_view last;
  for (const ConvAlgorithm& algorithm : algorithms) {
    if ((served != nullptr && !serves(algorithm, *served)) || algorithm.name == last) continue;
    names += (names.empty() ? "" : ", ") + std::string(algorithm.name);
    last = algorithm.name;
  }
  return names;
}

Description withKernels(const Description& given, const KernelSet& kernels) {
  Description description = given;
  description.hasTwoWideUnits = hasTwoWideUnits(kernels);
  description.vectorLanes = kernels.fmaLanes;
  description.splits = kernels.split != nullptr;
  return description;
}

ChosenPlan cheapestServing(const Description& description, const KernelSet& kernels) {
  const bool isNamed = !description.algorithm.empty();
  ChosenPlan best;
  for (const ConvAlgorithm& algorithm : algorithms) {
    const bool isOffered = isNamed ? algorithm.name == description.algorithm : algorithm.offer != ConvOffer::byNameOnly;
    if (!isOffered || !serves(algorithm, description)) continue;
    ChosenPlan plan{algorithm.name, algorithm.make(description, kernels)};
    if (!isNamed && algorithm.offer == ConvOffer::byOwnRule) return plan;
    takeCheaper(best, std::move(plan));
  }
  return best;
}

namespace {

ChosenPlan planOf(const Description& description, const KernelSet& kernels) {
  ChosenPlan best = cheapestServing(description, kernels);
  if (hasPlainLayout(description)) takeCheaper(best, makePlainPlan(description, kernels));
  return best;
}

}  // namespace

ChosenPlan makePlan(const Description& given, const KernelSet& kernels) {
  findTransposes();  // not when the plan runs, which takes no memory
  if (given.isBfloat16) return makeBfloat16Plan(given, kernels);
  const Description description = withKernels(given, kernels);
  ChosenPlan best = planOf(simplified(description), kernels);
  if (best.plan != nullptr) {
    best.plan = makeCropped(description, std::move(best.plan));
    return best;
  }
  // An algorithm that is asked for by its name may be one for what the simplified shape does not have.
  best = planOf(description, kernels);
  if (best.plan == nullptr) failUnserved(description);
  return best;
}

}  // namespace tacc::conv

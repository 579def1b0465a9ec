#include <fmt/format.h>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/cost.hpp"
#include "core/error.hpp"

namespace tacc::conv {
namespace {

constexpr ConvAlgorithm algorithms[] = {
    {"few-channels", servesFewChannelsForward, makeFewChannelsForward},
    {"few-channels", servesFewChannelsBackwardWeights, makeFewChannelsBackwardWeights},
    {"winograd-6x6", servesWinogradSix, makeWinogradSix},
    {"winograd-5x5", servesWinogradFive, makeWinogradFive},
    {"winograd-4x4", servesWinogradFour, makeWinogradFour},
    {"winograd-2x2", servesWinogradTwo, makeWinogradTwo},
    {"split", servesSplitProducts, makeSplitProducts},
    {"split", servesSplitGradient, makeSplitGradient},
    {"strided-product", servesStridedProduct, makeStridedProduct},
    {"direct", servesDirectForward, makeDirectForward},
    {"direct", servesDirectBackwardData, makeDirectBackwardData},
    {"direct", servesDirectBackwardWeights, makeDirectBackwardWeights},
    {"depthwise", servesDepthwise, makeDepthwise},
    {"depthwise", servesDepthwiseGradients, makeDepthwiseGradients},
    {"grouped", servesGrouped, makeGrouped},
    {"grouped", servesGroupedBackwardWeights, makeGroupedBackwardWeights},
    {"explicit-gemm", servesExplicitGemm, makeExplicitGemm},
    {"reference", servesReference, makeReference},
};

constexpr const char* passNames[] = {"forward", "backward data", "backward weights"};

}  // namespace

std::span<const ConvAlgorithm> allAlgorithms() { return algorithms; }

std::string algorithmNames(const Description* served) {
  std::string names;
  std::string_view last;
  for (const ConvAlgorithm& algorithm : algorithms) {
    if ((served != nullptr && !algorithm.serves(*served)) || algorithm.name == last) continue;
    names += (names.empty() ? "" : ", ") + std::string(algorithm.name);
    last = algorithm.name;
  }
  return names;
}

Description withKernels(const Description& given, const KernelSet& kernels) {
  Description description = given;
  description.hasSmallTiles = kernels.registers * kernels.fmaLanes < 512;
  description.hasTwoWideUnits = hasTwoWideUnits(kernels);
  description.splits = kernels.split != nullptr;
  return description;
}

ChosenPlan makePlan(const Description& given, const KernelSet& kernels) {
  if (given.isBfloat16) return makeBfloat16Plan(given, kernels);
  if (needsReordering(withKernels(given, kernels))) return makePlainPlan(given, kernels);
  const Description description = withKernels(given, kernels);
  const Shape& shape = description.shape;
  bool isKnown = description.algorithm.empty();
  for (const ConvAlgorithm& algorithm : algorithms) {
    if (!description.algorithm.empty() && algorithm.name != description.algorithm) continue;
    isKnown = true;
    if (algorithm.serves(description)) return {algorithm.name, algorithm.make(description, kernels)};
  }
  if (!isKnown) {
    fail(taccInvalidArgument, "there is no algorithm \"{}\"; there are {}", description.algorithm,
         algorithmNames(nullptr));
  }
  const std::string served = algorithmNames(&description);
  if (!description.algorithm.empty() && !served.empty()) {
    fail(taccInvalidArgument, "algorithm \"{}\" does not serve {} of {}; {} would", description.algorithm,
         passNames[description.pass], shape.text(), served);
  }
  fail(taccInternalError, "no algorithm serves {} of {}", passNames[description.pass], shape.text());
}

}  // namespace tacc::conv

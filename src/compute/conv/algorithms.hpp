// All algorithms: for each which descriptions it serves, and how it makes a plan for one. One file each.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "compute/conv/cost.hpp"
#include "compute/conv/plan.hpp"

namespace tacc::conv {

struct ConvAlgorithm {
  std::string_view name;
  bool (*serves)(const Description&);
  std::unique_ptr<ConvPlan> (*make)(const Description&, const KernelSet&);
};

/// The best first: the first one that serves a description is chosen.
std::span<const ConvAlgorithm> allAlgorithms();

/// The names of those that serve a description, or of all, with commas between.
std::string algorithmNames(const Description* served);

struct ChosenPlan {
  std::string_view algorithm;
  std::unique_ptr<ConvPlan> plan;
};

/// The description with what algorithms want to know of the kernels, for `serves`.
Description withKernels(const Description& description, const KernelSet& kernels);

/// The plan for a description with the given kernels. Throws when no algorithm serves it, or not the one that it
/// forces.
ChosenPlan makePlan(const Description& description, const KernelSet& kernels);

/// The same for activations in bfloat16: a float32 plan for some images at a time, between conversions.
ChosenPlan makeBfloat16Plan(const Description& description, const KernelSet& kernels);

/// Whether makePlan() takes makePlainPlan(): a layout is plain, and no algorithm reads it as it is.
bool needsReordering(const Description& description);
/// The plan for any layouts: one for blocks of channels, for some images at a time, between reorders.
ChosenPlan makePlainPlan(const Description& description, const KernelSet& kernels);

bool servesSplitProducts(const Description& d);
std::unique_ptr<ConvPlan> makeSplitProducts(const Description& d, const KernelSet& kernels);
bool servesSplitGradient(const Description& d);
std::unique_ptr<ConvPlan> makeSplitGradient(const Description& d, const KernelSet& kernels);
bool servesStridedProduct(const Description& d);
std::unique_ptr<ConvPlan> makeStridedProduct(const Description& d, const KernelSet& kernels);
bool servesDirectForward(const Description& d);
std::unique_ptr<ConvPlan> makeDirectForward(const Description& d, const KernelSet& kernels);
bool servesDirectBackwardData(const Description& d);
std::unique_ptr<ConvPlan> makeDirectBackwardData(const Description& d, const KernelSet& kernels);
bool servesDirectBackwardWeights(const Description& d);
std::unique_ptr<ConvPlan> makeDirectBackwardWeights(const Description& d, const KernelSet& kernels);
bool servesFewChannelsForward(const Description& d);
std::unique_ptr<ConvPlan> makeFewChannelsForward(const Description& d, const KernelSet& kernels);
bool servesFewChannelsBackwardWeights(const Description& d);
std::unique_ptr<ConvPlan> makeFewChannelsBackwardWeights(const Description& d, const KernelSet& kernels);
bool servesDepthwise(const Description& d);
std::unique_ptr<ConvPlan> makeDepthwise(const Description& d, const KernelSet& kernels);
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
bool servesGroupedBackwardWeights(const Description& d);
std::unique_ptr<ConvPlan> makeGroupedBackwardWeights(const Description& d, const KernelSet& kernels);
bool servesExplicitGemm(const Description& d);
std::unique_ptr<ConvPlan> makeExplicitGemm(const Description& d, const KernelSet& kernels);
bool servesReference(const Description& d);
std::unique_ptr<ConvPlan> makeReference(const Description& d, const KernelSet& kernels);

/// The vector kernels read bias in whole blocks: bytes of workspace for a copy that is long enough, often 0.
std::size_t biasWorkspaceBytes(const Description& d);
/// That copy at the beginning of the workspace, or the bias itself, or null when there is none.
const float* paddedBias(const Description& d, const Buffers& buffers);

}  // namespace tacc::conv

// Two layers one behind the other: what tacc computes as one chain (taccConvChainPlanCreate), and others in turn.
#pragma once

#include "compute/conv_bench.hpp"
#include "compute/conv_problem.hpp"

namespace tacc::bench {

/// A channel-wise layer and the 1x1 layer that a network has behind it.
struct LayerChain {
  tools::Layer first, second;
  /// As a line of the table: the first layer, with the second one's outputs.
  tools::Layer both() const;
};
std::vector<LayerChain> findChains(const std::vector<tools::Layer>& layers);

/// tacc's plan for both, by its own choice or the chain algorithm of that name.
std::unique_ptr<ConvContestant> makeTaccChain(const ConvProblem& first, const ConvProblem& second, int threads,
                                              const std::string& algorithm);

/// Beside tacc's choice: both of its ways, in the name of "tacc", and each peer's layers in turn, of which the second
/// one reads what the first one writes.
ConvResult measureChain(const ConvOptions& options, const std::string& network, const LayerChain& chain, int batch);

}  // namespace tacc::bench

// Plans whose results have the same bits however they run: those that combine every element in the order of the ranks.
#pragma once

#include "algorithms/registry.hpp"

namespace tacc {

/// What plans of this number of ranks, and of one less, show is taken to hold for more ranks.
constexpr int mostRanksProven = 256;

/// Whether the algorithm's plan for `request` combines the contributions to every element as ((x0 + x1) + x2) ..., in
/// one pass, by its certificate. Its bits then depend on the contributions and on the number of ranks alone. True where
/// nothing is reduced. Above 256 ranks plans of 256 and of 255 stand for it, with the root at the same end or in the
/// middle; of one that follows a layout none does. Cost: two proofs, above 256 ranks four.
bool combinesInRankOrder(const Algorithm& algorithm, const PlanRequest& request);

}  // namespace tacc

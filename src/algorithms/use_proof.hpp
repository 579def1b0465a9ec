// The proof of a plan that is about to run.
#pragma once

#include "algorithms/registry.hpp"

namespace tacc {

/// Ranks of a plan that is proven when it is first used. The tests prove all plans of that many ranks but for the
/// layouts, which are without number.
constexpr int mostRanksProvenAtUse = 64;

/// Whether proveForUse() does anything: the plan follows groups or dimensions, of ranks that are not too many. In a
/// debug build all plans of so few ranks are proven.
bool needsProofAtUse(const Algorithm& algorithm, const PlanRequest& request) noexcept;

/// Proves the whole plan of a request that the algorithm serves, once for each that the caller remembers. Throws Error
/// (taccInternalError): what is wrong with which algorithm's plan, and where. Cost: verify()'s.
void proveForUse(const Algorithm& algorithm, const PlanRequest& request);

}  // namespace tacc

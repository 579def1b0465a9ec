// The proof of a plan that is about to run.
#pragma once

#include "algorithms/registry.hpp"

namespace tacc {

/// Ranks of a plan that is proven when it is first used. The tests prove all plans of that many ranks but for the
/// layouts, which are without number.
constexpr int mostRanksProvenAtUse = 64;

/// Whether all plans of so few ranks are proven: in a debug build.
#ifdef TACC_DEBUG_BUILD
constexpr bool provesAllAtUse = true;
#else
constexpr bool provesAllAtUse = false;
#endif

/// Whether proveForUse() does anything: the plan follows groups or dimensions, or `all` are proven, of ranks that are
/// not too many.
bool needsProofAtUse(const Algorithm& algorithm, const PlanRequest& request, bool all = provesAllAtUse) noexcept;

/// Proves the whole plan of a request that the algorithm serves, once for each that the caller remembers. Throws Error
/// (taccInternalError): what is wrong with which algorithm's plan, and where. Cost: verify()'s.
void proveForUse(const Algorithm& algorithm, const PlanRequest& request, bool all = provesAllAtUse);

}  // namespace tacc

#include "algorithms/use_proof.hpp"

#include "algorithms/verifier.hpp"
#include "core/error.hpp"

namespace tacc {
namespace {

#ifdef TACC_DEBUG_BUILD
constexpr bool isDebugBuild = true;
#else
constexpr bool isDebugBuild = false;
#endif

}  // namespace

bool needsProofAtUse(const Algorithm& algorithm, const PlanRequest& request) noexcept {
  return (followsLayout(algorithm, request) || isDebugBuild) && request.ranks <= mostRanksProvenAtUse;
}

void proveForUse(const Algorithm& algorithm, const PlanRequest& request) {
  if (!needsProofAtUse(algorithm, request)) return;
  try {
    verify(makePlan(algorithm, request));
  } catch (const Error& error) {
    fail(taccInternalError, "the plan of {} for {} of {} ranks, root {}, is wrong and does not run: {}", algorithm.name,
         nameOf(request.collective), request.ranks, request.root, error.what());
  }
}

}  // namespace tacc

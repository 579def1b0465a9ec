#include "algorithms/use_proof.hpp"

#include "algorithms/verifier.hpp"
#include "core/error.hpp"

namespace tacc {

bool needsProofAtUse(const Algorithm& algorithm, const PlanRequest& request, bool all) noexcept {
  return (followsLayout(algorithm, request) || all) && request.ranks <= mostRanksProvenAtUse;
}

void proveForUse(const Algorithm& algorithm, const PlanRequest& request, bool all) {
  if (!needsProofAtUse(algorithm, request, all)) return;
  try {
    verify(makePlan(algorithm, request));
  } catch (const Error& error) {
    fail(taccInternalError, "the plan of {} for {} of {} ranks, root {}, is wrong and does not run: {}", algorithm.name,
         nameOf(request.collective), request.ranks, request.root, error.what());
  }
}

}  // namespace tacc

#include "algorithms/rank_order.hpp"

#include <algorithm>
#include <array>

#include "algorithms/verifier.hpp"

namespace tacc {
namespace {

bool isProvenInOrder(const Algorithm& algorithm, const PlanRequest& request) {
  const Algorithm& reference = *std::ranges::find_if(algorithms(), &Algorithm::sumsInOnePass);
  const Certificate found = verify(makePlan(algorithm, request)), asked = verify(makePlan(reference, request));
  // 16-bit numbers are widened for prefixes, so nothing is rounded on the way.
  return isPrefix(request.collective) ? found.reductionSequence == asked.reductionSequence
                                      : found.reductionOrder == asked.reductionOrder;
}

/// Of few ranks, one that stands for a request of many: the root is at the same end, or in the middle as there.
PlanRequest standIn(const PlanRequest& request, int ranks) {
  const int root = request.root == 0 ? 0 : request.root == request.ranks - 1 ? ranks - 1 : ranks / 2;
  return {request.collective, ranks, root};
}

}  // namespace

bool combinesInRankOrder(const Algorithm& algorithm, const PlanRequest& request) {
  if (!isReduction(request.collective)) return true;
  if (request.ranks <= mostRanksProven) return isProvenInOrder(algorithm, request);
  if (followsLayout(algorithm, request)) return false;
  // A plan of a power of two may be another one than its neighbours.
  return std::ranges::all_of(std::array{mostRanksProven, mostRanksProven - 1}, [&](int ranks) {
    const PlanRequest fewer = standIn(request, ranks);
    return algorithm.serves(fewer) && isProvenInOrder(algorithm, fewer);
  });
}

}  // namespace tacc

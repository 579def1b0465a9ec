#include "algorithms/rank_order.hpp"

#include <algorithm>
#include <string>

#include "algorithms/verifier.hpp"
#include "core/error.hpp"

namespace tacc {

bool combinesInRankOrder(const Algorithm& algorithm, const PlanRequest& request) {
  if (!isReduction(request.collective)) return true;
  const Algorithm& reference = *std::ranges::find_if(algorithms(), &Algorithm::sumsInOnePass);
  if (isPrefix(request.collective))
    // 16-bit numbers are widened for them, so nothing is rounded on the way.
    return verify(makePlan(algorithm, request)).reductionSequence ==
           verify(makePlan(reference, request)).reductionSequence;
  return verify(makePlan(algorithm, request)).reductionOrder == verify(makePlan(reference, request)).reductionOrder;
}

void failOnOrder(const Algorithm& algorithm, const PlanRequest& request) {
  fail(taccInvalidUsage,
       "algorithm {} combines in an order of its own, and the communicator is reproducible; for {} of "
       "{} ranks these combine in the order of the ranks: {}",
       algorithm.name, nameOf(request.collective), request.ranks, namesOfThose([&](const Algorithm& other) {
         return other.serves(request) && combinesInRankOrder(other, request);
       }));
}

}  // namespace tacc

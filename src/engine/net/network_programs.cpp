#include "engine/net/network_programs.hpp"

#include "algorithms/use_proof.hpp"

namespace tacc {

LocalPlan NetworkPrograms::planOf(const Algorithm& algorithm, Collective collective, int root, int number) const {
  PlanRequest request = layout_;
  request.collective = collective;
  request.root = root;
  proveForUse(algorithm, request);
  return makeLocalPlan(algorithm, request, number);
}

const NetworkProgram& NetworkPrograms::whole(const Algorithm& algorithm, Collective collective, int root, int number,
                                             bool inPlace) {
  const std::tuple key{&algorithm, collective, root, number, inPlace};
  const auto found = whole_.find(key);
  if (found != whole_.end()) return found->second;
  const LocalPlan plan = planOf(algorithm, collective, root, number);
  return whole_.emplace(key, lowerForNetwork(plan, inPlace)).first->second;
}

const NetworkParts& NetworkPrograms::parts(const Algorithm& algorithm, int number) {
  const std::pair key{&algorithm, number};
  const auto found = parts_.find(key);
  if (found != parts_.end()) return found->second;
  ResultSplit split = splitAtResults(planOf(algorithm, Collective::allReduce, 0, number));
  NetworkParts parts{lowerForNetwork(split.sums, true), lowerForNetwork(split.results, false),
                     std::move(split.complete)};
  return parts_.emplace(key, std::move(parts)).first->second;
}

}  // namespace tacc

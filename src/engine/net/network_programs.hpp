// The network programs of one rank, so that a repeated call neither plans nor lowers.
#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/registry.hpp"
#include "algorithms/result_split.hpp"
#include "engine/net/network_program.hpp"

namespace tacc {

/// An allreduce in two parts (algorithms/result_split.hpp): sums, which run in place, then results.
struct NetworkParts {
  NetworkProgram sums, results;
  std::vector<ResultSplit::Blocks> complete;  // that `sums` completes
};

class NetworkPrograms {
 public:
  /// `layout`: a request of any collective that says where the ranks are.
  explicit NetworkPrograms(PlanRequest layout) : layout_(std::move(layout)) {}

  /// What rank `number` of the plan runs; proven where it has to be, lowered and kept at its first use.
  const NetworkProgram& whole(const Algorithm& algorithm, Collective collective, int root, int number, bool inPlace);
  /// The same of an allreduce in two parts.
  const NetworkParts& parts(const Algorithm& algorithm, int number);

 private:
  LocalPlan planOf(const Algorithm& algorithm, Collective collective, int root, int number) const;

  PlanRequest layout_;
  std::map<std::tuple<const Algorithm*, Collective, int, int, bool>, NetworkProgram> whole_;
  std::map<std::pair<const Algorithm*, int>, NetworkParts> parts_;
};

}  // namespace tacc

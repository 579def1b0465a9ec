// The registry of algorithms: selection, the verifier's tests, the documentation and the bench enumerate from it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "algorithms/exchanges.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {

struct Algorithm {
  std::string_view name;     // as TACC_ALGO and --algo take it
  std::string_view summary;  // one sentence
  std::string_view source;   // paper or book
  /// Whether it can serve the request (collective, p, root).
  bool (*serves)(const PlanRequest&);
  /// Writes the steps of the writer's rank. Called only for requests of two ranks and more that it serves.
  void (*write)(const PlanRequest&, PlanWriter&);
  /// What that plan exchanges, in less time and memory. Called only for requests of two ranks and more that it serves.
  Exchanges (*exchanges)(const PlanRequest&);
  /// The plan depends on the request's groups, dimensions or narrow ranks.
  bool looksAtLayout = false;
  /// Where ranks read each other's memory and nothing was measured, it is taken for these requests. One of all
  /// algorithms says so of each; nullptr: of none.
  bool (*suitsSharedMemory)(const PlanRequest&) = nullptr;
  /// A rank that gets a sum makes it itself, in one pass over the contributions of all ranks in their order (of a scan:
  /// of those up to itself), each straight from the rank that gives it. So its bits depend on nothing else, and it is
  /// rounded once.
  bool sumsInOnePass = false;
};

/// Whether the algorithm's plan depends on the layout that the request has.
inline bool followsLayout(const Algorithm& algorithm, const PlanRequest& request) noexcept {
  return algorithm.looksAtLayout && request.hasLayout();
}

/// All algorithms, in the order in which they are documented.
std::span<const Algorithm> algorithms();

/// The algorithm of that name, or nullptr.
const Algorithm* findAlgorithm(std::string_view name);

/// The names of those of which `isOne` is true, for messages: "ring, chain".
std::string namesOfThose(const std::function<bool(const Algorithm&)>& isOne);

/// What one rank runs of the algorithm's plan for a request that it serves; of a single rank: a copy, if
/// it gets anything. Cost: that of the
/// rank's steps, and at most as much as passing over all ranks once.
LocalPlan makeLocalPlan(const Algorithm& algorithm, const PlanRequest& request, int rank);

/// The whole plan: what every rank runs.
Plan makePlan(const Algorithm& algorithm, const PlanRequest& request);

}  // namespace tacc

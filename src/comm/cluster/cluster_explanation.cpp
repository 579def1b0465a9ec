// What could run a call of a communicator over several hosts, and why one of them does.
#include <algorithm>

#include "comm/cluster/cluster_communicator.hpp"
#include "selection/half_width_choice.hpp"

namespace tacc {

std::vector<CallRoute> ClusterCommunicator::routes(Collective collective, std::size_t bytes) {
  const PlanRequest request = selector_.request(collective, placeOfRank0());
  std::vector<CallRoute> routes;
  for (const NetworkCandidate& candidate : selector_.explain(collective, placeOfRank0(), bytes)) {
    if (!candidate.algorithm->serves(request)) continue;
    routes.push_back({std::string(candidate.algorithm->name),
                      candidate.isPossible ? std::optional(candidate.seconds) : std::nullopt});
  }
  const std::string_view steeredTo = steered(collective, bytes);
  const auto chosen = std::ranges::find(routes, steeredTo, &CallRoute::name);
  if (chosen != routes.end()) std::rotate(routes.begin(), chosen, chosen + 1);
  return routes;
}

std::string ClusterCommunicator::explain(Collective collective, std::size_t bytes) {
  std::string text =
      fmt::format("{} of {} bytes, {} ranks on {} hosts, {}: {:.1f} us, {:.4g} MB/s\n", nameOf(collective), bytes,
                  ranks(), hosts_.hosts(), transportName_, speed_.latency * 1e6, speed_.bytesPerSecond * 1e-6);
  const TunedSize* measured = tuned(collective, bytes);
  text += describeMachine(selector_.machine());
  if (const auto name = forced(collective); !name.empty()) return text + fmt::format("{} was forced\n", name);
  const char* mark = "->";
  if (measured != nullptr) {
    text += describeTuned(*measured) + "without it:\n";
    mark = "";
  }
  const int root = placeOfRank0();
  const std::vector<NetworkCandidate> candidates = selector_.explain(collective, root, bytes);
  const Algorithm* chosen = isDynamic() ? tuner_.settled(selector_, collective, bytes) : nullptr;
  if (chosen == nullptr) chosen = candidates.front().algorithm;
  if (config().isReproducible && isReduction(collective)) {
    chosen = &selector_.choose(collective, 0, bytes, {}, {.rankOrder = true});
    text += fmt::format("{} for floating-point numbers: the fastest that combines in the order of the ranks\n",
                        chosen->name);
  }
  for (const NetworkCandidate& candidate : candidates) {
    const std::string time = candidate.isPossible ? fmt::format("{:.1f} us", candidate.seconds * 1e6) : "-";
    text += fmt::format("{:2} {:22} {:>14}  {}\n", candidate.algorithm == chosen ? mark : "", candidate.algorithm->name,
                        time, candidate.reason);
  }
  // The table does not say how 16-bit numbers of these bytes run.
  const std::size_t numbers = bytes / 2;
  if (collective == Collective::allReduce && numbers > 0 && !config().halfPartialSums && !config().isReproducible)
    text += explainHalfWidth(selector_, numbers, gathersHalfWidth(numbers));
  return isDynamic() && measured == nullptr ? text + tuner_.explain(selector_, collective, bytes) : text;
}

}  // namespace tacc

#include "gauge.hpp"

#include <array>
#include <limits>

#include "algorithms/registry.hpp"

namespace tacc::tune {
namespace {

/// Of the algorithms that serve everywhere, the one in which a few bytes are soonest with all of many ranks: of those
/// in which nobody waits for more than one other at a time, that of the fewest rounds.
std::string quickestForFew(int ranks) {
  const PlanRequest request{Collective::allReduce, ranks, 0};
  std::string quickest;
  int fewest = std::numeric_limits<int>::max();
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.looksAtLayout || ranks < 2 || !algorithm.serves(request)) continue;
    const LocalPlan plan = makeLocalPlan(algorithm, request, 0);
    bool meetsOne = true;
    plan.steps.forEach([&](const Step& step) { meetsOne = meetsOne && step.sources.size() <= 2; });
    if (!meetsOne || plan.steps.lastRound() >= fewest) continue;
    fewest = plan.steps.lastRound();
    quickest = algorithm.name;
  }
  return quickest;
}

}  // namespace

Gauge::Gauge(JoinedCommunicator& comm, std::size_t bytes)
    : comm_(comm),
      agreeing_(quickestForFew(comm.ranks())),
      input_(bytes / sizeof(float) + 1, 1.0F),
      output_(input_.size()) {}

Reading Gauge::time(Collective collective, std::size_t count, const std::string& route, int calls, int warm) {
  const Call call{collective, input_.data(), output_.data(), count, taccFloat32, taccSum};
  comm_.force(route);
  for (int i = 0; i < warm; ++i) comm_.run(call);
  comm_.run({.collective = Collective::barrier});
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < calls; ++i) comm_.run(call);
  const Clock::time_point end = Clock::now();
  last_ = comm_.lastAlgorithm();
  comm_.force(agreeing_);  // so that nothing is learnt from the exchange of the readings
  const auto seconds = [](Clock::duration duration) { return std::chrono::duration<double>(duration).count(); };
  std::array<double, 2> reading = {seconds(end - begin) / calls, comm_.rank() == 0 ? seconds(end - start_) : 0};
  comm_.run({Collective::allReduce, reading.data(), reading.data(), reading.size(), taccFloat64, taccMax});
  comm_.force("");
  elapsed_ = reading[1];
  return {reading[0], reading[1]};
}

}  // namespace tacc::tune

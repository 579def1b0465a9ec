// Calls on networks drawn at random, each by every algorithm that serves it, played by SimGrid.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <list>
#include <vector>

#include "algorithms/registry.hpp"
#include "drawn_network.hpp"
#include "support/settings.hpp"
#include "trial.hpp"

namespace tacc::sim {

using test::numberFrom;

struct DrawnTrials {
  std::list<Machine> machines;
  std::vector<Trial> trials;  // those of one machine, which are one call, follow each other
  std::vector<Outcome> outcomes;
};

/// On `networks` of them, from TACC_TEST_FIRST_NETWORK on. `ranksPerHost`: of network n.
inline DrawnTrials playDrawnTrials(int networks, int (*ranksPerHost)(int n)) {
  constexpr int mostHosts = 12;
  constexpr double mostWork = 3e5;  // times the partners of a rank; more is not played
  constexpr Collective collectives[] = {Collective::allReduce, Collective::broadcast, Collective::reduce,
                                        Collective::allGather, Collective::reduceScatter};
  const int first = numberFrom("TACC_TEST_FIRST_NETWORK", 0);
  DrawnTrials drawn;
  for (int n = first; n < first + networks; ++n) {
    Machine& machine = drawn.machines.emplace_back(test::drawNetwork(static_cast<std::uint64_t>(n), mostHosts),
                                                   mostHosts, Place::block, NetworkSpeed(), ranksPerHost(n));
    const Collective collective = collectives[n % 5];
    const double bytes = static_cast<double>(std::size_t{64} << (n * 7 % 17)) * machine.ranks();
    for (const Algorithm& algorithm : algorithms())
      if (algorithm.serves(machine.selector().request(collective, 0)))
        drawn.trials.push_back({&machine, collective, bytes, &algorithm});
  }
  drawn.outcomes = performAll(drawn.trials, mostWork, 2, [](std::size_t) {});
  return drawn;
}

}  // namespace tacc::sim

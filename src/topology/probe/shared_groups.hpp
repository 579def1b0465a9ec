// Finds groups by what their hosts share: a group is claimed when the rates of all that was measured are explained much
// better with an uplink of it than without, or when its hosts are nearer to each other than to the others by more than
// the noise.
#pragma once

#include <span>
#include <vector>

#include "topology/probe/probe_matrix.hpp"
#include "topology/probe/shared_rates.hpp"

namespace tacc {

/// Groups that lie in each other or have no host in common, in no order, of 2 hosts at least and never all hosts; and
/// what the rates tell of the links: uplinks of groups that were no limit to anybody are 0.
struct FoundGroups {
  SharedLinks links;
  double noise = 0;  // how far the rates are from what these links would give, the mean of the logarithms
};

/// The groups of up to 64 hosts that share an uplink. `matrix`: all samples of the rounds. A pure function. For n
/// hosts, r rounds and g groups about O(n r g) candidates' predictions.
FoundGroups findSharedGroups(const ProbeMatrix& matrix, std::span<const MeasuredRound> rounds);

/// With the uplinks that explain the rates of these rounds best; 0 where a group limits nobody.
SharedLinks fitUplinks(SharedLinks links, std::span<const MeasuredRound> rounds);

}  // namespace tacc

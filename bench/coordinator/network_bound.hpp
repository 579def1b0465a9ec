#pragma once

#include <cstddef>
#include <vector>

#include "support/cluster_shape.hpp"
#include "worker/collectives.hpp"

namespace tacc::bench {

/// The shortest time, in seconds, in which the last of the ranks on these hosts can be done with a call whose larger
/// buffer has `bytes`: what has to cross each host's link and each uplink, once each way, at its rate. For n bytes and
/// k of p ranks behind a link:
///
///   broadcast, reduce, allreduce,
///   scan, exscan                    n
///   allgather, reduce-scatter       n max(k, p - k) / p
///   alltoall                        n k (p - k) / p
///   gather, scatter                 n k / p, and n (p - k) / p where the root is one of the k
///
/// Of an allreduce besides, g hosts, or groups, send and receive 2 n (g - 1) together. Headers are not counted. 0 if no
/// link that is used has a rate, and for collectives that the table does not have.
double networkBound(const Collective& collective, const tools::ClusterShape& shape,
                    const std::vector<int>& hostsOfRanks, size_t bytes, int root);

}  // namespace tacc::bench

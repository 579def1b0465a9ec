// Runs the ranks of a communicator in a test: as forked processes or as threads.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tacc/tacc.h"

namespace tacc::test {

class VirtualCluster;

enum class RankKind { processes, threads };

/// Runs `body(comm, rank)` on every rank of a fresh communicator and waits for all. A gtest failure, an exception or a
/// crash on any rank is a failure of the calling test. Process ranks are children: what they change is not seen by the
/// caller.
void runRanks(RankKind kind, int ranks, const std::function<void(taccComm_t, int)>& body,
              const taccConfig_t& config = TACC_CONFIG_INITIALIZER);

/// The same on a virtual cluster: rank r on host hosts[r], hosts counted from 1. The id is made by rank 0.
/// `before`: called in each rank's process before it joins.
void runOnHosts(const VirtualCluster& cluster, const std::vector<int>& hosts,
                const std::function<void(taccComm_t, int)>& body, const taccConfig_t& config = TACC_CONFIG_INITIALIZER,
                const std::function<void(int)>& before = {});
/// The error with which taccCommInitRank ends on each rank; "" for success.
std::vector<std::string> initErrorsOnHosts(const VirtualCluster& cluster, const std::vector<int>& hosts,
                                           const std::function<void(int)>& before);

/// Fails the test with the library's message unless `result` is success.
void expectSuccess(taccResult_t result, taccComm_t comm);

}  // namespace tacc::test

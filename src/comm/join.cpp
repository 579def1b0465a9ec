// How a rank joins a communicator: it meets the others, learns who they are, and becomes a part of one node, or of
// several that a network connects.
#include <cstring>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "comm/bootstrap.hpp"
#include "comm/cluster_membership.hpp"
#include "comm/communicator.hpp"
#include "comm/node_communicator.hpp"
#include "comm/settings.hpp"

namespace tacc {
namespace {

/// A rank that cannot join for reasons of its own still comes to the rendezvous to say so: the others would only know
/// that somebody is missing. It does not wait for them as long as it would to join.
void tellOthers(const Error& error, const taccUniqueId& id, int ranks, int rank, double initTimeout) noexcept {
  constexpr double courtesy = 5;  // seconds
  try {
    Bootstrap(id, ranks, rank, std::min(initTimeout, courtesy)).announceFailure(error);
  } catch (const std::exception&) {
    // Nobody came; the caller reports the error itself.
  }
}

std::string settingsOf(const Environment& environment, const CommConfig& config) {
  return environment.agreed + (config.algorithm.empty() ? "" : " algorithm=" + config.algorithm);
}

std::unique_ptr<Communicator> joinAs(std::unique_ptr<Bootstrap> bootstrap, int ranks, int rank,
                                     const CommConfig& config, const Environment& environment) {
  std::vector<RankIdentity> who;
  try {
    const RankIdentity self = introduceSelf(settingsOf(environment, config), environment.segments != SegmentSource::off);
    const auto bytes = bootstrap->allGather(std::as_bytes(std::span(&self, 1)));
    who.resize(static_cast<std::size_t>(ranks));
    std::memcpy(static_cast<void*>(who.data()), bytes.data(), bytes.size());
    checkSettings(who);
  } catch (const Error& error) {
    bootstrap->announceFailure(error);  // the others wait in their next exchange: they get this text there
    throw;
  }
  if (HostMap(who).hosts() == 1 && bootstrap->allUnix()) {
    Membership membership = joinNode(std::move(bootstrap), ranks, rank, environment);
    return std::make_unique<NodeCommunicator>(std::move(membership), rank, ranks, config, environment);
  }
  ClusterMembership membership = joinCluster(std::move(bootstrap), std::move(who), rank, config, environment);
  return std::make_unique<ClusterCommunicator>(std::move(membership), rank, ranks, config);
}

}  // namespace

std::unique_ptr<Communicator> Communicator::join(const taccUniqueId& id, int ranks, int rank,
                                                 const CommConfig& config) {
  Environment environment;
  CommConfig effective;
  try {
    environment = checkEnvironment();
    effective = applyEnvironment(config, environment);
  } catch (const Error& error) {
    tellOthers(error, id, ranks, rank, config.initTimeout);
    throw;
  }
  auto bootstrap = std::make_unique<Bootstrap>(id, ranks, rank, effective.initTimeout);
  return joinAs(std::move(bootstrap), ranks, rank, effective, environment);
}

}  // namespace tacc

#include "comm/cluster_membership.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "comm/network_probe.hpp"
#include "comm/transport_choice.hpp"
#include "comm/unique_id.hpp"
#include "transports/network_transport.hpp"
#include "transports/plugin_table.hpp"

namespace tacc {
namespace {

/// A node's waits outlast those between nodes: who is to blame is found out there, and told to all.
constexpr double nodeGrace = 2.0;

/// Byte strings of any length; every rank gets all.
std::vector<std::vector<std::byte>> gatherBytes(Bootstrap& bootstrap, const std::vector<std::byte>& mine) {
  const auto sizes = bootstrap.gatherValues(mine.size());
  const std::size_t longest = std::ranges::max(sizes);
  std::vector<std::byte> padded = mine;
  padded.resize(longest);
  const auto all = bootstrap.allGather(padded);
  std::vector<std::vector<std::byte>> result;
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(r * longest);
    result.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(sizes[r]));
  }
  return result;
}

/// The ranks of each host meet once more, over sockets that pass descriptors.
std::unique_ptr<NodeCommunicator> makeNode(Bootstrap& bootstrap, const HostMap& hosts, int rank,
                                           const CommConfig& config, Environment environment) {
  const int local = hosts.localOf(rank);
  const std::vector<int>& members = hosts.ranksOf(hosts.hostOf(rank));
  const auto ids = bootstrap.gatherValues(local == 0 ? makeHostUniqueId() : taccUniqueId{});
  if (members.size() == 1) return nullptr;
  const int ranks = static_cast<int>(members.size());
  CommConfig inside = config;
  inside.algorithm.clear();
  environment.trace.clear();  // the whole communicator has a record
  if (inside.operationTimeout > 0) inside.operationTimeout += nodeGrace;
  const taccUniqueId& id = ids[static_cast<std::size_t>(members.front())];
  Membership membership =
      joinNode(std::make_unique<Bootstrap>(id, ranks, local, config.initTimeout), ranks, local, environment);
  membership.names.names = members;
  return std::make_unique<NodeCommunicator>(std::move(membership), local, ranks, inside, std::move(environment));
}

/// The interface over which the others were reached, unless the user named one, or a faster network is there.
std::string interfaceFor(const Bootstrap& bootstrap, const Environment& environment) {
  if (!environment.interfaces.empty()) return environment.interfaces.substr(0, environment.interfaces.find(','));
  return hasFabricDevice() ? std::string() : bootstrap.interfaceToRankZero();
}

NetworkPatience patienceFor(const CommConfig& config, const Environment& environment) {
  NetworkPatience patience;
  patience.timeout = config.operationTimeout;
  if (environment.spin) patience.spinSeconds = *environment.spin * 1e-6;
  return patience;
}

}  // namespace

ClusterMembership joinCluster(std::unique_ptr<Bootstrap> bootstrap, std::vector<RankIdentity> who, int rank,
                              const CommConfig& config, PluginTable* plugin, const Environment& environment) {
  ClusterMembership member;
  const HostMap hosts(who);
  const int ranks = static_cast<int>(who.size());
  try {
    ChosenTransport chosen = chooseTransport(*bootstrap, who, {rank, ranks, interfaceFor(*bootstrap, environment)},
                                             plugin, environment.transport);
    chosen.transport->setPeers(gatherBytes(*bootstrap, chosen.transport->address()));
    member.transport = std::move(chosen.transport);
    member.transportName = chosen.name;
    member.node = makeNode(*bootstrap, hosts, rank, config, environment);
    const std::vector<int> leaders = hosts.lane(0);
    const bool leads = hosts.localOf(rank) == 0 && hosts.hosts() > 1;
    const NetworkSpeed view =
        leads ? probeNetwork(*member.transport, leaders, rank, config.initTimeout) : NetworkSpeed{0, 1e99};
    member.speed = slowestOf(bootstrap->gatherValues(view));
  } catch (const Error& error) {
    bootstrap->announceFailure(error);
    throw;
  }
  member.walk.resize(static_cast<std::size_t>(hosts.hosts()));
  std::iota(member.walk.begin(), member.walk.end(), 0);
  member.trace = environment.trace;
  member.patience = patienceFor(config, environment);
  member.control = std::make_unique<ControlPlane>(rank, who, bootstrap->releaseChannels());
  log(LogLevel::info, rank, "joined {} ranks on {} hosts; between hosts {}, {:.1f} us, {:.3g} MB/s", ranks,
      hosts.hosts(), member.transport->describe(), member.speed.latency * 1e6, member.speed.bytesPerSecond * 1e-6);
  member.who = std::move(who);
  return member;
}

}  // namespace tacc

#include "comm/cluster_membership.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "comm/bootstrap/unique_id.hpp"
#include "comm/cluster/cluster_machine.hpp"
#include "comm/cluster/transport_choice.hpp"
#include "comm/cluster/tuning_agreement.hpp"
#include "comm/probe/network_probe.hpp"
#include "comm/probe/network_survey.hpp"
#include "core/error.hpp"
#include "core/exceptions.hpp"
#include "core/log.hpp"
#include "selection/network_selector.hpp"
#include "transports/mpi/plugin_table.hpp"
#include "transports/network_transport.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

/// A node's waits outlast those between nodes: who is to blame is found out there, and told to all.
constexpr double nodeGrace = 2.0;
constexpr double secondsBetweenLooks = 0.01;  // for ranks that have gone, while the network is measured
/// Of a processor for a message through the kernel's TCP at either end: the system call, the protocol, and waking up
/// who waits for it. Calls of 8 B among 8 ranks on two processors take 10 to 15 us for each end of a message.
constexpr double tcpOverhead = 12e-6;

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
  // A rank that fails before it comes there tells the others in the bootstrap that all have come from.
  const BootstrapOptions options{.idleWork = [&bootstrap] { bootstrap.checkOthers(); }, .isHeardElsewhere = true};
  Bootstrap meeting(id, ranks, local, config.initTimeout, std::stop_token(), options);
  Membership membership = joinNode(meeting, ranks, local, environment, true);
  membership.names.names = members;
  return std::make_unique<NodeCommunicator>(std::move(membership), local, ranks, inside, std::move(environment));
}

/// The interface over which the others were reached, unless the user named some, or a faster network is there.
std::string interfacesFor(const Bootstrap& bootstrap, const Environment& environment) {
  if (!environment.interfaces.empty()) return environment.interfaces;
  return hasFabricDevice() ? std::string() : bootstrap.interfaceToRankZero();
}

TuningUse tuningUseOf(const ClusterMembership& member, const std::vector<RankIdentity>& who, const HostMap& hosts,
                      const CommConfig& config) {
  TuningUse use;
  const CostMachine machine = clusterMachine(who, hosts, *member.topology, member.speed, false);
  use.here = {ownVersion(), member.transportName, layoutDigest(machine), false, {}, member.speed};
  for (int host = 0; host < hosts.hosts(); ++host)
    use.here.ranksOfHost.push_back(static_cast<int>(hosts.ranksOf(host).size()));
  const CostMachine ofAllRanks = clusterMachine(who, hosts, *member.topology, member.speed, true);
  use.requestOf = [groups = groupsOf(ofAllRanks), narrow = narrowOf(ofAllRanks), ranks = static_cast<int>(who.size())](
                      Collective collective) { return PlanRequest{collective, ranks, 0, groups, {}, narrow}; };
  use.isPart = config.isPart;
  return use;
}

NetworkPatience patienceFor(const CommConfig& config, const Environment& environment) {
  NetworkPatience patience;
  patience.timeout = config.operationTimeout;
  if (environment.spin) patience.spinSeconds = *environment.spin * 1e-6;
  return patience;
}

/// A rank that has done its part may still be needed by messages of others. Who has gone, the bootstrap tells.
void helpOthers(NetworkTransport& transport) {
  try {
    transport.progress();
  } catch (const Error&) {
    return;
  }
}

/// Ranks whose settings differ from those of a communicator do not share its connections.
std::string transportSettingsOf(const Environment& environment) {
  return fmt::format("{} {} {}", environment.transport, environment.encryption, environment.interfaces);
}

/// From now on it is the operations' time-out that says how long a rank may be cut off.
void tolerateSilence(const ControlTree& tree, double seconds) {
  if (tree.up.fd() >= 0) tuneTcp(tree.up.fd(), seconds);
  for (const ControlTree::Branch& branch : tree.branches) tuneTcp(branch.channel.fd(), seconds);
}

}  // namespace

ClusterMembership joinCluster(std::unique_ptr<Bootstrap> bootstrap, std::vector<RankIdentity> who, int rank,
                              const CommConfig& config, const TransportSources& sources,
                              const Environment& environment) {
  ClusterMembership member;
  const HostMap hosts(who);
  const int ranks = static_cast<int>(who.size());
  try {
    const NetworkOptions options{.rank = rank,
                                 .ranks = ranks,
                                 .interfaces = interfacesFor(*bootstrap, environment),
                                 .secret = bootstrap->deriveKey("tacc: transports"),
                                 .encrypts = environment.encryption,
                                 .silenceSeconds = silenceFor(config.operationTimeout)};
    member.transportSettings = transportSettingsOf(environment);
    ChosenTransport chosen = shareTransport(*bootstrap, sources.lent, member.transportSettings, options);
    if (!chosen.transport) {
      chosen = chooseTransport(*bootstrap, who, options, sources.plugin, environment.transport,
                               environment.portRange.has_value());
      chosen.transport->setPeers(bootstrap->allGatherStrings(chosen.transport->address()));
    }
    member.transport = std::move(chosen.transport);
    member.transportName = chosen.name;
    member.node = makeNode(*bootstrap, hosts, rank, config, environment);
    const std::vector<int> leaders = hosts.lane(0);
    const bool leads = hosts.localOf(rank) == 0 && hosts.hosts() > 1;
    // Nobody has sent anything to the others, or will.
    if (leads) bootstrap->setIdleWork([&] { helpOthers(*member.transport); });
    // Who waits for the first message of a rank that has gone has no connection to it that would break.
    Deadline nextLook(0);
    const auto check = [&] {
      bootstrap->checkInterrupt();
      if (!nextLook.passed()) return;
      nextLook = Deadline(secondsBetweenLooks);
      bootstrap->checkOthers();
    };
    NetworkProbe probe(*member.transport, config.initTimeout, check);
    const NetworkSpeed view = leads ? probe.measureRing(leaders, rank) : noView;
    const std::vector<NetworkSpeed> views = bootstrap->gatherValues(view);
    member.speed = slowestOf(views);
    const NetworkMap map = config.topology != nullptr
                               ? NetworkMap{config.topology}
                               : surveyNetwork(*bootstrap, who, hosts, rank, environment, leads ? &probe : nullptr,
                                               {.transport = member.transportName,
                                                .ring = {member.speed.bytesPerSecond, fastestOf(views)},
                                                .isAnew = config.surveysAnew});
    member.topology = map.topology;
    member.walk = walkOver(*member.topology, hosts, who);
    // Again in that order, in which rings go from now on.
    const NetworkSpeed ordered = leads ? probe.measureRing(hosts.inOrder(member.walk).lane(0), rank) : noView;
    member.speed = slowestOf(bootstrap->gatherValues(ordered));
    if (member.transportName == "tcp") member.speed.overhead = tcpOverhead;
    TuningUse use = tuningUseOf(member, who, hosts.inOrder(member.walk), config);
    use.here.isMeasured = map.isMeasured;
    member.place = use.here;
    member.tuning = agreeOnTuning(*bootstrap, who, rank, environment, use);
    bootstrap->setIdleWork({});
  } catch (...) {
    const Error error = errorOf(std::current_exception(), rank, [] { return std::string("joining"); });
    bootstrap->setIdleWork({});  // messages that were under way have lost their buffers with the probe
    // A rank that fails takes its connections along: the rank that sees that is not the one to say whose fault it was.
    if (error.result() == taccRemoteError) bootstrap->awaitCause();
    bootstrap->announceFailure(error);
    throw Error(error);
  }
  member.trace = environment.trace;
  member.patience = patienceFor(config, environment);
  ControlTree tree = bootstrap->releaseTree();
  tolerateSilence(tree, silenceFor(config.operationTimeout));
  member.control = std::make_unique<ControlPlane>(rank, who, std::move(tree));
  log(LogLevel::info, rank, "joined {} ranks on {} hosts; between hosts {}, {:.1f} us, {:.3g} MB/s", ranks,
      hosts.hosts(), member.transport->describe(), member.speed.latency * 1e6, member.speed.bytesPerSecond * 1e-6);
  member.who = std::move(who);
  return member;
}

}  // namespace tacc

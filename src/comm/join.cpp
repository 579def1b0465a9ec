// How a rank joins a communicator: it meets the others, learns who they are, and becomes a part of one node, or of
// several that a network connects.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "comm/bootstrap/bootstrap.hpp"
#include "comm/bootstrap/unique_id.hpp"
#include "comm/cluster/tuning_agreement.hpp"
#include "comm/cluster_membership.hpp"
#include "comm/communicator.hpp"
#include "comm/node/node_communicator.hpp"
#include "comm/recovery/survivor_rendezvous.hpp"
#include "comm/settings.hpp"
#include "core/default_arithmetic.hpp"
#include "core/error.hpp"
#include "core/exceptions.hpp"
#include "core/log.hpp"

namespace tacc {
namespace {

/// A rank that cannot join for reasons of its own still comes to the rendezvous to say so: the others would only know
/// that somebody is missing. It does not wait for them as long as it would to join.
void tellOthers(const Error& error, const taccUniqueId& id, int ranks, int rank, double initTimeout) noexcept {
  constexpr double courtesy = 5;  // seconds
  try {
    // The environment as a whole may be what is wrong.
    const char* const encryption = std::getenv("TACC_ENCRYPTION");
    const BootstrapOptions options{.encrypts = encryption != nullptr && std::string_view(encryption) == "on"};
    Bootstrap(id, ranks, rank, std::min(initTimeout, courtesy), {}, options).announceFailure(error);
  } catch (const std::exception&) {
    // Nobody came; the caller reports the error itself.
  }
}

/// Meets the others. What fails there is told to them, but for want of memory for its very beginning: told here.
std::unique_ptr<Bootstrap> meet(const taccUniqueId& id, int ranks, int rank, double initTimeout,
                                const std::stop_token& stop, const BootstrapOptions& options) {
  try {
    return std::make_unique<Bootstrap>(id, ranks, rank, initTimeout, stop, options);
  } catch (const Error&) {
    throw;
  } catch (...) {
    const Error error = errorOf(std::current_exception(), rank, [] { return std::string("joining"); });
    if (!options.isHeardElsewhere) tellOthers(error, id, ranks, rank, initTimeout);
    throw Error(error);
  }
}

/// Tells the exception that is being handled to the others, who wait in their next exchange and get its text there, and
/// throws it as an Error.
[[noreturn]] void failJoining(Bootstrap& bootstrap, int rank) {
  const Error error = errorOf(std::current_exception(), rank, [] { return std::string("joining"); });
  bootstrap.announceFailure(error);
  throw Error(error);
}

/// What the ranks tell each other first.
struct Greeting {
  RankIdentity identity;
  SurvivorPlace place;
};

/// All ranks tell their settings only where they differ: it is much to tell, and they rarely do.
void checkSettings(Bootstrap& bootstrap, const std::vector<RankIdentity>& who, const std::string& own) {
  if (haveEqualSettings(who)) return;
  const auto bytes = std::as_bytes(std::span(own));
  std::vector<std::string> settings;
  for (const std::vector<std::byte>& one : bootstrap.allGatherStrings({bytes.begin(), bytes.end()}))
    settings.emplace_back(reinterpret_cast<const char*>(one.data()), one.size());
  failSettings(who, settings);
}

/// The address at which ranks of other hosts reach this one: the one over which it reached rank 0, or, on rank 0's own
/// host, the one that the id names.
InetAddress ownAddress(const Bootstrap& bootstrap, const UniqueIdContents& id) {
  if (const auto parsed = InetAddress::parse(bootstrap.localAddressToRankZero())) return *parsed;
  const std::vector<InetAddress> addresses = addressesIn(id);
  if (addresses.empty()) fail(taccInternalError, "the unique id of ranks on several hosts names no address");
  return addresses.front();
}

std::unique_ptr<SurvivorRendezvous> openRendezvous(const Bootstrap& bootstrap, const UniqueIdContents& id, int ranks,
                                                   int rank) {
  if (ranks == 1) return nullptr;
  if (bootstrap.allUnix()) return std::make_unique<SurvivorRendezvous>(rank, nullptr);
  const InetAddress own = ownAddress(bootstrap, id);
  return std::make_unique<SurvivorRendezvous>(rank, &own);
}

std::shared_ptr<const Tuning> agreeInNode(Bootstrap& bootstrap, const std::vector<RankIdentity>& who, int rank,
                                          const Environment& environment, const TuningUse& use) {
  try {
    return agreeOnTuning(bootstrap, who, rank, environment, use);
  } catch (...) {
    failJoining(bootstrap, rank);
  }
}

std::unique_ptr<JoinedCommunicator> joinAs(std::unique_ptr<Bootstrap> bootstrap, const UniqueIdContents& id, int ranks,
                                           int rank, const CommConfig& config, const TransportSources& sources,
                                           const Environment& environment,
                                           std::unique_ptr<SurvivorRendezvous>& rendezvous) {
  std::vector<RankIdentity> who;
  try {
    rendezvous = openRendezvous(*bootstrap, id, ranks, rank);
    const std::string settings = settingsOf(environment, config);
    const Greeting mine{introduceSelf(settings, environment.segments != SegmentSource::off),
                        rendezvous ? rendezvous->place() : SurvivorPlace{}};
    std::vector<SurvivorPlace> places;
    for (const Greeting& one : bootstrap->gatherValues(mine)) {
      who.push_back(one.identity);
      places.push_back(one.place);
    }
    if (rendezvous) rendezvous->setPlaces(std::move(places), id.secret, environment.encryption);
    checkSettings(*bootstrap, who, settings);
  } catch (...) {
    failJoining(*bootstrap, rank);
  }
  if (HostMap(who).hosts() == 1 && bootstrap->allUnix()) {
    const TuningUse use = tuningUseOfNode(ranks, config.isPart);
    auto tuning = agreeInNode(*bootstrap, who, rank, environment, use);
    Membership membership = joinNode(*bootstrap, ranks, rank, environment);
    bootstrap.reset();  // the ranks need no connections any more
    auto made = std::make_unique<NodeCommunicator>(std::move(membership), rank, ranks, config, environment);
    made->setTuning(use.here, std::move(tuning));
    return made;
  }
  ClusterMembership membership = joinCluster(std::move(bootstrap), std::move(who), rank, config, sources, environment);
  return std::make_unique<ClusterCommunicator>(std::move(membership), rank, ranks, config);
}

}  // namespace

std::unique_ptr<Communicator> Communicator::join(const taccUniqueId& id, int ranks, int rank, const CommConfig& config,
                                                 const std::stop_token& stop, const std::function<void()>& idleWork,
                                                 bool isHeardElsewhere) {
  const DefaultArithmetic arithmetic;
  Environment environment;
  CommConfig effective;
  try {
    environment = checkEnvironment();
    effective = applyEnvironment(config, environment);
  } catch (...) {
    const Error error = errorOf(std::current_exception(), rank, [] { return std::string("joining"); });
    tellOthers(error, id, ranks, rank, config.initTimeout);
    throw Error(error);
  }
  auto bootstrap = meet(id, ranks, rank, effective.initTimeout, stop,
                        BootstrapOptions{.treeWidth = environment.joinWidth,
                                         .idleWork = idleWork,
                                         .encrypts = environment.encryption,
                                         .isHeardElsewhere = isHeardElsewhere});
  CommConfig kept = effective;
  kept.transport.reset();  // it serves one communicator
  kept.lent.reset();
  const TransportSources sources{effective.transport.get(), effective.lent.get()};
  std::unique_ptr<SurvivorRendezvous> rendezvous;
  auto made = joinAs(std::move(bootstrap), openUniqueId(id), ranks, rank, kept, sources, environment, rendezvous);
  made->setRendezvous(std::move(rendezvous));
  return made;
}

}  // namespace tacc

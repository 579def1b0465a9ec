#include "comm/probe/network_survey.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "topology/probe/probe_session.hpp"
#include "topology/sources/source_registry.hpp"
#include "topology/toml/toml.hpp"

namespace tacc {
namespace {

/// With fewer, every order of the hosts is as good.
constexpr std::size_t leastProbed = 4;
/// Fewer than a measurement in its own right would take: a communicator is to stand soon.
constexpr ProbeLimits limits = {.sampledRounds = 32, .askedRounds = 128, .alonePairs = 4, .outwardGroups = 4};

std::vector<std::byte> asBytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string textOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string hostNameOf(const RankIdentity& who) { return who.hostName.data(); }

/// One rank of each host; hosts of one name count once.
std::vector<int> distinctLeaders(const std::vector<RankIdentity>& who, const HostMap& hosts) {
  std::vector<int> leaders;
  std::set<std::string> names;
  for (const int leader : hosts.lane(0))
    if (names.insert(hostNameOf(who[static_cast<std::size_t>(leader)])).second) leaders.push_back(leader);
  return leaders;
}

/// What one rank's sources say, for comparing.
struct SourcesView {
  std::uint64_t digest;
  bool leads;
  std::array<char, 160> summary;
};

std::string summaryOf(const Survey& survey) {
  std::string sources;
  for (const SourceState& state : survey.states)
    if (state.state.find("levels") != std::string::npos)
      sources += fmt::format("{}{}: {}", sources.empty() ? "" : ", ", state.source, state.state);
  return sources.empty() ? "no source knows anything" : sources;
}

void checkAlike(const std::vector<SourcesView>& views, const std::vector<RankIdentity>& who) {
  std::size_t first = views.size();
  for (std::size_t rank = 0; rank < views.size(); ++rank) {
    if (!views[rank].leads) continue;
    if (first == views.size()) first = rank;
    if (views[rank].digest == views[first].digest) continue;
    fail(taccInvalidUsage,
         "hosts see different topologies: on rank {} ({}) {} (digest {:016x}), on rank {} ({}) {} (digest {:016x}); "
         "give all hosts the same files, or set TACC_TOPO_SOURCE",
         first, who[first].describe(), views[first].summary.data(), views[first].digest, rank, who[rank].describe(),
         views[rank].summary.data(), views[rank].digest);
  }
}

Topology askSources(Bootstrap& bootstrap, const std::vector<RankIdentity>& who, const std::vector<int>& leaders,
                    int rank, const Environment& environment) {
  const bool leads = std::ranges::find(leaders, rank) != leaders.end();
  const Surroundings here = Surroundings::here();
  const auto texts =
      bootstrap.allGatherStrings(leads ? asBytes(cluesToText(gatherClues(here, false))) : std::vector<std::byte>());
  SourcesView mine{};
  std::string text;
  if (leads) {
    SourceContext context;
    context.surroundings = here;
    context.files = environment.topologyFiles;
    for (const int leader : leaders)
      context.hosts.push_back(cluesFromText(textOf(texts[static_cast<std::size_t>(leader)])));
    const Survey survey = discoverTopology(std::move(context), environment.topologySource);
    for (const std::string& contradiction : survey.discovery.contradictions)
      log(LogLevel::warn, rank, "topology: {}", contradiction);
    if (survey.discovery.topology.hosts() > 0) text = topologyToToml(survey.discovery.topology);
    mine.digest = survey.discovery.topology.digest();
    mine.leads = true;
    const std::string summary = summaryOf(survey);
    std::copy_n(summary.begin(), std::min(summary.size(), mine.summary.size() - 1), mine.summary.begin());
  }
  checkAlike(bootstrap.gatherValues(mine), who);
  // Rank 0 is the first of its host, and so a leader.
  const std::string agreed = textOf(bootstrap.broadcast(asBytes(text)));
  return agreed.empty() ? Topology() : topologyFromToml(agreed, "the topology of rank 0");
}

/// Runs the rounds of a ProbeSession among the first ranks of the hosts. Every rank takes part in the exchanges.
class Measurement {
 public:
  Measurement(Bootstrap& bootstrap, const std::vector<int>& leaders, int rank, NetworkProbe* probe)
      : bootstrap_(bootstrap),
        leaders_(leaders),
        place_(static_cast<std::uint32_t>(std::ranges::find(leaders, rank) - leaders.begin())),
        probe_(probe) {}

  std::vector<ProbeSample> run(const ProbeRound& round) {
    std::vector<ProbeSample> samples(round.pairs.size());
    // Latencies first, of all pairs: behind the long messages of others they would tell of those.
    if (round.kind == ProbeKind::alone || (round.kind == ProbeKind::survey && latenciesTell_)) {
      NetworkProbe::Latency mine;
      if (const auto pair = ownPair(round)) mine = probe_->measureLatency(partnerIn(*pair), pair->a == place_);
      const auto views = bootstrap_.gatherValues(mine);
      if (isFirst_) latenciesTell_ = areSteady(views);
      isFirst_ = false;
      for (std::size_t i = 0; i < samples.size() && (latenciesTell_ || round.kind == ProbeKind::alone); ++i)
        samples[i].latency = std::min(of(views, round.pairs[i].a).seconds, of(views, round.pairs[i].b).seconds);
    }
    const bool bothWays = round.kind == ProbeKind::survey;
    double mine = 0;
    if (const auto pair = ownPair(round)) {
      const auto number = static_cast<std::size_t>(std::ranges::find(round.pairs, *pair) - round.pairs.begin());
      mine = probe_->measureBandwidth(partnerIn(*pair), bothWays || pair->a == place_, bothWays || pair->b == place_,
                                      round.bytes[number]);
    }
    const auto views = bootstrap_.gatherValues(mine);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const double toB = of(views, round.pairs[i].b), toA = of(views, round.pairs[i].a);
      // Both ways cross the same links, so what differs is noise.
      samples[i].bandwidth = bothWays ? std::sqrt(toA * toB) : toB;
    }
    return samples;
  }

 private:
  /// Where ranks wait for cores, latencies tell of the scheduler, not of the network.
  static bool areSteady(const std::vector<NetworkProbe::Latency>& views) {
    constexpr double most = 1.5;
    std::vector<double> spreads;
    for (const NetworkProbe::Latency& view : views)
      if (view.spread > 0) spreads.push_back(view.spread);
    std::ranges::sort(spreads);
    return !spreads.empty() && spreads[spreads.size() / 2] < most;
  }

  std::optional<ProbePair> ownPair(const ProbeRound& round) const {
    const auto isOwn = [this](const ProbePair& pair) { return pair.a == place_ || pair.b == place_; };
    const auto found = std::ranges::find_if(round.pairs, isOwn);
    return probe_ == nullptr || found == round.pairs.end() ? std::nullopt : std::optional(*found);
  }
  int partnerIn(const ProbePair& pair) const { return leaders_[pair.a == place_ ? pair.b : pair.a]; }
  template <class View>
  const View& of(const std::vector<View>& views, std::uint32_t host) const {
    return views[static_cast<std::size_t>(leaders_[host])];
  }

  Bootstrap& bootstrap_;
  const std::vector<int>& leaders_;
  std::uint32_t place_;
  NetworkProbe* probe_;
  bool latenciesTell_ = true;
  bool isFirst_ = true;
};

/// "groups tacc1,tacc2 | tacc3,tacc4", of the first level above the hosts that has several.
std::string describeGroups(const Topology& topology) {
  constexpr std::size_t longest = 400;
  std::string text;
  for (int level = 1; level < topology.root() && text.empty(); ++level) {
    for (std::uint32_t g = 0; g < topology.groups(level) && text.size() < longest; ++g) {
      const LeafRange range = topology.hostsOf(level, g);
      text += g == 0 ? "groups " : " | ";
      for (std::uint32_t h = range.first; h < range.last; ++h) text += (h == range.first ? "" : ",") + topology.host(h);
    }
  }
  return text.empty() ? "all hosts are alike" : text.substr(0, longest);
}

/// Returns how many rounds it took.
int runSession(ProbeSession& session, Bootstrap& bootstrap, const std::vector<int>& leaders, int rank,
               NetworkProbe* probe) {
  Measurement measurement(bootstrap, leaders, rank, probe);
  int rounds = 0;
  for (; const auto round = session.next(); ++rounds) session.record(*round, measurement.run(*round));
  return rounds;
}

std::vector<std::string> namesOf(const std::vector<RankIdentity>& who, const std::vector<int>& leaders) {
  std::vector<std::string> names;
  for (const int leader : leaders) names.push_back(hostNameOf(who[static_cast<std::size_t>(leader)]));
  return names;
}

Topology measure(Bootstrap& bootstrap, const std::vector<RankIdentity>& who, const std::vector<int>& leaders, int rank,
                 NetworkProbe* probe, const SurveyedNetwork& network) {
  ProbeSession session(static_cast<std::uint32_t>(leaders.size()), network.isAnew ? ProbeLimits() : limits,
                       {network.ring.slowest, network.ring.fastest});
  const int rounds = runSession(session, bootstrap, leaders, rank, probe);
  Topology found = session.topology(namesOf(who, leaders));
  log(LogLevel::info, rank, "measured the network in {} rounds: {}", rounds, describeGroups(found));
  return found;
}

/// Whether a figure is missing that prices need: what a stream carries, if not the hosts' links tell, or an uplink.
bool lacksFigures(const Topology& topology) {
  const bool hostsTell = topology.level(0).uplink.has_value();
  for (int l = 1; l < topology.levels(); ++l) {
    const Level& level = topology.level(l);
    if (level.wiring == Wiring::tree && !level.bandwidth && !hostsTell) return true;
    for (std::uint32_t g = 0; l < topology.root() && g < topology.groups(l); ++g)
      if (!topology.uplink(l, g)) return true;
  }
  return false;
}

Topology measureFigures(Bootstrap& bootstrap, const Topology& known, const std::vector<RankIdentity>& who,
                        const std::vector<int>& leaders, int rank, NetworkProbe* probe,
                        const SurveyedNetwork& network) {
  std::vector<std::uint32_t> places;
  for (const std::string& name : namesOf(who, leaders)) {
    const auto place = known.findHost(name);
    if (!place) return known;  // not all of the hosts are known, so nothing is priced by it
    places.push_back(*place);
  }
  ProbeSession session(known, places, network.isAnew ? ProbeLimits() : limits,
                       {network.ring.slowest, network.ring.fastest});
  const int rounds = runSession(session, bootstrap, leaders, rank, probe);
  log(LogLevel::info, rank, "measured what nobody had said of the network in {} rounds", rounds);
  return session.complete(known, places);
}

/// `known` with what an earlier job measured, if its hosts are grouped as they were then.
std::optional<Topology> completeWith(const Topology& saved, const Topology& known, int rank) {
  if (saved.hosts() == 0) return std::nullopt;
  if (!haveSameGroups(known, saved)) {
    if (rank == 0)
      log(LogLevel::warn, rank, "not used: the network that was measured before had {}, but now there are {}",
          describeGroups(saved), describeGroups(known));
    return std::nullopt;
  }
  const std::array findings = {Finding{"sources", "", known}, Finding{"probe", "saved", saved}};
  Topology completed = merge(findings).topology;
  return completed == known ? std::nullopt : std::optional(std::move(completed));
}

/// With the inside of the hosts, of which each tells the others.
Topology describeHosts(Bootstrap& bootstrap, const Topology& topology, const std::vector<int>& leaders, int rank) {
  const bool leads = std::ranges::find(leaders, rank) != leaders.end();
  SourceContext context;
  const std::string mine = leads ? cluesToText(gatherClues(context.surroundings, true)) : "";
  const auto texts = bootstrap.allGatherStrings(asBytes(mine));
  for (const int leader : leaders) {
    HostClues clues = cluesFromText(textOf(texts[static_cast<std::size_t>(leader)]));
    if (const auto known = topology.findHost(clues.host)) clues.host = topology.host(*known);
    context.hosts.push_back(std::move(clues));
  }
  std::vector<Finding> findings = {{"network", "", topology}};
  if (auto inside = topologySource("hwloc").look(context)) findings.push_back(*std::move(inside));
  return merge(findings).topology;
}

/// What is known of the network, and what is measured for want of it.
NetworkMap findNetwork(Bootstrap& bootstrap, const std::vector<RankIdentity>& who, const HostMap& hosts, int rank,
                       const Environment& environment, NetworkProbe* probe, const SurveyedNetwork& network) {
  const std::vector<int> leaders = distinctLeaders(who, hosts);
  const auto map = [](Topology topology, bool isMeasured) {
    return NetworkMap{std::make_shared<const Topology>(std::move(topology)), isMeasured};
  };
  if (environment.topologySource == "probe" && environment.topologyFiles.empty())
    return map(measure(bootstrap, who, leaders, rank, probe, network), true);
  Topology topology = askSources(bootstrap, who, leaders, rank, environment);
  const bool isFlat = topology.hosts() < leaders.size();
  const std::size_t least = network.isAnew ? 2 : leastProbed;
  const bool lacksGroups = isFlat && environment.topologySource.empty() && leaders.size() >= least;
  const bool isIncomplete = !isFlat && leaders.size() > 1 && lacksFigures(topology);
  if (!lacksGroups && !isIncomplete) return map(std::move(topology), false);
  // Where hosts have names in common, the ring that was measured is another one than that over the names.
  if (!network.isAnew && leaders.size() == hosts.lane(0).size()) {
    Topology saved = agreeOnSaved(bootstrap, rank, namesOf(who, leaders), network.transport, network.ring);
    if (lacksGroups && saved.hosts() > 0) return map(std::move(saved), false);
    if (auto completed = completeWith(saved, topology, rank)) return map(*std::move(completed), false);
  }
  if (lacksGroups) return map(measure(bootstrap, who, leaders, rank, probe, network), true);
  return map(measureFigures(bootstrap, topology, who, leaders, rank, probe, network), false);
}

}  // namespace

NetworkMap surveyNetwork(Bootstrap& bootstrap, const std::vector<RankIdentity>& who, const HostMap& hosts, int rank,
                         const Environment& environment, NetworkProbe* probe, const SurveyedNetwork& network) {
  NetworkMap map = findNetwork(bootstrap, who, hosts, rank, environment, probe, network);
  if (network.isAnew) {
    Topology described = describeHosts(bootstrap, *map.topology, distinctLeaders(who, hosts), rank);
    map.topology = std::make_shared<const Topology>(std::move(described));
  }
  return map;
}

std::vector<int> walkOver(const Topology& topology, const HostMap& hosts, const std::vector<RankIdentity>& who) {
  struct Place {
    std::uint32_t host;  // in the topology
    int first;           // host of this name, of the communicator
    int number;
  };
  std::vector<Place> places;
  std::map<std::string, int> firstOf;
  const std::vector<int> leaders = hosts.lane(0);
  for (int h = 0; h < hosts.hosts(); ++h) {
    const std::string name = hostNameOf(who[static_cast<std::size_t>(leaders[static_cast<std::size_t>(h)])]);
    const auto found = topology.findHost(name);
    places.push_back({found.value_or(topology.hosts()), firstOf.try_emplace(name, h).first->second, h});
  }
  std::ranges::sort(places, [](const Place& a, const Place& b) {
    return std::tie(a.host, a.first, a.number) < std::tie(b.host, b.first, b.number);
  });
  std::vector<int> walk;
  for (const Place& place : places) walk.push_back(place.number);
  return walk;
}

}  // namespace tacc

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "topology/model/draft.hpp"
#include "topology/model/finding.hpp"
#include "topology/model/host_list.hpp"
#include "topology/model/units.hpp"

namespace tacc {
namespace {

/// Figures that are nearer to each other do not contradict: what is measured is never what a vendor prints.
constexpr double agreement = 0.25;
constexpr std::uint32_t none = 0xffffffff;

/// A torus of all hosts has no groups, but says more of where they stand than groups would.
bool groupsHosts(const Topology& topology) {
  return topology.levels() > 2 || topology.level(topology.root()).wiring == Wiring::torus;
}

/// How the groups of one level lie in those of another, over the hosts that both topologies have.
enum class Relation { same, finer, coarser, crossing };

struct SplitComparison {
  Relation relation = Relation::same;
  std::string example;  // crossing: hosts that show it
};

/// `partners`: pairs of hosts, first in a, second in b.
SplitComparison compareLevels(const Topology& a, int levelA, const Topology& b, int levelB,
                              const std::vector<std::pair<std::uint32_t, std::uint32_t>>& partners) {
  std::vector<std::uint32_t> firstOfA(a.groups(levelA), none), firstOfB(b.groups(levelB), none);  // index into partners
  std::string splitByA, splitByB;
  for (std::uint32_t i = 0; i < partners.size(); ++i) {
    const auto [hostA, hostB] = partners[i];
    std::uint32_t& firstA = firstOfA[a.groupOf(levelA, hostA)];
    std::uint32_t& firstB = firstOfB[b.groupOf(levelB, hostB)];
    if (firstA == none) firstA = i;
    if (firstB == none) firstB = i;
    if (splitByB.empty() && b.groupOf(levelB, partners[firstA].second) != b.groupOf(levelB, hostB)) {
      splitByB = fmt::format("{} and {}", a.host(partners[firstA].first), a.host(hostA));
    }
    if (splitByA.empty() && a.groupOf(levelA, partners[firstB].first) != a.groupOf(levelA, hostA)) {
      splitByA = fmt::format("{} and {}", a.host(partners[firstB].first), a.host(hostA));
    }
  }
  if (splitByA.empty() && splitByB.empty()) return {Relation::same, ""};
  if (splitByB.empty()) return {Relation::finer, ""};
  if (splitByA.empty()) return {Relation::coarser, ""};
  return {Relation::crossing,
          fmt::format("the first parts {}, which the second holds together, and holds {} together, which "
                      "the second parts",
                      splitByA, splitByB)};
}

class Merger {
 public:
  explicit Merger(std::span<const Finding> findings) : findings_(findings) {}

  Discovery run() {
    if (findings_.empty()) return {};
    base_ = &*std::ranges::max_element(findings_, {}, [](const Finding& finding) {
      return finding.isOfAnyHost ? 0 : groupsHosts(finding.topology) ? 2 : 1;  // the first of the best
    });
    draft_ = draftOf(base_->topology);
    whose_.assign(draft_.levels.size() + 2, {});
    factsOfBase();
    for (const Finding& finding : findings_) {
      if (&finding != base_ && !finding.isOfAnyHost) add(finding);
    }
    for (const Finding& finding : findings_) {
      if (&finding != base_ && finding.isOfAnyHost) describeOthers(finding);
    }
    result_.topology = build(std::move(draft_));
    return std::move(result_);
  }

 private:
  /// The figures of a level of the draft.
  Level& at(int level) {
    if (level == 0) return draft_.node;
    const auto index = static_cast<std::size_t>(level) - 1;
    return index < draft_.levels.size() ? draft_.levels[index].level : draft_.root;
  }

  void fact(std::string what, std::string value, const Finding& finding) {
    result_.facts.push_back({std::move(what), std::move(value), finding.who()});
  }

  void factsOfBase() {
    const Topology& topology = base_->topology;
    fact("hosts", fmt::format("{}: {}", topology.hosts(), someHosts(topology.hostNames())), *base_);
    for (int l = 1; l < topology.levels() && groupsHosts(topology); ++l) {
      fact(fmt::format("level {} ({})", l, topology.level(l).name),
           fmt::format("{} group{}", topology.groups(l), topology.groups(l) == 1 ? "" : "s"), *base_);
    }
    for (int l = 0; l < topology.levels(); ++l) figures(l, topology.level(l), *base_);
    nodeFacts(*base_, topology.hosts() - countUndescribed());
  }

  std::uint32_t countUndescribed() const {
    if (draft_.nodeOf.empty()) return static_cast<std::uint32_t>(draft_.hosts.size());
    return static_cast<std::uint32_t>(std::count(draft_.nodeOf.begin(), draft_.nodeOf.end(), std::nullopt));
  }

  void nodeFacts(const Finding& finding, std::uint32_t described) {
    if (described > 0)
      fact("inside of hosts", fmt::format("{} host{} described", described, described == 1 ? "" : "s"), finding);
  }

  void add(const Finding& finding) {
    const Topology& other = finding.topology;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> partners;  // host of the base, host of the other
    std::vector<std::string> unknown;
    for (std::uint32_t host = 0; host < other.hosts(); ++host) {
      const std::optional<std::uint32_t> mine = base_->topology.find(other.host(host));
      if (mine)
        partners.emplace_back(*mine, host);
      else
        unknown.push_back(other.host(host));
    }
    if (!unknown.empty()) {
      contradict(fmt::format("{} has the host{} {}, which {} does not have", finding.who(),
                             unknown.size() == 1 ? "" : "s", someHosts(unknown), base_->who()));
    }
    if (partners.empty()) return;
    std::sort(partners.begin(), partners.end());
    figures(0, other.level(0), finding);
    uplinks(0, other, 0, finding, partners);
    if (partners.size() > 1) figures(base_->topology.root(), other.level(other.root()), finding);
    for (int l = 1; l < other.root(); ++l) levelOf(finding, l, partners);
    nodesOf(finding, partners);
  }

  void levelOf(const Finding& finding, int l, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& partners) {
    const Topology& base = base_->topology;
    for (int mine = 1; mine < base.root(); ++mine) {
      const SplitComparison comparison = compareLevels(base, mine, finding.topology, l, partners);
      if (comparison.relation == Relation::same) {
        figures(mine, finding.topology.level(l), finding);
        uplinks(mine, finding.topology, l, finding, partners);
        fact(fmt::format("level {} ({})", mine, base.level(mine).name), "the same groups", finding);
        return;
      }
      if (comparison.relation == Relation::crossing) {
        contradict(fmt::format("{} of {} and {} of {} cross: {}", base.level(mine).name, base_->who(),
                               finding.topology.level(l).name, finding.who(), comparison.example));
        return;
      }
    }
    fact(fmt::format("another level ({})", finding.topology.level(l).name),
         fmt::format("{} groups, not used", finding.topology.groups(l)), finding);
  }

  void figures(int l, const Level& said, const Finding& finding) {
    Level& level = at(l);
    figure(l, "latency", &Level::alpha, formatLatency, level, said, finding);
    figure(l, "bandwidth of one stream", &Level::bandwidth, showBandwidth, level, said, finding);
    if (l != base_->topology.root()) figure(l, "uplink", &Level::uplink, showBandwidth, level, said, finding);
    figure(l, "bandwidth of a link", &Level::linkBandwidth, showBandwidth, level, said, finding);
    rails(l, level, said, finding);
  }

  /// One rail is what a source has that knows of none.
  void rails(int l, Level& level, const Level& said, const Finding& finding) {
    if (said.rails == 1) return;
    const std::string subject = fmt::format("rails of level {} ({})", l, base_->topology.level(l).name);
    std::string& whose = whose_[static_cast<std::size_t>(l)]["rails"];
    if (whose.empty()) {
      level.rails = said.rails;
      whose = finding.who();
      fact(subject, std::to_string(said.rails), finding);
    } else if (said.rails != level.rails) {
      contradict(
          fmt::format("the {} are {} for {}, but {} for {}", subject, level.rails, whose, said.rails, finding.who()),
          whose);
    }
  }

  void figure(int l, std::string_view what, std::optional<double> Level::*member, std::string (*format)(double),
              Level& level, const Level& said, const Finding& finding) {
    if (!(said.*member)) return;
    const std::string subject = fmt::format("{} of level {} ({})", what, l, base_->topology.level(l).name);
    std::string& whose = whose_[static_cast<std::size_t>(l)][what];
    if (whose.empty()) {
      level.*member = said.*member;
      whose = finding.who();
      fact(subject, format(*(said.*member)), finding);
    } else if (std::abs(*(said.*member) / *(level.*member) - 1) > agreement) {
      contradict(fmt::format("the {} is {} for {}, but {} for {}", subject, format(*(level.*member)), whose,
                             format(*(said.*member)), finding.who()),
                 whose);
    }
  }

  /// Of groups, or hosts, that differ from their level: those of which nobody has said anything yet.
  void uplinks(int mine, const Topology& other, int theirs, const Finding& finding,
               const std::vector<std::pair<std::uint32_t, std::uint32_t>>& partners) {
    const std::optional<double> common = at(mine).uplink;
    if (common && whose_[static_cast<std::size_t>(mine)]["uplink"] != finding.who()) return;
    std::map<std::string, double> found;
    LevelDraft* const level = mine > 0 ? &draft_.levels[static_cast<std::size_t>(mine) - 1] : nullptr;
    for (const auto& [host, partner] : partners) {
      const std::optional<double> uplink = other.uplink(theirs, other.groupOf(theirs, partner));
      if (uplink && uplink != common)
        found.try_emplace(level != nullptr ? level->groupOf[host] : draft_.hosts[host], *uplink);
    }
    std::map<std::string, double>& known = level != nullptr ? level->uplinks : draft_.hostUplinks;
    const std::size_t before = known.size();
    known.merge(found);
    if (known.size() == before) return;
    fact(fmt::format("uplinks of level {} ({}) that differ", mine, base_->topology.level(mine).name),
         std::to_string(known.size() - before), finding);
  }

  void nodesOf(const Finding& finding, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& partners) {
    const auto first = static_cast<std::uint32_t>(draft_.nodes.size());
    const std::vector<NodeDescription>& all = finding.topology.nodeDescriptions();
    draft_.nodes.insert(draft_.nodes.end(), all.begin(), all.end());
    if (draft_.nodeOf.empty()) draft_.nodeOf.resize(draft_.hosts.size());
    std::uint32_t described = 0;
    std::vector<std::string> different;
    std::string example;
    for (const auto& [host, theirs] : partners) {
      const NodeDescription* node = finding.topology.node(theirs);
      if (node == nullptr) continue;
      std::optional<std::uint32_t>& mine = draft_.nodeOf[host];
      if (!mine) {
        mine = first + static_cast<std::uint32_t>(node - all.data());
        ++described;
      } else if (draft_.nodes[*mine] != *node) {
        if (different.empty()) {
          example = fmt::format("{} before, {} for {}", draft_.nodes[*mine].summary(), node->summary(), finding.who());
        }
        different.push_back(draft_.hosts[host]);
      }
    }
    if (!different.empty()) {
      contradict(
          fmt::format("{} describes the inside of {} otherwise: {}", finding.who(), someHosts(different), example));
    }
    nodeFacts(finding, described);
  }

  /// Of hosts of one kind that has no name.
  void describeOthers(const Finding& finding) {
    const std::vector<NodeDescription>& all = finding.topology.nodeDescriptions();
    if (all.empty()) return;
    draft_.nodeOf.resize(draft_.hosts.size());
    std::uint32_t described = 0;
    for (std::optional<std::uint32_t>& node : draft_.nodeOf) {
      if (node) continue;
      node = static_cast<std::uint32_t>(draft_.nodes.size());
      ++described;
    }
    draft_.nodes.push_back(all.front());
    if (described > 0)
      nodeFacts(finding, described);
    else
      fact("inside of hosts", "all are described already, not used", finding);
  }

  void contradict(const std::string& sentence) { contradict(sentence, base_->who()); }
  void contradict(const std::string& sentence, const std::string& winner) {
    result_.contradictions.push_back(fmt::format("{}; {} wins", sentence, winner));
  }

  std::span<const Finding> findings_;
  const Finding* base_ = nullptr;
  TopologyDraft draft_;
  std::vector<std::map<std::string_view, std::string>> whose_;  // by level and figure: who said it
  Discovery result_;
};

}  // namespace

Discovery merge(std::span<const Finding> findings) { return Merger(findings).run(); }

}  // namespace tacc

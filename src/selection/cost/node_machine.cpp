#include "selection/cost/node_machine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace tacc {

NodeMachine::NodeMachine(const NodePlaces& places, const NodeFigures& figures, double cacheBytes)
    : ranks_(static_cast<int>(places.order.size())),
      memory_(figures.memory),
      cacheBytes_(cacheBytes),
      ownCopy_(figures.ownCopy),
      isMeasured_(figures.isMeasured) {
  if (figures.tiers.size() != places.levels.size() + 1)
    fail(taccInternalError, "a host of {} tiers has figures of {}", places.levels.size() + 1, figures.tiers.size());
  for (const PlaceLevel& level : places.levels) tiers_.push_back({level.kind, level.begins, {}});
  tiers_.push_back({LevelKind::node, {0}, {}});
  // Reading and writing share a copy's time evenly where both are a core's own.
  readSeconds_.push_back(0.5 / figures.ownCopy);
  for (std::size_t t = 0; t < tiers_.size(); ++t) {
    tiers_[t].figures = figures.tiers[t];
    const double copy = 1 / tiers_[t].figures.copy;
    readSeconds_.push_back(std::max({copy - readSeconds_[0], copy / 4, readSeconds_.back()}));
    std::vector<int>& groups = groupOf_.emplace_back();
    const std::vector<int>& begins = tiers_[t].begins;
    for (int place = 0, group = 0; place < ranks_; ++place) {
      while (group + 1 < static_cast<int>(begins.size()) && begins[at(group + 1)] <= place) ++group;
      groups.push_back(group);
    }
    const LevelKind kind = tiers_[t].kind;
    const bool hasMemory = kind == LevelKind::numa || kind == LevelKind::die || kind == LevelKind::socket;
    if (hasMemory && domainTier_ < 0) domainTier_ = static_cast<int>(t);
  }
}

int NodeMachine::meet(int a, int b) const noexcept {
  if (a == b) return -1;
  int tier = 0;
  while (groupOf_[at(tier)][at(a)] != groupOf_[at(tier)][at(b)]) ++tier;
  return tier;
}

std::string NodeMachine::describe() const {
  std::string text = fmt::format("a core copies {:.4g} MB/s in its own memory", ownCopy_ * 1e-6);
  if (memory_ > 0)
    text += fmt::format("; {} reads and writes {:.4g} MB/s", domains() > 1 ? "a memory domain" : "the memory",
                        memory_ * 1e-6);
  text += isMeasured_ ? "; measured when the ranks joined\n" : "; assumed, not measured\n";
  for (std::size_t t = 0; t < tiers_.size(); ++t) {
    const NodeTier& tier = tiers_[t];
    const bool isWhole = t + 1 == tiers_.size();
    text += isWhole ? std::string("the host")
                    : fmt::format("{} groups that share a {}", tier.begins.size(),
                                  tier.kind == LevelKind::numa ? "NUMA domain" : nameOf(tier.kind));
    text += fmt::format(": {:.2f} us, {:.4g} MB/s a core", tier.figures.latency * 1e6, tier.figures.copy * 1e-6);
    if (!isWhole && tier.figures.uplink > 0)
      text += fmt::format(", {:.4g} MB/s a group from outside", tier.figures.uplink * 1e-6);
    text += '\n';
  }
  return text;
}

NodeFigures assumedFigures(const NodePlaces& places) {
  NodeFigures figures;
  figures.ownCopy = 1e10;
  double latency = 1e-7, copy = 1e10;
  const std::size_t ranks = places.order.size();
  for (std::size_t t = 0; t <= places.levels.size(); ++t) {
    const bool isWhole = t == places.levels.size();
    const double members =
        isWhole ? 0 : static_cast<double>(ranks) / static_cast<double>(places.levels[t].begins.size());
    figures.tiers.push_back({latency, copy, isWhole ? 0 : std::max(members / 4, 4.0) * copy * 0.75});
    latency *= 1.5;
    copy *= 0.75;
  }
  return figures;
}

}  // namespace tacc

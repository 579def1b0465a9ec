#include "topology/model/compare.hpp"

#include <fmt/format.h>

#include "topology/model/host_list.hpp"
#include "topology/model/units.hpp"

namespace tacc {
namespace {

std::vector<std::string> missing(const Topology& from, const Topology& in) {
  std::vector<std::string> names;
  for (const std::string& host : from.hostNames()) {
    if (!in.find(host)) names.push_back(host);
  }
  return names;
}

std::string labelOf(const Topology& topology, int level, std::uint32_t group) {
  const std::string& name = topology.groupName(level, group);
  return name.empty() ? fmt::format("{} {}", topology.level(level).name, group) : '"' + name + '"';
}

class Comparison {
 public:
  Comparison(const Topology& a, const Topology& b, std::string_view nameA, std::string_view nameB)
      : a_(a), b_(b), nameA_(nameA), nameB_(nameB) {}

  std::vector<std::string> make() {
    hosts();
    if (a_.levels() != b_.levels()) {
      differ("the levels", levelNames(a_), levelNames(b_));
    } else {
      for (int l = 0; l < a_.levels(); ++l) {
        figures(l);
        groups(l);
      }
    }
    nodes();
    if (a_.name() != b_.name()) differ("the name", '"' + a_.name() + '"', '"' + b_.name() + '"');
    if (result_.empty() && a_ != b_) result_.push_back("they differ in the order of hosts or in descriptions of nodes");
    return std::move(result_);
  }

 private:
  void differ(std::string_view what, std::string_view inA, std::string_view inB) {
    result_.push_back(fmt::format("{}: {} in {}, {} in {}", what, inA, nameA_, inB, nameB_));
  }

  static std::string levelNames(const Topology& topology) {
    std::string names;
    for (int l = 0; l < topology.levels(); ++l) names += (l > 0 ? ", " : "") + topology.level(l).name;
    return names;
  }

  void hosts() {
    const std::vector<std::string> onlyA = missing(a_, b_), onlyB = missing(b_, a_);
    if (!onlyA.empty())
      result_.push_back(fmt::format("only {} has {} hosts: {}", nameA_, onlyA.size(), someHosts(onlyA)));
    if (!onlyB.empty())
      result_.push_back(fmt::format("only {} has {} hosts: {}", nameB_, onlyB.size(), someHosts(onlyB)));
  }

  void figures(int l) {
    const Level& a = a_.level(l);
    const Level& b = b_.level(l);
    const auto text = [](const std::optional<double>& value, std::string (*format)(double)) {
      return value ? format(*value) : std::string("unknown");
    };
    const auto figure = [&](std::string_view what, const auto& inA, const auto& inB, std::string (*format)(double)) {
      if (inA != inB) differ(fmt::format("{} of level {} ({})", what, l, a.name), text(inA, format), text(inB, format));
    };
    if (a.kind != b.kind) differ(fmt::format("the kind of level {}", l), nameOf(a.kind), nameOf(b.kind));
    if (a.name != b.name) differ(fmt::format("the name of level {}", l), '"' + a.name + '"', '"' + b.name + '"');
    figure("the latency", a.alpha, b.alpha, formatLatency);
    figure("the bandwidth of one stream", a.bandwidth, b.bandwidth, formatBandwidth);
    figure("the uplink", a.uplink, b.uplink, formatBandwidth);
    figure("the bandwidth of a link", a.linkBandwidth, b.linkBandwidth, formatBandwidth);
    if (a.rails != b.rails) {
      differ(fmt::format("the rails of level {} ({})", l, a.name), std::to_string(a.rails), std::to_string(b.rails));
    }
    if (a.wiring != b.wiring) differ(fmt::format("the wiring of level {}", l), nameOf(a.wiring), nameOf(b.wiring));
    if (a.links != b.links)
      differ(fmt::format("the links of level {}", l), std::to_string(a.links), std::to_string(b.links));
    if (a.dimensions != b.dimensions) {
      differ(fmt::format("the dimensions of level {}", l), a.dimensionsText(), b.dimensionsText());
    }
  }

  /// Hosts that both have must have the same neighbours. One example, the first, and how many there are.
  void groups(int l) {
    if (l == 0 || l == a_.root()) return;
    std::vector<std::uint32_t> partner(a_.groups(l), 0xffffffff), partnerB(b_.groups(l), 0xffffffff);
    std::vector<std::string> moved;
    std::string example;
    for (std::uint32_t host = 0; host < a_.hosts(); ++host) {
      const std::optional<std::uint32_t> other = b_.find(a_.host(host));
      if (!other) continue;
      const std::uint32_t inA = a_.groupOf(l, host), inB = b_.groupOf(l, *other);
      if (partner[inA] == 0xffffffff && partnerB[inB] == 0xffffffff) {
        partner[inA] = inB, partnerB[inB] = inA;
        named(l, inA, inB);
        continue;
      }
      if (partner[inA] == inB) continue;
      if (moved.empty())
        example = fmt::format("{} is in {} in {}, in {} in {}", a_.host(host), labelOf(a_, l, inA), nameA_,
                              labelOf(b_, l, inB), nameB_);
      moved.push_back(a_.host(host));
    }
    if (!moved.empty()) {
      result_.push_back(fmt::format("{} hosts are grouped differently at level {} ({}): {}; {}", moved.size(), l,
                                    a_.level(l).name, someHosts(moved), example));
    }
  }

  void named(int l, std::uint32_t inA, std::uint32_t inB) {
    const std::string a = labelOf(a_, l, inA), b = labelOf(b_, l, inB);
    if (a != b) differ(fmt::format("the name of a group of level {}", l), a, b);
    const std::optional<double> uplinkA = a_.uplink(l, inA), uplinkB = b_.uplink(l, inB);
    if (uplinkA != uplinkB && a_.level(l).uplink == b_.level(l).uplink) {
      differ(fmt::format("the uplink of {}", a), uplinkA ? formatBandwidth(*uplinkA) : "unknown",
             uplinkB ? formatBandwidth(*uplinkB) : "unknown");
    }
  }

  void nodes() {
    std::vector<std::string> different;
    std::string example;
    for (std::uint32_t host = 0; host < a_.hosts(); ++host) {
      const std::optional<std::uint32_t> other = b_.find(a_.host(host));
      if (!other) continue;
      const NodeDescription* inA = a_.node(host);
      const NodeDescription* inB = b_.node(*other);
      if (inA == inB || (inA != nullptr && inB != nullptr && *inA == *inB)) continue;
      if (different.empty()) {
        example = fmt::format("{} in {}, {} in {}", inA != nullptr ? inA->summary() : "nothing", nameA_,
                              inB != nullptr ? inB->summary() : "nothing", nameB_);
      }
      different.push_back(a_.host(host));
    }
    if (!different.empty()) {
      result_.push_back(fmt::format("{} hosts are described differently inside: {}; {}", different.size(),
                                    someHosts(different), example));
    }
  }

  const Topology& a_;
  const Topology& b_;
  std::string_view nameA_, nameB_;
  std::vector<std::string> result_;
};

}  // namespace

std::vector<std::string> differences(const Topology& a, const Topology& b, std::string_view nameA,
                                     std::string_view nameB) {
  return Comparison(a, b, nameA, nameB).make();
}

}  // namespace tacc

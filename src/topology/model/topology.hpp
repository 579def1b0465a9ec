// The machine and the network as a value: hosts in the order of a walk over the network, and levels of groups over
// them. Level 0 is the node: each host is one group. The last level is the root: all hosts are one group. Two
// hosts "meet" at the lowest level at which they lie in one group; what that level costs is what a message between them
// costs.
//
//     level 2  root       [ 0 ------------------------------ 1023 ]   alpha, bandwidth between supernodes
//     level 1  supernode  [ 0 --- 255 ][ 256 --- 511 ] ...            uplink: what its 256 hosts share to the outside
//     level 0  node       [0][1][2] ...                               uplink: what the host's own network card carries
//
// Since every group is a run of hosts, sorting hosts by number is a walk over the topology.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/model/level.hpp"
#include "topology/model/nesting.hpp"
#include "topology/model/node_description.hpp"

namespace tacc {

struct TopologyDraft;

class Topology {
 public:
  /// No hosts, a node and a root.
  Topology() : Topology(0) {}

  /// A readable name for the whole; may be empty.
  const std::string& name() const noexcept { return name_; }

  std::uint32_t hosts() const noexcept { return nesting_.leaves(); }
  const std::string& host(std::uint32_t host) const { return hosts_[host]; }
  const std::vector<std::string>& hostNames() const noexcept { return hosts_; }
  /// The host with this name, in logarithmic time.
  std::optional<std::uint32_t> find(std::string_view name) const;
  /// The same for what a host calls itself: "node7.cluster.example" is also "node7", if only that is known.
  std::optional<std::uint32_t> findHost(std::string_view ownName) const;

  /// At least 2: node and root.
  int levels() const noexcept { return static_cast<int>(levels_.size()); }
  int root() const noexcept { return levels() - 1; }
  const Level& level(int level) const { return levels_[static_cast<std::size_t>(level)].level; }
  std::uint32_t groups(int level) const { return nesting_.groups(level); }
  LeafRange hostsOf(int level, std::uint32_t group) const { return nesting_.leavesOf(level, group); }
  /// The group of a level in which a host lies. Constant time.
  std::uint32_t groupOf(int level, std::uint32_t host) const { return nesting_.groupOf(level, host); }
  /// At which level two hosts meet; 0 for a host and itself. A few comparisons.
  int meet(std::uint32_t a, std::uint32_t b) const { return nesting_.meet(a, b); }
  /// Bytes/s that this group shares to the outside: its own figure, or that of its level. Nothing for the root.
  std::optional<double> uplink(int level, std::uint32_t group) const;
  /// What a group is called, e.g. a switch's name.
  const std::string& groupName(int level, std::uint32_t group) const;

  /// Bytes/s, each way, between the two halves of the hosts when they are cut at `level` so that as little as possible
  /// is cut: for a tree half of the uplinks of the level below, for a torus and an all-to-all the links between the
  /// halves. Nothing where the figures for it are not known.
  std::optional<double> bisection(int level) const;

  /// What is inside a host; null if nobody said.
  const NodeDescription* node(std::uint32_t host) const;
  const std::vector<NodeDescription>& nodeDescriptions() const noexcept { return nodes_; }

  /// The same on every machine; equal topologies have equal digests.
  std::uint64_t digest() const;
  bool operator==(const Topology&) const = default;

  /// The topology of these hosts alone, with all levels and the groups' full uplinks. A torus stays one where they fill
  /// a box of it. A host that is not here, or stands twice, is an Error (taccInvalidArgument) that names it.
  Topology only(std::span<const std::string> hosts) const;

  /// Ranks in the order of a walk, ranks of one host in their own order. `hostOf[r]`: the host of rank r.
  static std::vector<std::uint32_t> walk(std::span<const std::uint32_t> hostOf);

 private:
  void keepTorus(int level, std::span<const std::uint32_t> hosts, Level& part) const;
  friend Topology build(TopologyDraft draft);
  explicit Topology(std::uint32_t hosts);

  struct LevelGroups {
    Level level;
    std::vector<std::string> names;              // of the groups; empty: they have none
    std::vector<std::optional<double>> uplinks;  // of the groups that differ from their level; empty: none does
    bool operator==(const LevelGroups&) const = default;
  };
  static constexpr std::uint32_t noNode = 0xffffffff;

  std::string name_;
  std::vector<std::string> hosts_;
  std::vector<std::uint32_t> byName_;  // hosts sorted by name, for find()
  Nesting nesting_;
  std::vector<LevelGroups> levels_;
  std::vector<NodeDescription> nodes_;  // different ones
  std::vector<std::uint32_t> nodeOf_;   // by host; empty: no host is described
};

}  // namespace tacc

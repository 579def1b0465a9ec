// What Slurm knows of the network: topology.conf, topology.yaml, what `scontrol show topology` prints, and the
// variables of a job step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/model/topology.hpp"
#include "topology/sources/host_clues.hpp"
#include "topology/sources/switch_tree.hpp"

namespace tacc {

/// What a reader has to know beside the file that it reads.
struct SlurmSite {
  std::string root = {};                // before absolute paths; see Surroundings
  std::string conf = {};                // SLURM_CONF
  std::string clusterName = {};         // SLURM_CLUSTER_NAME
  std::string partition = {};           // of the job; empty: not known
  std::vector<std::string> hosts = {};  // of the job; empty: not known

  /// As the environment says it; the hosts stay empty.
  static SlurmSite in(const Surroundings& surroundings);
};

/// topology.conf, or what `scontrol show topology` prints. Throws Error (taccInvalidArgument) that names file and line.
Topology topologyFromSlurmConf(std::string_view text, const std::string& origin, const SlurmSite& site = {});

/// topology.yaml: the topology of the job's partition (as its line in the slurm.conf beside the file says), else the
/// first that is the cluster's default, else the first. A flat one has all hosts that the file names, and no groups.
/// Errors are parseYaml's beside those of all readers.
Topology topologyFromSlurmYaml(std::string_view text, const std::string& origin, const SlurmSite& site = {});

/// From SLURM_TOPOLOGY_ADDR of all hosts: "s0.s4.node7" with the pattern "switch.switch.node", "b8.node7" with
/// "block.node", "pod1:3:0:1.node7" with "torus:x:y:z.node". An empty topology if no host has a place in it.
Topology topologyFromSlurmAddresses(std::span<const HostClues> hosts);

/// The same with the names that hosts give themselves, where Slurm's name of a node is another (NodeHostname, as in
/// clouds) and SLURM_TOPOLOGY_ADDR, which ends in Slurm's name, says so.
Topology withNamesOfHosts(Topology topology, std::span<const HostClues> hosts);

/// Which topology a partition has, as slurm.conf says it.
struct SlurmPartition {
  std::string topology;  // a name of topology.yaml
  std::string where;     // "slurm.conf:12"
};

/// The topology of the job's partition, from the slurm.conf in this folder, else SLURM_CONF, else the usual places.
/// Nothing outside a job, without a slurm.conf, and where it names none. Throws Error (taccInvalidArgument) if it may
/// stand in a file that is included and cannot be read.
std::optional<SlurmPartition> topologyOfPartition(const std::string& folder, const SlurmSite& site);

/// ClusterName of that slurm.conf, else as the site says; empty: not known.
std::string slurmClusterName(const std::string& folder, const SlurmSite& site);

/// Switches as Slurm lets a site write them, as a tree: those that share switches below them become one, since a
/// message may take either; a host that an upper switch lists again is only at the lower one; a switch with nothing but
/// one other below it is left out. Throws Error (taccInvalidArgument) for loops and for more levels than there are.
std::vector<SwitchEntry> asTree(std::vector<SwitchEntry> switches);

/// Blocks of hosts with fast links inside. They are joined to larger ones either by sizes in hosts ({18, 36}: two
/// blocks of 18), or by names, as `scontrol` prints them.
struct SlurmBlocks {
  struct Block {
    std::string name;
    std::vector<std::string> hosts;
    std::string where;
  };
  struct Joined {
    std::string name;
    std::vector<std::string> blocks;
    std::uint32_t size = 0;  // in hosts; 0: not said
    std::string where;
  };
  std::vector<Block> blocks;
  std::vector<std::uint32_t> sizes;
  std::string sizesWhere;
  std::vector<Joined> joined;
};
Topology topologyOfBlocks(const SlurmBlocks& blocks, const std::string& origin);

/// A ring or a torus of hosts.
struct SlurmGrid {
  std::string name;
  std::vector<std::uint32_t> extents;  // x, y, z; empty: where its hosts stand is not known
  std::vector<std::string> hosts;      // of each place, the first coordinate varies fastest; an empty name: no host
  std::string where;
};

/// One is the root; several are groups. Those of different extents cannot be one level, so they are groups and no tori;
/// `wanted`, the job's hosts, leaves out those that have none of them. `kind`: "ring" or "torus".
Topology topologyOfGrids(std::vector<SlurmGrid> grids, std::string_view kind, const std::string& origin,
                         std::span<const std::string> wanted);

}  // namespace tacc

// What Slurm knows of the network: topology.conf (tree and block), topology.yaml, and the variables of a job step.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/host_clues.hpp"
#include "topology/topology.hpp"

namespace tacc {

/// Blocks of hosts with fast links inside, and sizes to which blocks are joined: {18, 36} joins two blocks of 18.
struct SlurmBlocks {
  struct Block {
    std::string name;
    std::vector<std::string> hosts;
    std::string where;
  };
  std::vector<Block> blocks;
  std::vector<std::uint32_t> sizes;
};
Topology topologyOfBlocks(const SlurmBlocks& blocks, const std::string& origin);

/// topology.conf. Throws Error (taccInvalidArgument) that names file and line.
Topology topologyFromSlurmConf(std::string_view text, const std::string& origin);

/// topology.yaml: the topology that is the cluster's default, else the first that groups hosts. Needs yaml-cpp; without
/// it an Error (taccInvalidUsage) says so.
Topology topologyFromSlurmYaml(std::string_view text, const std::string& origin);
bool hasYaml() noexcept;

/// From SLURM_TOPOLOGY_ADDR of all hosts: "s0.s4.node7" with the pattern "switch.switch.node". Hosts without one make
/// it an empty topology: the job does not run under Slurm's tree plugin.
Topology topologyFromSlurmAddresses(std::span<const HostClues> hosts);

}  // namespace tacc

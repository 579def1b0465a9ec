// Who is plugged into what: the hosts of a fabric with the switches of their cards, and how switches lie above leaves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/sources/fabric.hpp"

namespace tacc {

/// A host's cable to a switch.
struct Plug {
  std::uint32_t at = 0;  // the switch, a device of the fabric
  double bandwidth = 0;  // bytes/s each way; 0: unknown
};

struct PluggedHost {
  std::string name;
  std::vector<Plug> plugs;  // one and more
};

/// All hosts that are plugged into a switch, each once. The names of a fabric's cards may stand for hosts, or be
/// missing; topologyOfFabric() says what then is a host.
std::vector<PluggedHost> hostsOf(const Fabric& fabric);

inline constexpr std::uint32_t unreached = 0xffffffff;

/// By device: how many switches it is away from the nearest leaf, 0 for a leaf; `unreached` for what is no switch.
/// A switch that hangs on others of the same network counts as one of these. Leaves have hosts, but not all with hosts
/// are leaves (topologyOfFabric()).
std::vector<std::uint32_t> stepsFromLeaves(const Fabric& fabric, const std::vector<PluggedHost>& hosts);

}  // namespace tacc

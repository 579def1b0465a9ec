// The headers of libibnetdisc are C that was not written for C++ compilers with all warnings on.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <infiniband/ibnetdisc.h>
#pragma GCC diagnostic pop

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "core/loaded_library.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/ibnet.hpp"

namespace tacc {
namespace {

/// What is used of libibnetdisc and of libibmad, which comes with it; loaded when a network is asked.
struct Ibnetdisc {
  decltype(&::ibnd_discover_fabric) discover;
  decltype(&::ibnd_destroy_fabric) destroy;
  decltype(&::mad_get_field) field;
  decltype(&::mad_get_field64) field64;

  Ibnetdisc() {
    const LoadedLibrary library("libibnetdisc.so.5", "Debian's libibnetdisc5 has it");
    library.find(discover, "ibnd_discover_fabric");
    library.find(destroy, "ibnd_destroy_fabric");
    library.find(field, "mad_get_field");
    library.find(field64, "mad_get_field64");
  }
};

const Ibnetdisc& ibnetdisc() {
  static const Ibnetdisc library;
  return library;
}

struct DestroyFabric {
  void operator()(ibnd_fabric_t* fabric) const { ibnetdisc().destroy(fabric); }
};

std::string_view descriptionOf(const ibnd_node_t& node) {
  const char* const end = std::find(std::begin(node.nodedesc), std::end(node.nodedesc), '\0');
  return {std::begin(node.nodedesc), static_cast<std::size_t>(end - std::begin(node.nodedesc))};
}

/// libibmad reads, but asks for what it could write.
std::uint8_t* infoOf(const ibnd_node_t& node) { return const_cast<std::uint8_t*>(node.info); }

/// "4xHDR" of a port, from the widths and speeds of the PortInfo attribute (InfiniBand specification 14.2.5.6).
std::string speedOf(ibnd_port_t& port) {
  const auto field = [&](std::uint8_t* info, MAD_FIELDS which) { return ibnetdisc().field(info, 0, which); };
  const std::uint32_t width = field(port.info, IB_PORT_LINK_WIDTH_ACTIVE_F);
  const int lanes = width == 1 ? 1 : width == 2 ? 4 : width == 4 ? 8 : width == 8 ? 12 : width == 16 ? 2 : 0;
  const std::uint32_t extended = field(port.info, IB_PORT_LINK_SPEED_EXT_ACTIVE_F);
  const std::uint32_t speed = field(port.info, IB_PORT_LINK_SPEED_ACTIVE_F);
  std::string_view name = speed == 1 ? "SDR" : speed == 2 ? "DDR" : speed == 4 ? "QDR" : "";
  if (speed == 4 && field(port.ext_info, IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F) == 1) name = "FDR10";
  if (extended != 0)
    name = extended == 1 ? "FDR" : extended == 2 ? "EDR" : extended == 4 ? "HDR" : extended == 8 ? "NDR" : "";
  return fmt::format("{}x{}", lanes, name);
}

}  // namespace

bool hasIbnetdisc() noexcept { return true; }

Fabric fabricNow() {
  ibnd_config_t config{};
  config.flags |= IBND_CONFIG_MLX_EPI;  // only the maker's own attribute tells FDR10 from QDR
  const std::unique_ptr<ibnd_fabric_t, DestroyFabric> found(ibnetdisc().discover(nullptr, 0, nullptr, &config));
  if (!found) {
    fail(taccSystemError,
         "the InfiniBand subnet does not answer: there is no active port, or no permission for "
         "/dev/infiniband/umad*; a file that ibnetdiscover wrote, given as TACC_TOPO_FILE, does as well");
  }
  Fabric fabric;
  std::unordered_map<const ibnd_node_t*, std::uint32_t> numberOf;
  for (const ibnd_node_t* node = found->nodes; node != nullptr; node = node->next) {
    const bool isSwitch = node->type != IB_NODE_CA;
    const std::string id = fmt::format("{}-{:016x}", isSwitch ? 'S' : 'H', node->guid);
    numberOf.emplace(node, static_cast<std::uint32_t>(fabric.devices.size()));
    Fabric::Device& device = fabric.devices.emplace_back(Fabric::Device{id, ""});
    describeDevice(device, isSwitch, descriptionOf(*node));
    if (const std::uint64_t system = ibnetdisc().field64(infoOf(*node), 0, IB_NODE_SYSTEM_GUID_F); system != 0)
      device.system = fmt::format("0x{:x}", system);
  }
  for (const ibnd_node_t* node = found->nodes; node != nullptr; node = node->next) {
    for (int p = 0; p <= node->numports; ++p) {
      ibnd_port_t* const port = node->ports[p];
      if (port == nullptr || port->remoteport == nullptr) continue;
      const ibnd_port_t& remote = *port->remoteport;
      const std::uint32_t a = numberOf.at(node), b = numberOf.at(remote.node);
      // Each cable is seen from both its ends.
      if (std::pair(b, remote.portnum) < std::pair(a, port->portnum)) continue;
      fabric.cables.push_back({a, b, infinibandBandwidth(speedOf(*port))});
    }
  }
  return fabric;
}

}  // namespace tacc

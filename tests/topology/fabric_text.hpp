// Networks as ibnetdiscover prints them: made up, and of the sizes that sites have.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace tacc::test {

class FabricText {
 public:
  struct Port {
    std::size_t device = 0;
    int number = 0;
    std::string speed;
  };
  struct Device {
    std::string type, id, description, system;
    std::vector<Port> ports = {};  // ports[i]: what is plugged into port i + 1
  };

  /// Devices are numbered in the order in which they are added.
  std::size_t addSwitch(const std::string& description) { return add("Switch", 'S', 0xfc6a1c0300000000, description); }
  /// `system`: the system image GUID; 0: one of its own.
  std::size_t addCard(const std::string& description, std::uint64_t system = 0) {
    const std::size_t card = add("Ca", 'H', 0xa088c20300000000, description);
    if (system != 0) devices_[card].system = fmt::format("0x{:x}", system);
    return card;
  }
  /// Every switch of the Quantum kind has one.
  void addAggregationNode(std::size_t at) { cable(at, addCard("Mellanox Technologies Aggregation Node"), "4xHDR"); }
  void cable(std::size_t a, std::size_t b, const std::string& speed) {
    const int portA = static_cast<int>(devices_[a].ports.size()) + 1;
    const int portB = static_cast<int>(devices_[b].ports.size()) + (a == b ? 2 : 1);
    devices_[a].ports.push_back({b, portB, speed});
    devices_[b].ports.push_back({a, portA, speed});
  }
  std::size_t devices() const noexcept { return devices_.size(); }

  std::string text() const {
    std::string text = "#\n# Topology file: generated on Mon Nov 23 09:41:13 2026\n#\n";
    for (std::size_t i = devices_.size(); i-- > 0;) text += record(devices_[i]);
    return text;
  }

  /// Leaves of `hosts` hosts each below `spines` spines, all to all, with `cables` between each two.
  static FabricText fatTree(int leaves, int hosts, int spines, int cables, const std::string& speed) {
    FabricText fabric;
    std::vector<std::size_t> up;
    for (int s = 0; s < spines; ++s) up.push_back(fabric.addSwitch(fmt::format("MF0;spine{}:MQM8700/U1", s + 1)));
    for (int l = 0; l < leaves; ++l) {
      const std::size_t leaf = fabric.addSwitch(fmt::format("MF0;leaf{:02}:MQM8700/U1", l + 1));
      for (int h = 0; h < hosts; ++h)
        fabric.cable(leaf, fabric.addCard(fmt::format("cn{:04} mlx5_0", l * hosts + h + 1)), speed);
      for (const std::size_t spine : up)
        for (int c = 0; c < cables; ++c) fabric.cable(leaf, spine, speed);
    }
    return fabric;
  }

  /// Scalable units in which card i of each host goes to leaf i, as in a SuperPOD; all leaves to all spines. `name` of
  /// a card: from its host and its number in it.
  template <class Name>
  static FabricText railOptimised(int units, int hosts, int rails, int spines, Name name,
                                  const std::string& speed = "4xNDR") {
    FabricText fabric;
    std::vector<std::size_t> up;
    for (int s = 0; s < spines; ++s) up.push_back(fabric.addSwitch(fmt::format("MF0;spine{:02}:MQM9700/U1", s + 1)));
    for (int u = 0; u < units; ++u) {
      std::vector<std::size_t> leaves;
      for (int r = 0; r < rails; ++r)
        leaves.push_back(fabric.addSwitch(fmt::format("MF0;su{}-leaf{}:MQM9700/U1", u + 1, r + 1)));
      for (int h = 0; h < hosts; ++h)
        for (int r = 0; r < rails; ++r)
          fabric.cable(leaves[static_cast<std::size_t>(r)], fabric.addCard(name(u * hosts + h + 1, r)), speed);
      for (const std::size_t leaf : leaves)
        for (const std::size_t spine : up) fabric.cable(leaf, spine, speed);
    }
    return fabric;
  }

 private:
  std::size_t add(const std::string& type, char prefix, std::uint64_t base, const std::string& description) {
    const std::uint64_t guid = base + devices_.size();
    devices_.push_back({type, fmt::format("{}-{:016x}", prefix, guid), description, fmt::format("0x{:x}", guid)});
    return devices_.size() - 1;
  }

  std::string record(const Device& device) const {
    const std::string guid = device.id.substr(2);
    const bool isSwitch = device.type == "Switch";
    std::string text = fmt::format("\nvendid=0x2c9\ndevid=0xd2f2\nsysimgguid={}\n{}=0x{}{}\n", device.system,
                                   isSwitch ? "switchguid" : "caguid", guid, isSwitch ? "(" + guid + ")" : "");
    text += fmt::format("{}\t{} \"{}\"\t\t# \"{}\"{}\n", device.type, device.ports.size(), device.id,
                        device.description, isSwitch ? " enhanced port 0 lid 1 lmc 0" : "");
    for (std::size_t p = 0; p < device.ports.size(); ++p) {
      const Port& port = device.ports[p];
      const Device& other = devices_[port.device];
      const std::string there = other.type == "Switch" ? "" : "(" + other.id.substr(2) + ") ";
      text += isSwitch ? fmt::format("[{}]\t\"{}\"[{}]{}\t\t# \"{}\" lid 7 {}\n", p + 1, other.id, port.number, there,
                                     other.description, port.speed)
                       : fmt::format("[{}]({}) \t\"{}\"[{}]{}\t\t# lid 7 lmc 0 \"{}\" lid 1 {}\n", p + 1, guid,
                                     other.id, port.number, there, other.description, port.speed);
    }
    return text;
  }

  std::vector<Device> devices_;
};

}  // namespace tacc::test

// InfiniBand and Omni-Path networks: what ibnetdiscover or opareport wrote, or what the subnet answers when it is asked
// now.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "topology/sources/fabric.hpp"

namespace tacc {

/// What `ibnetdiscover` writes, or a network for ibsim in nearly the same form. Lines of other programs are passed
/// over. Throws Error (taccInvalidArgument) that names file and line for what is no such file, or not the whole of one.
Fabric fabricFromIbnetdiscover(std::string_view text, const std::string& origin);

/// What `opareport -o links` or `opareport -o topology` writes of an Omni-Path network. Throws as the one above.
Fabric fabricFromOpareport(std::string_view text, const std::string& origin);
bool isOpareport(std::string_view text);

/// Bytes/s of "4xHDR": what is left for data after coding. 0 for an unknown speed.
double infinibandBandwidth(std::string_view widthAndSpeed);

/// The first line of a device there: `Switch 36 "S-0002c90300000003"`, `Ca 1 "H-..."`, or `Hca 2 "node1"`.
enum class IbnetRecord : std::uint8_t { switching, card };
/// What record begins with this line, if one does.
std::optional<IbnetRecord> ibnetRecordOf(std::string_view line);

/// The host in a card's description: its first word, "node1" of "node1 mlx5_0". Empty where it names none, as
/// "MT4129 ConnectX7   Mellanox Technologies" or "localhost mlx5_0".
std::string hostInDescription(std::string_view description);
/// A switch's name: "leaf1" of "MF0;leaf1:MQM8700/U1".
std::string switchInDescription(std::string_view description);

/// What a device is, from its description: kind and name.
void describeDevice(Fabric::Device& device, bool isSwitch, std::string_view description);

/// Whether this build has libibnetdisc.
bool hasIbnetdisc() noexcept;

/// Asks the subnet of this host's first active port. Takes seconds on a large network and sends to every switch, so it
/// is done only when asked for. Throws Error: taccSystemError when there is no network or no permission,
/// taccInvalidUsage without libibnetdisc.
Fabric fabricNow();

}  // namespace tacc

// InfiniBand networks: what ibnetdiscover wrote, or what the subnet answers when it is asked now.
#pragma once

#include <string>
#include <string_view>

#include "topology/fabric.hpp"

namespace tacc {

/// What `ibnetdiscover` writes. Throws Error (taccInvalidArgument) that names file and line for what is no such file.
Fabric fabricFromIbnetdiscover(std::string_view text, const std::string& origin);

/// Bytes/s of "4xHDR": what is left for data after coding. 0 for an unknown speed.
double infinibandBandwidth(std::string_view widthAndSpeed);

/// The host in a card's description: its first word, "node1" of "node1 mlx5_0".
std::string hostInDescription(std::string_view description);
/// A switch's name: "leaf1" of "MF0;leaf1:MQM8700/U1".
std::string switchInDescription(std::string_view description);

/// Whether this build has libibnetdisc.
bool hasIbnetdisc() noexcept;

/// Asks the subnet of this host's first active port. Takes seconds on a large network and sends to every switch, so it
/// is done only when asked for. Throws Error: taccSystemError when there is no network or no permission,
/// taccInvalidUsage without libibnetdisc.
Fabric fabricNow();

}  // namespace tacc

// Which algorithm runs the part of a call that is between hosts, and how it is cut. Pure functions of values that are
// equal on all ranks, so all choose alike.
#pragma once

#include <cstddef>
#include <string_view>

#include "algorithms/registry.hpp"
#include "selection/network_speed.hpp"

namespace tacc {

struct NetworkShape {
  PlanRequest request;    // of the hosts' ranks that take part
  std::size_t bytes = 0;  // split: of the vector; stack: of one block
  NetworkSpeed speed;
  std::string_view forced;  // an algorithm's name, or empty
};

/// A forced algorithm that cannot serve the request is an Error (taccInvalidUsage) that lists those that can.
const Algorithm& selectNetworkAlgorithm(const NetworkShape& shape);

/// All blocks of a call together. `bytes`: split: of the vector; stack: of one block.
std::size_t bytesOfAll(const PlanRequest& request, std::size_t bytes);

/// Bytes of a message: of a block of a split vector, or of the chunk's part of a block. `bytes`: bytesOfAll. `lanes`:
/// ranks of each host that have so many each and send at the same time.
std::size_t messageBytes(const NetworkSpeed& speed, std::size_t bytes, int lanes);

/// Up to here a call of several ranks a host goes through one rank of each host: fewer steps, and the bytes cost
/// little.
inline constexpr std::size_t leaderLimit = 32 * 1024;

}  // namespace tacc

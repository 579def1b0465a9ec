// How the part of a call that is between hosts is cut. Pure functions of values that are equal on all ranks.
#pragma once

#include <cstddef>

#include "algorithms/plan.hpp"

namespace tacc {

/// All blocks of a call together. `bytes`: split: of the vector; stack: of one block.
std::size_t bytesOfAll(const PlanRequest& request, std::size_t bytes);

/// No message is shorter because of how a call is cut.
inline constexpr std::size_t leastMessage = 4 * 1024;

/// Bytes of a message: of a block of a split vector, or of the chunk's part of a block. `bytes`: bytesOfAll.
/// `bytesPerSecond`: of a stream, where all ranks send.
std::size_t messageBytes(double bytesPerSecond, std::size_t bytes);

}  // namespace tacc

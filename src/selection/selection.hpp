// Which algorithm runs a call. A pure function of values that are equal on all ranks, so all choose alike.
#pragma once

#include <cstddef>
#include <string_view>

#include "algorithms/registry.hpp"
#include "engine/shm/program.hpp"

namespace tacc {

/// What a choice may depend on.
struct CallShape {
  PlanRequest request;
  std::size_t bytes = 0;  // of the call's `count` elements
  bool oversubscribed = false;
  std::string_view forced;  // an algorithm's name, or empty
};

/// Largest post (eagerPostBytes) that goes the eager route.
std::size_t eagerLimit(const CallShape& shape, std::size_t eagerBytes);

/// The volume that a rank stages per chunk.
std::size_t stagingChunk(const CallShape& shape);
/// By how much a rank that stages may be ahead of those that read it, also by whole calls. 0: a few chunks.
std::size_t stagingAhead(const CallShape& shape);

/// The algorithm for a call that does not go the eager route. A forced one that cannot serve it is an Error
/// (taccInvalidUsage) that lists those that can.
const Algorithm& selectAlgorithm(const CallShape& shape, const LoweringFacts& facts);

/// Throws taccInvalidArgument with the list of names if `name` is not empty and no algorithm's.
void checkAlgorithmName(std::string_view name, std::string_view where);

}  // namespace tacc

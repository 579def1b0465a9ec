// How one source is copied to all destinations of an operation: results and slots each in its own way of storing.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/shm/program.hpp"

namespace tacc {

/// Which stores of a call bypass the cache.
struct StoreWays {
  bool slots = false;    // of what other ranks read next
  bool results = false;  // into user buffers
  bool own = false;      // the same of what a rank copies for itself
};

inline constexpr std::size_t leastStream = 1024;  // streaming ends with a fence, about 90 ns

inline bool isUserMemory(const Place& place) {
  return place.kind == Place::Kind::output || place.kind == Place::Kind::remoteOutput;
}

/// Kept from operation to operation, so that its memory is.
struct CopyTargets {
  std::vector<void*> slots, results;
  bool streamsSlots = false, streamsResults = false;

  /// `destinations[d]`: where `operation.destinations[d]` is. What is in place is there already and is left out:
  /// streamed onto itself it would leave the cache, where the caller finds it. Where both ways are the same all are
  /// results.
  void assign(const Operation& operation, const void* source, const std::vector<void*>& destinations, std::size_t bytes,
              const StoreWays& ways) {
    slots.clear();
    results.clear();
    for (std::size_t d = 0; d < destinations.size(); ++d)
      if (destinations[d] != source)
        (isUserMemory(operation.destinations[d]) ? results : slots).push_back(destinations[d]);
    const bool isLong = bytes >= leastStream;
    const bool isOwn = operation.sources.front().kind == Place::Kind::input;
    streamsSlots = isLong && ways.slots;
    streamsResults = isLong && (isOwn ? ways.own : ways.results);
    if (streamsSlots != streamsResults) return;
    results.insert(results.end(), slots.begin(), slots.end());
    slots.clear();
  }
};

}  // namespace tacc

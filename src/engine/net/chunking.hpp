// The cutting of a call into chunks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/net/network_run.hpp"

namespace tacc {

/// A vector, or every block of a stack, of `count` elements, in chunks of `chunk`: the last may be shorter.
struct Chunking {
  std::size_t count;
  std::size_t chunk;

  std::size_t chunks() const noexcept { return (count + chunk - 1) / chunk; }
  std::size_t first(std::size_t k) const noexcept { return k * chunk; }
  std::size_t length(std::size_t k) const noexcept { return std::min(chunk, count - first(k)); }

  /// Makes `all` those of a run from `input` to `output`, either of which may be null.
  void cut(const std::byte* input, std::byte* output, std::size_t elementBytes, std::vector<NetworkChunk>& all) const {
    all.clear();
    for (std::size_t k = 0; k < chunks(); ++k) {
      const std::size_t offset = first(k) * elementBytes;
      all.push_back(
          {input == nullptr ? nullptr : input + offset, output == nullptr ? nullptr : output + offset, length(k)});
    }
  }
};

/// Elements of a message of `messageBytes`.
inline std::size_t elementsOf(std::size_t messageBytes, std::size_t elementBytes) noexcept {
  return std::max<std::size_t>(1, messageBytes / elementBytes);
}

/// Elements of a chunk whose plan has `blocks` blocks, so that a message of one block has `messageBytes`.
inline std::size_t chunkOf(std::size_t messageBytes, std::size_t elementBytes, int blocks) noexcept {
  return elementsOf(messageBytes, elementBytes) * static_cast<std::size_t>(blocks);
}

}  // namespace tacc

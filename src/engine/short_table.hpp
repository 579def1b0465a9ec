// A table of blocks and what it tells of, in a call line: of short calls, so that one cache line crosses and not three.
//
//   a byte: 1, or 0 where the table is in the eager slot | its words but the first, 16 bits each | the data
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "transports/shm/node_segment.hpp"

namespace tacc {

/// Tables of `words` words.
class ShortTable {
 public:
  explicit ShortTable(std::size_t words) noexcept : headerBytes_(1 + sizeof(std::uint16_t) * (words - 1)) {}

  std::size_t headerBytes() const noexcept { return headerBytes_; }
  /// Whether there are such: equal on all ranks.
  bool isPossible() const noexcept { return headerBytes_ < linePayload; }
  /// Whether `table` is one, with `dataBytes` of data.
  bool holds(std::span<const std::uint64_t> table, std::size_t dataBytes) const noexcept {
    return headerBytes_ + dataBytes <= linePayload &&
           std::ranges::all_of(table.subspan(1), [](std::uint64_t word) { return word <= UINT16_MAX; });
  }
  /// Writes it; returns where the data belongs.
  std::byte* write(std::span<const std::uint64_t> table, std::byte* line) const noexcept {
    *line = isShort;
    std::byte* to = line + 1;
    for (const std::uint64_t word : table.subspan(1)) {
      const auto narrow = static_cast<std::uint16_t>(word);
      std::memcpy(to, &narrow, sizeof narrow);
      to += sizeof narrow;
    }
    return to;
  }
  /// Says that the table is elsewhere.
  static void writeNone(std::byte* line) noexcept { *line = std::byte{0}; }
  static bool isIn(const std::byte* line) noexcept { return *line == isShort; }
  /// Reads it, its first word as 1: it has data; returns where that is.
  const std::byte* read(const std::byte* line, std::span<std::uint64_t> table) const noexcept {
    const std::byte* from = line + 1;
    table[0] = 1;
    for (std::uint64_t& word : table.subspan(1)) {
      std::uint16_t narrow;
      std::memcpy(&narrow, from, sizeof narrow);
      word = narrow;
      from += sizeof narrow;
    }
    return from;
  }

 private:
  static constexpr std::byte isShort{1};
  std::size_t headerBytes_;
};

}  // namespace tacc

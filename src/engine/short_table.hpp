// A table of blocks as a rank posts it: in its call line, so that fewer cache lines cross, where its numbers are short
// and there is room; else in its slot.
//
//   line   a byte: Place | the table's words but the first, 16 bits each | the data, if Place::line
//   slot   the data, if Place::apart; the table and the data behind it, if Place::slot
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "engine/shm/call_exchange.hpp"

namespace tacc {

/// Tables of `words` words.
class ShortTable {
 public:
  enum class Place : std::uint8_t { slot, line, apart };

  explicit ShortTable(std::size_t words) noexcept : headerBytes_(1 + sizeof(std::uint16_t) * (words - 1)) {}

  std::size_t headerBytes() const noexcept { return headerBytes_; }
  /// Whether there are such: equal on all ranks.
  bool isPossible() const noexcept { return headerBytes_ <= lineBesideEager; }
  /// Where `table` goes, with `dataBytes` of data, of which a slot takes `slotBytes`.
  Place placeOf(std::span<const std::uint64_t> table, std::size_t dataBytes, std::size_t slotBytes) const noexcept {
    const auto isNarrow = [](std::uint64_t word) { return word <= UINT16_MAX; };
    if (!isPossible() || !std::ranges::all_of(table.subspan(1), isNarrow)) return Place::slot;
    if (headerBytes_ + dataBytes <= linePayload) return Place::line;
    return dataBytes <= slotBytes ? Place::apart : Place::slot;
  }
  /// Writes it; returns the place behind it.
  std::byte* write(std::span<const std::uint64_t> table, Place place, std::byte* line) const noexcept {
    *line = std::byte{static_cast<std::uint8_t>(place)};
    std::byte* to = line + 1;
    for (const std::uint64_t word : table.subspan(1)) {
      const auto narrow = static_cast<std::uint16_t>(word);
      std::memcpy(to, &narrow, sizeof narrow);
      to += sizeof narrow;
    }
    return to;
  }
  /// Says that the table is in the slot.
  static void writeNone(std::byte* line) noexcept { *line = std::byte{static_cast<std::uint8_t>(Place::slot)}; }

 private:
  std::size_t headerBytes_;
};

/// A table where a rank has posted it.
class PostedTable {
 public:
  /// `line`, `slot`: what the rank posted.
  PostedTable(std::size_t words, const std::byte* line, const std::byte* slot) noexcept
      : short_(words), words_(words), line_(line), slot_(slot) {
    // What a rank wrote that lies may be anything.
    if (short_.isPossible() && *line != std::byte{0})
      place_ = *line == std::byte{static_cast<std::uint8_t>(ShortTable::Place::line)} ? ShortTable::Place::line
                                                                                      : ShortTable::Place::apart;
  }

  ShortTable::Place place() const noexcept { return place_; }
  std::uint64_t word(std::size_t index) const noexcept {
    if (place_ == ShortTable::Place::slot) {
      std::uint64_t word;
      std::memcpy(&word, slot_ + index * sizeof word, sizeof word);
      return word;
    }
    if (index == 0) return 1;
    std::uint16_t narrow;
    std::memcpy(&narrow, line_ + 1 + (index - 1) * sizeof narrow, sizeof narrow);
    return narrow;
  }
  const std::byte* data() const noexcept {
    switch (place_) {
      case ShortTable::Place::line:
        return line_ + short_.headerBytes();
      case ShortTable::Place::apart:
        return slot_;
      case ShortTable::Place::slot:
        break;
    }
    return slot_ + words_ * sizeof(std::uint64_t);
  }

 private:
  ShortTable short_;
  std::size_t words_;
  const std::byte *line_, *slot_;
  ShortTable::Place place_ = ShortTable::Place::slot;
};

}  // namespace tacc

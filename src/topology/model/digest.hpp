// A 64-bit digest of a sequence of values that is the same on every machine: FNV-1a over bytes in a fixed order.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tacc {

class Digest {
 public:
  void add(std::uint64_t value) noexcept {
    for (int byte = 0; byte < 8; ++byte) mix(static_cast<std::uint8_t>(value >> (8 * byte)));
  }
  /// With its length, so that "a", "bc" and "ab", "c" differ.
  void add(std::string_view text) noexcept {
    add(static_cast<std::uint64_t>(text.size()));
    for (const char c : text) mix(static_cast<std::uint8_t>(c));
  }
  /// Bit for bit: numbers that are read from the same text are equal on all machines with IEEE arithmetic.
  void add(const std::optional<double>& value) noexcept {
    add(std::uint64_t{value.has_value()});
    if (value) add(std::bit_cast<std::uint64_t>(*value));
  }
  std::uint64_t value() const noexcept { return value_; }

 private:
  void mix(std::uint8_t byte) noexcept { value_ = (value_ ^ byte) * 0x100000001b3u; }
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace tacc

// Whether large results are written past the cache: what is faster differs between machines, so it is measured, on the
// calls that are made anyway. It changes no result.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tacc {

class StreamingChoice {
 public:
  /// Calls that write less per rank never stream: what was written is probably read soon.
  static constexpr std::size_t leastBytes = 4 * 1024 * 1024;

  /// For a call that writes `bytes` in a rank; to be followed by record().
  bool choose(std::size_t bytes) noexcept {
    if (bytes < leastBytes) return false;
    const Class& c = classOf(bytes);
    if (c.calls < trials) return c.calls % 2 == 1;
    return c.best[1] < c.best[0];
  }
  void record(std::size_t bytes, bool streamed, double seconds) noexcept {
    if (bytes < leastBytes) return;
    Class& c = classOf(bytes);
    if (c.calls < trials) ++c.calls;
    // The first call of each way pays for page faults and cold caches of its own.
    const double perByte = seconds / static_cast<double>(bytes);
    if (c.calls > 2 && perByte < c.best[streamed ? 1 : 0]) c.best[streamed ? 1 : 0] = perByte;
  }

 private:
  static constexpr int trials = 8;  // calls of a size class, both ways in turn
  struct Class {
    int calls = 0;
    std::array<double, 2> best{1e9, 1e9};  // s/byte, plain and streaming
  };
  Class& classOf(std::size_t bytes) noexcept {
    return classes_[static_cast<std::size_t>(std::bit_width(bytes))];
  }
  std::array<Class, 65> classes_{};
};

}  // namespace tacc

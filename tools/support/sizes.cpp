#include "support/sizes.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <stdexcept>

namespace tacc::tools {

size_t parseSize(const std::string& text) {
  size_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  int shift = 0;
  if (end - rest == 1) {
    switch (*rest) {
      case 'k':
      case 'K':
        shift = 10;
        break;
      case 'm':
      case 'M':
        shift = 20;
        break;
      case 'g':
      case 'G':
        shift = 30;
        break;
      default:
        shift = -1;
    }
  }
  if (error != std::errc() || end - rest > 1 || shift < 0)
    throw std::invalid_argument(
        fmt::format("\"{}\" is not a size; write a whole number of bytes with K, M or G for the binary units", text));
  if (value > std::numeric_limits<size_t>::max() >> 1 >> shift)
    throw std::invalid_argument(fmt::format("the size {} is too large", text));
  return value << shift;
}

std::string formatSize(size_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, units[unit]);
}

size_t partOf(size_t elements, size_t elementSize, int ranks) {
  const size_t lineElements = 16 / elementSize;
  const auto parts = static_cast<size_t>(ranks);
  const size_t part = elements < parts ? std::min<size_t>(elements, 1) : elements / parts;
  return part < lineElements ? part : part - part % lineElements;
}

std::vector<size_t> SizeRange::list() const {
  std::vector<size_t> sizes;
  for (size_t size = first; size <= last;) {
    sizes.push_back(size);
    if (factor > 1 ? size > last / factor : size > last - step) break;
    const size_t next = factor > 1 ? size * factor : size + step;
    if (next == size) break;
    size = next;
  }
  return sizes;
}

}  // namespace tacc::tools

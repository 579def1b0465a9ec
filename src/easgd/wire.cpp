#include "easgd/wire.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "compute/reduce/reduce.hpp"
#include "easgd/local_step.hpp"

namespace tacc {

void Wire::put(void* message, std::size_t index, float* values, std::size_t count) const {
  if (isExact()) {
    std::memcpy(static_cast<float*>(message) + index, values, count * sizeof(float));
    return;
  }
  auto* const rounded = static_cast<std::uint16_t*>(message) + index;
  narrowFromFloat(type_, rounded, values, count);
  widenToFloat(type_, values, rounded, count);
}

void Wire::add(float* values, const void* message, std::size_t index, std::size_t count) const {
  std::array<float, updateTile> wide;
  if (isExact()) return addTo(values, static_cast<const float*>(message) + index, count);
  const auto* const rounded = static_cast<const std::uint16_t*>(message) + index;
  for (std::size_t done = 0; done < count; done += updateTile) {
    const std::size_t n = std::min(updateTile, count - done);
    widenToFloat(type_, wide.data(), rounded + done, n);
    addTo(values + done, wide.data(), n);
  }
}

}  // namespace tacc

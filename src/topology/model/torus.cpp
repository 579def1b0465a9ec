#include "topology/model/torus.hpp"

#include <algorithm>

namespace tacc {

std::vector<std::uint32_t> boxOf(std::span<const std::uint32_t> dimensions, std::span<const std::uint32_t> places) {
  std::vector<std::uint32_t> least(dimensions.begin(), dimensions.end()), most(dimensions.size(), 0);
  for (const std::uint32_t place : places) {
    std::uint32_t rest = place;
    for (std::size_t d = dimensions.size(); d-- > 0; rest /= dimensions[d]) {
      least[d] = std::min(least[d], rest % dimensions[d]);
      most[d] = std::max(most[d], rest % dimensions[d]);
    }
  }
  std::vector<std::uint32_t> sides;
  std::size_t inside = places.empty() ? 0 : 1;
  for (std::size_t d = 0; d < dimensions.size() && inside > 0; ++d) {
    sides.push_back(most[d] - least[d] + 1);
    inside *= sides.back();
  }
  return inside == places.size() ? sides : std::vector<std::uint32_t>();
}

}  // namespace tacc

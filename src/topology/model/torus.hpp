// The way of a message through a torus: one dimension after the other, the first one first, the shorter way round.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tacc {

/// A link from a place to its neighbour in one dimension. The two directions between neighbours are two links.
struct TorusHop {
  std::uint32_t place;  // that it leaves; places are numbered with the last coordinate running fastest
  int dimension;
  bool isUp;  // to the neighbour with the next coordinate, or from the last one round to the first
  friend bool operator==(const TorusHop&, const TorusHop&) = default;
};

/// A different number for each link, from 0 to places * dimensions * 2 - 1.
constexpr std::uint32_t numberOf(const TorusHop& hop, std::size_t dimensions) noexcept {
  return (hop.place * static_cast<std::uint32_t>(dimensions) + static_cast<std::uint32_t>(hop.dimension)) * 2 +
         (hop.isUp ? 1 : 0);
}

/// Calls visit(TorusHop) for each link from one place to another. Where both ways round are equally long, even
/// coordinates go up and odd ones down, so that neither direction has more to carry.
template <class Visit>
void alongTorus(std::span<const std::uint32_t> dimensions, std::uint32_t from, std::uint32_t to, const Visit& visit) {
  std::uint32_t stride = 1;
  for (const std::uint32_t extent : dimensions) stride *= extent;
  std::uint32_t place = from;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const std::uint32_t extent = dimensions[d];
    stride /= extent;
    const std::uint32_t wanted = to / stride % extent;
    const std::uint32_t ahead = (wanted + extent - place / stride % extent) % extent;
    const bool isUp = 2 * ahead < extent || (2 * ahead == extent && place / stride % extent % 2 == 0);
    for (std::uint32_t left = isUp ? ahead : extent - ahead; left > 0; --left) {
      visit(TorusHop{place, static_cast<int>(d), isUp});
      const std::uint32_t coordinate = place / stride % extent;
      const std::uint32_t next = (coordinate + (isUp ? 1 : extent - 1)) % extent;
      place = place - coordinate * stride + next * stride;
    }
  }
}

/// The sides of the box that these places fill, one for each dimension; empty if they fill none. Each place stands
/// once.
std::vector<std::uint32_t> boxOf(std::span<const std::uint32_t> dimensions, std::span<const std::uint32_t> places);

}  // namespace tacc

// Who meets whom in the butterflies; halving_doubling.cpp, bine.cpp and swing.cpp tell why.
#include <algorithm>

#include "algorithms/plan_writer.hpp"
#include "algorithms/shapes.hpp"

namespace tacc {
namespace {

int farPartner(int place, int level, int size, const std::vector<int>&) { return place ^ (size >> (level + 1)); }
int nearPartner(int place, int level, int, const std::vector<int>&) { return place ^ (1 << level); }

int alternatingPartner(int place, int level, int size, const std::vector<int>&) {
  const int rho = alternatingDistance(level);
  return wrap(place % 2 == 0 ? place + rho : place - rho, size);
}

/// The dimension of a level, and how often that dimension came before.
struct Turn {
  std::size_t dimension;
  int number;
};

Turn turnOf(int level, const std::vector<int>& dimensions) {
  std::vector<int> taken(dimensions.size(), 0);
  for (std::size_t d = dimensions.size() - 1;; d = (d == 0 ? dimensions.size() : d) - 1) {
    if ((1 << taken[d]) >= dimensions[d]) continue;
    if (level-- == 0) return {d, taken[d]};
    ++taken[d];
  }
}

int swingPartner(int place, int level, int size, const std::vector<int>& dimensions) {
  const std::vector<int> ring = {size};
  const bool isTorus = !dimensions.empty() && std::ranges::all_of(dimensions, isPowerOfTwo);
  const std::vector<int>& torus = isTorus ? dimensions : ring;
  const Turn turn = turnOf(level, torus);
  int stride = 1;
  for (std::size_t d = torus.size() - 1; d > turn.dimension; --d) stride *= torus[d];
  const int coordinate = place / stride % torus[turn.dimension];
  const int rho = alternatingDistance(turn.number);
  const int other = wrap(coordinate % 2 == 0 ? coordinate + rho : coordinate - rho, torus[turn.dimension]);
  return place + (other - coordinate) * stride;
}

}  // namespace

Butterfly::Partner butterflyPartner(std::string_view algorithm) {
  if (algorithm == "halving_doubling_far") return farPartner;
  if (algorithm == "halving_doubling_near") return nearPartner;
  if (algorithm == "bine") return alternatingPartner;
  if (algorithm == "swing") return swingPartner;
  return nullptr;
}

}  // namespace tacc

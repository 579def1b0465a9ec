// Swing: a butterfly for rings and tori, whose partners alternate between the two directions.
//
//   On a ring of P places the partner in step s is rho_s = 1, -1, 3, -5, 11, ... places away (even places; odd ones the
//   other way), not 2^s: both directions of the ring are used alike, and messages share fewer links. On a torus of
//   D dimensions step s goes along dimension s mod D with rho_{s / D}; a dimension in which all have met is left out.
//   The largest halves go first and to the nearest (butterfly.hpp has how, steps and bytes).
//
//   P = 8: 0-1, 2-3, ... with N/2;  0-7, 1-2, ... with N/4;  0-3, 2-5, 4-7, 6-1 with N/8; then back.
//   4 x 4, place 0 = (0, 0): (0, 1) with N/2, (1, 0) with N/4, (0, 3) with N/8, (3, 0) with N/16.
//
//   The dimensions are those of the request, the last one between consecutive ranks; without any, or where one is no
//   power of two, it is one ring, where any p is served through a fold. The paper runs two such plans on a mirrored
//   half of the data each per dimension, to use all links of a torus at once; here one message at a time leaves a rank.
//
//   D. De Sensi, T. Bonato, D. Saam, T. Hoefler: Swing: short-cutting rings for higher bandwidth allreduce. NSDI 2024.
#include <algorithm>

#include "algorithms/butterfly.hpp"
#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

constexpr std::string_view name = "swing";

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

bool serves(const PlanRequest& request) {
  if (request.ranks < 1) return false;
  const bool halves = isOneOf(request.collective, {Collective::reduceScatter, Collective::allGather});
  if (!halves && request.collective != Collective::allReduce) return false;
  if (!request.dimensions.empty() && !dimensionsFit(request)) return false;
  return !halves || isPowerOfTwo(request.ranks);
}

Plan make(const PlanRequest& request) { return writeButterfly(request, name, swingPartner); }
Exchanges exchanges(const PlanRequest& request) { return exchangesOfButterfly(request, swingPartner); }

}  // namespace

constinit const Algorithm swingAlgorithm = {
    name,
    "A butterfly for rings and tori, in both directions in turn: 2 lg p steps over near links.",
    "De Sensi et al.: Swing: short-cutting rings for higher bandwidth allreduce, NSDI 2024",
    serves,
    make,
    exchanges,
    true};

}  // namespace tacc

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
#include <span>
#include <utility>

#include "algorithms/butterfly.hpp"
#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"

namespace tacc {
namespace {

struct Torus {
  std::span<const int> sides;

  /// The dimension of a level, and how often that dimension came before. Turn by turn, each that is not used up yet.
  std::pair<std::size_t, int> turnOf(int level) const {
    for (int number = 0;; ++number) {
      for (std::size_t d = sides.size(); d-- > 0;) {
        if ((1 << number) < sides[d] && level-- == 0) return {d, number};
      }
    }
  }
};

int swingPartner(int place, int level, int size, const std::vector<int>& dimensions) {
  const bool isTorus = !dimensions.empty() && std::ranges::all_of(dimensions, isPowerOfTwo);
  const Torus torus{isTorus ? std::span<const int>(dimensions) : std::span<const int>(&size, 1)};
  const auto [dimension, number] = torus.turnOf(level);
  int stride = 1;
  for (std::size_t d = torus.sides.size() - 1; d > dimension; --d) stride *= torus.sides[d];
  const int side = torus.sides[dimension];
  const int coordinate = place / stride % side;
  const int rho = alternatingDistance(number);
  const int other = wrap(coordinate % 2 == 0 ? coordinate + rho : coordinate - rho, side);
  return place + (other - coordinate) * stride;
}

bool serves(const PlanRequest& request) {
  if (request.ranks < 1) return false;
  const bool halves = isOneOf(request.collective, {Collective::reduceScatter, Collective::allGather});
  if (!halves && request.collective != Collective::allReduce) return false;
  if (!request.dimensions.empty() && !dimensionsFit(request)) return false;
  return !halves || isPowerOfTwo(request.ranks);
}

void write(const PlanRequest& request, PlanWriter& writer) { writeButterfly(request, swingPartner, writer); }
Exchanges exchanges(const PlanRequest& request) { return exchangesOfButterfly(request, swingPartner); }

}  // namespace

constinit const Algorithm swingAlgorithm = {
    "swing",
    "A butterfly for rings and tori, in both directions in turn: 2 lg p steps over near links.",
    "De Sensi et al.: Swing: short-cutting rings for higher bandwidth allreduce, NSDI 2024",
    serves,
    write,
    exchanges,
    true};

}  // namespace tacc

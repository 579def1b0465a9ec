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

#include "algorithms/catalogue.hpp"
#include "algorithms/plan_writer.hpp"
#include "algorithms/shapes.hpp"

namespace tacc {
namespace {

constexpr std::string_view name = "swing";

bool serves(const PlanRequest& request) {
  if (request.ranks < 1) return false;
  const bool halves = isOneOf(request.collective, {Collective::reduceScatter, Collective::allGather});
  if (!halves && request.collective != Collective::allReduce) return false;
  if (!request.dimensions.empty() && !dimensionsFit(request)) return false;
  return !halves || isPowerOfTwo(request.ranks);
}

Plan make(const PlanRequest& request) { return writeButterfly(request, name, butterflyPartner(name)); }

}  // namespace

constinit const Algorithm swingAlgorithm = {
    name,
    "A butterfly for rings and tori, in both directions in turn: 2 lg p steps over near links.",
    "De Sensi et al.: Swing: short-cutting rings for higher bandwidth allreduce, NSDI 2024",
    serves,
    make,
    true};

}  // namespace tacc

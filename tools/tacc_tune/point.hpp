// One collective at one size: which of its routes is the fastest.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "estimate.hpp"
#include "gauge.hpp"
#include "selection/tuning/tuning.hpp"

namespace tacc::tune {

struct Point {
  Collective collective = Collective::allReduce;
  std::size_t count = 0;  // floats of the call
  std::size_t total = 0;  // bytes of the larger buffer, as in tacc_bench
  std::size_t bytes() const { return count * sizeof(float); }
};

/// How one route did.
struct Entrant {
  CallRoute route;
  double trial = 0;        // seconds of its first warm call; 0: it was not tried
  Rounds blocks;           // seconds of a call in each round
  std::string dropped;     // why it was not measured to the end; empty: it was
  bool isFree = false;     // the library chooses anew in every call; the route's name is what it chose last
  double seconds() const;  // what is known of it at last: what is typical of the rounds, else the trial
};

/// What is being done, for the display: the name of a route.
using Told = std::function<void(const std::string&)>;

/// Measures all routes in turn, round after round, for about `share` seconds. Routes that the model says take more than
/// four times as long as the best are tried only where a call costs little; those that turn out slower by far are
/// measured no further, but for the one that the library chooses by itself, which comes first in the result. All ranks
/// get the same.
///
/// `isFree`: what comes first is not the route that is chosen but calls that choose freely, after enough of them to
/// have learnt; the route itself is measured as well.
std::vector<Entrant> measure(Gauge& gauge, const Point& point, double share, bool isFree, const Told& told);

/// What is worth taking, the fastest of the others, and what the library chose: that is taken if it is as fast as any.
TunedSize resultOf(const Point& point, const std::vector<Entrant>& entrants);

/// How much longer what the library chose takes than the fastest.
Excess regretOf(const std::vector<Entrant>& entrants);

}  // namespace tacc::tune

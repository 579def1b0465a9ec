// What a row of simulations shows: tables for people, a file for programs.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "trial.hpp"

namespace tacc::sim {

/// A call on a machine with all the algorithms that were tried for it.
struct Point {
  Machine* machine = nullptr;
  Collective collective = Collective::allReduce;
  double bytes = 0;
  std::vector<const Algorithm*> algorithms;
  std::vector<Outcome> outcomes;  // of each
  std::size_t chosen = 0;         // by the library; algorithms.size(): it was not among them, or was not replayed
  std::size_t fastest = 0;        // by SimGrid; algorithms.size(): none was replayed

  bool isComparable() const noexcept { return chosen < algorithms.size() && fastest < algorithms.size(); }
  /// How much longer the chosen one takes than the fastest: 0.1 is a tenth.
  double regret() const { return outcomes[chosen].seconds / outcomes[fastest].seconds - 1; }
};

/// Finds what is chosen and what is fastest.
void judge(Point& point);

std::string table(const Point& point);

/// How often the model is right, and what the choice costs.
std::string summary(const std::vector<Point>& points);

void writeJson(std::ostream& out, const std::vector<Point>& points);

}  // namespace tacc::sim

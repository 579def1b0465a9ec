// What tacc_tune tells: a line for each point, the regret over all of them, and all figures as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "point.hpp"

namespace tacc::tune {

struct Row {
  Point point;
  TunedSize result;
  std::vector<Entrant> entrants;  // empty: it was measured in an earlier run

  /// How much longer the library's own choice takes than the fastest. Of an earlier run only times are known.
  Excess regret() const;
};

std::vector<double> regretsOf(const std::vector<Row>& rows);

/// The regret over all points. `what` was chosen: "chosen by the file".
std::string summaryOf(const std::vector<double>& regrets, std::string_view what);

std::string headerOf(const TuningPlace& place, std::size_t points);
std::string lineOf(const Row& row);
std::string jsonOf(const TuningPlace& place, const std::vector<Row>& rows);

/// "#####.....": how much is done, from 0 to 1.
std::string barOf(double done);

}  // namespace tacc::tune

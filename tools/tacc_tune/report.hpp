// What tacc_tune tells: a line for each point, the regret over all of them, and all figures as JSON.
#pragma once

#include <string>
#include <vector>

#include "point.hpp"

namespace tacc::tune {

struct Row {
  Point point;
  TunedSize result;
  std::vector<Entrant> entrants;  // empty: it was measured in an earlier run
};

/// How much longer the library's own choice takes than the fastest: 0.1 is 10 %.
double regretOf(const TunedSize& result);

std::string headerOf(const TuningPlace& place, std::size_t points);
std::string lineOf(const Row& row);
/// `isChecked`: the choices were those of a tuning file.
std::string footerOf(const std::vector<Row>& rows, bool isChecked);
std::string jsonOf(const TuningPlace& place, const std::vector<Row>& rows);

/// "#####.....": how much is done, from 0 to 1.
std::string barOf(double done);

}  // namespace tacc::tune

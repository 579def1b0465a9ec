// Drawings of bars in groups.
#pragma once

#include <string>
#include <vector>

namespace tacc::bench {

/// One bar per series; 0: none.
struct BarGroup {
  std::string label;
  std::vector<double> values;
};

struct Bars {
  std::string title, axis;
  std::vector<std::string> series;
  std::vector<BarGroup> groups;
  double limit;  ///< drawn as a line; 0: none
  std::string limitLabel;
};

/// An SVG drawing as wide as its groups need.
std::string drawBars(const Bars& bars);

}  // namespace tacc::bench

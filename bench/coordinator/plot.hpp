#pragma once

#include <string>
#include <vector>

#include "coordinator/options.hpp"
#include "coordinator/result.hpp"

namespace tacc::bench {

/// A line of the drawing.
struct Series {
  struct Point {
    double bytes;
    double microseconds;
  };
  std::string label;
  std::vector<Point> points;
};

/// The rows as lines: tacc, each peer and the bound, for every type, operation and root that was measured.
std::vector<Series> collectSeries(const Options& options, const std::vector<Row>& rows);

/// An SVG drawing of time over size, both axes logarithmic.
std::string drawPlot(const std::string& title, const std::vector<Series>& series);

/// "allreduce, 2 ranks, float sum, private memory".
std::string plotTitle(const Options& options);

}  // namespace tacc::bench

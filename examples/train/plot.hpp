// The drawing: loss and accuracy, over time and over images.
#pragma once

#include <string>
#include <vector>

#include "table.hpp"

namespace tacc::train {

/// An SVG file of four panels, one line for each curve, and a legend.
std::string drawTraining(const std::string& title, const std::vector<Curve>& curves);

}  // namespace tacc::train

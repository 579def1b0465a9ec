// A plan as a picture for people.
#pragma once

#include <string>

#include "algorithms/plan.hpp"

namespace tacc {

/// An SVG: ranks downwards, rounds from left to right. A dot is what a rank does in a round, filled where something is
/// reduced; an arrow is a message, the wider the more of the data it carries. For plans of up to about 32 ranks.
std::string toPicture(const Plan& plan);

}  // namespace tacc

// Plans as text: a readable dump that loads back to an equal plan.
#pragma once

#include <string>
#include <string_view>

#include "algorithms/plan.hpp"

namespace tacc {

/// One line a step, grouped by rank and round.
std::string toText(const Plan& plan);

/// Reads what toText wrote and verifies it. Errors name the line.
Plan fromText(std::string_view text);

}  // namespace tacc

// Whether the results of an allreduce of 16-bit numbers over several hosts travel as 16 bits, apart from its sums
// (engine/net/half_width_run.hpp), and by which plan.
#pragma once

#include <cstddef>
#include <string>

#include "selection/network_selector.hpp"

namespace tacc {

/// Whether that is faster than floats both ways. The parts follow one another, so there is a second start: it pays for
/// long vectors only.
bool halfWidthPays(NetworkSelector& selector, std::size_t numbers);

/// The plan of one run of `numbers` numbers.
const Algorithm& halfWidthAlgorithm(NetworkSelector& selector, std::size_t numbers);

/// How such an allreduce runs, which the table of candidates does not say; a line of text.
std::string explainHalfWidth(NetworkSelector& selector, std::size_t numbers, bool gathersHalfWidth);

}  // namespace tacc

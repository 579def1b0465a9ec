// What is different between two topologies, in sentences.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/model/topology.hpp"

namespace tacc {

/// One sentence for each difference, the heaviest first; empty exactly when `a` and `b` are equal. `nameA`, `nameB` say
/// whose value is whose.
std::vector<std::string> differences(const Topology& a, const Topology& b, std::string_view nameA,
                                     std::string_view nameB);

}  // namespace tacc

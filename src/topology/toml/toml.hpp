// A topology as a TOML file that people write and read; docs/understand/topology.md describes it. What is saved loads
// as an equal value.
#pragma once

#include <string>
#include <string_view>

#include "topology/model/topology.hpp"

namespace tacc {

/// `origin` (a file's name) stands in messages, with line and column. Throws Error (taccInvalidArgument) for what is no
/// TOML, for an unknown key (naming the nearest right one), for figures and lists that make no sense.
Topology topologyFromToml(std::string_view text, const std::string& origin);

/// With host lists folded: a few lines for a large regular machine.
std::string topologyToToml(const Topology& topology);

}  // namespace tacc

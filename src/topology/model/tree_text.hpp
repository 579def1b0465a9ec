// A topology as text for people: a table of its levels and a tree of its groups.
#pragma once

#include <string>

#include "topology/model/topology.hpp"

namespace tacc {

/// Ends with a line end. Of more than `most` groups side by side, those in the middle are counted and left out.
std::string treeText(const Topology& topology, std::size_t most = 12);

/// "16 digits" of the digest, as all messages write it.
std::string digestText(const Topology& topology);

}  // namespace tacc

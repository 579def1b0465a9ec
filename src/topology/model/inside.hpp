// The inside of the host that this runs on, as text that one rank sends the others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/model/node_description.hpp"

namespace tacc {

/// As the first of the files says that knows the inside of this host, or of hosts without a name; else as hwloc says,
/// with all cores, also those that this process may not use. Empty: nobody knows. hwloc is asked once in a process,
/// which takes milliseconds. Throws what is wrong with a file.
std::string describeInside(const std::vector<std::string>& files);

/// What describeInside() gave. Throws Error (taccInvalidArgument) for other text.
NodeDescription insideFromText(std::string_view text);

}  // namespace tacc

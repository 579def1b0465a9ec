// Where the programs are that the bench starts besides its own.
#pragma once

#include <string>

namespace tacc::tools {

/// A program of tools/: in the source tree, for a build directory in it, or where it is installed. Throws
/// std::runtime_error.
std::string findTool(const char* name);

}  // namespace tacc::tools

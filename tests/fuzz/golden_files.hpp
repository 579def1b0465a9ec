// The files of tests/topology/golden, at which TACC_TEST_GOLDEN points.
#pragma once

#include <string>

#include "core/text_file.hpp"

namespace tacc::fuzz {

inline std::string goldenFile(const std::string& name) { return readText(std::string(TACC_TEST_GOLDEN) + "/" + name); }

}  // namespace tacc::fuzz

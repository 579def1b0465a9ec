// Instruction sets as parameters of tests.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "compute/simd/isa.hpp"

namespace tacc {

inline void PrintTo(const Isa& isa, std::ostream* out) { *out << isa.name; }

namespace test {

inline std::string nameOfIsa(const testing::TestParamInfo<Isa>& parameter) { return std::string(parameter.param.name); }

}  // namespace test
}  // namespace tacc

// Names of tests for each pass.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tacc/compute.h"

namespace tacc::conv::test {

inline std::string passName(const testing::TestParamInfo<taccConvPass_t>& tested) {
  constexpr const char* names[] = {"Forward", "BackwardData", "BackwardWeights"};
  return names[tested.param];
}

}  // namespace tacc::conv::test

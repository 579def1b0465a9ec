// What a taccConvPlan_t points to.
#pragma once

#include <memory>
#include <string_view>

#include "compute/conv/chain.hpp"
#include "tacc/compute.h"

/// Of a chain, the description has the first convolution's input and the second one's output, and all else that
/// taccConvBuffers_t is checked by.
struct taccConvPlan {
  tacc::conv::Description description;
  std::string_view algorithm;
  std::unique_ptr<tacc::conv::ConvPlan> plan;
  const tacc::conv::ChainPlan* chain;  // the same plan, or null if it is of one convolution
  taccConvInfo_t info;
};

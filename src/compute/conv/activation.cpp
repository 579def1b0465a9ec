#include "compute/conv/activation.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace tacc::conv {

taccActivation_t activationOf(const taccConvDesc_t& desc) {
  if (static_cast<unsigned>(desc.activation) > static_cast<unsigned>(taccActivationHardSwish)) {
    fail(taccInvalidArgument,
         "activation {} is unknown; there are taccActivationNone, taccActivationRelu, taccActivationRelu6, "
         "taccActivationSilu and taccActivationHardSwish",
         static_cast<int>(desc.activation));
  }
  if (desc.relu == 0) return desc.activation;
  if (desc.activation != taccActivationNone && desc.activation != taccActivationRelu) {
    fail(taccInvalidArgument, "relu is set beside another activation, {}; set one of the two",
         static_cast<int>(desc.activation));
  }
  return taccActivationRelu;
}

float applyActivation(taccActivation_t function, float x) {
  switch (function) {
    case taccActivationNone:
      break;
    case taccActivationRelu:
      return std::max(x, 0.0F);
    case taccActivationRelu6:
      return std::clamp(x, 0.0F, 6.0F);
    case taccActivationSilu:
      return x / (1.0F + std::exp(-x));
    case taccActivationHardSwish:
      return x * (std::clamp(x + 3.0F, 0.0F, 6.0F) * (1.0F / 6));
  }
  return x;
}

}  // namespace tacc::conv

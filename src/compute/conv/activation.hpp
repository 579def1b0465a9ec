// The functions that a forward pass applies at last, by their definition: for the algorithms that work number by
// number. Kernels have vectors of them (kernels/activation-inl.hpp).
#pragma once

#include "tacc/compute.h"

namespace tacc::conv {

/// The one that a description asks for, by either of its members. Throws Error (taccInvalidArgument) where it is
/// unknown, or where the two members differ.
taccActivation_t activationOf(const taccConvDesc_t& desc);

float applyActivation(taccActivation_t function, float x);

}  // namespace tacc::conv

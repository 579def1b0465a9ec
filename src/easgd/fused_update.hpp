// The mean of all ranks' gradients and the step that follows from it, in one pass over memory.
#pragma once

#include <cstddef>

#include "comm/communicator.hpp"
#include "easgd/local_step.hpp"

namespace tacc {

/// Collective. `step.gradient` is this rank's own; weights that are equal on all ranks stay so, bit for bit.
void allReduceUpdate(Communicator& communicator, const LocalStep& step, std::size_t count);

}  // namespace tacc

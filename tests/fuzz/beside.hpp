// A process beside the fuzzed one that takes one input after another, for libraries that do not survive damaged input.
// A fork for each would be some hundred inputs a second.
#pragma once

#include "fuzz/target.hpp"

namespace tacc::fuzz {

/// Runs `read` on `input` in the process beside this one; its coverage is counted here. What runIsolated() runs may
/// end that process, as it may end the process of its own that it has in the library: then another one takes the next
/// input. Ends this program when it ends anywhere else.
void runBeside(void (*read)(Input), std::span<const std::uint8_t> input);

}  // namespace tacc::fuzz

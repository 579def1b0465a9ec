// What this CPU can run, in Highway's words.
#pragma once

#include <cstdint>

namespace tacc {

/// Highway's bits of the targets of TACC_INSTRUCTION_SETS whose code this CPU, and its operating system, can run;
/// whether they are compiled in does not matter. As hwy::SupportedTargets(), which lies in a library that every program
/// would need.
std::int64_t findCpuTargets();

}  // namespace tacc

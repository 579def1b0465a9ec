// Which of OpenBLAS's kernels have the vectors of tacc's.
#pragma once

#include <string_view>

namespace tacc::bench {

/// The value of OPENBLAS_CORETYPE with which OpenBLAS computes in vectors as wide as tacc's instruction set `isa` has,
/// where `core`, its own name for what it computes with now, has narrower ones; else empty.
std::string_view widerCore(std::string_view core, std::string_view isa);

}  // namespace tacc::bench

// The instruction set that OpenBLAS computes with.
#pragma once

#include <string>
#include <vector>

namespace tacc::bench {

/// OpenBLAS's name for the CPU that it has kernels for, such as "SkylakeX".
std::string openblasCore();

/// An OpenBLAS that does not know its CPU takes kernels of SSE or AVX2. Where it is among the peers, tacc has wider
/// vectors, and OPENBLAS_CORETYPE does not say otherwise, starts the program again with those that OpenBLAS has for
/// them; it reads the variable when it is loaded.
#ifdef TACC_BENCH_OPENBLAS
void useVectorsInOpenblas(const std::vector<std::string>& peers);
#else
inline void useVectorsInOpenblas(const std::vector<std::string>&) {}
#endif

}  // namespace tacc::bench

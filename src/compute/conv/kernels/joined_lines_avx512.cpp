// The kernels of joined lines for AVX-512.
#define TACC_LANES 16
#define TACC_CONV_ISA avx512
#define TACC_REGISTERS 32
#define TACC_JOINED_LINES avx512JoinedLines
#include "compute/conv/kernels/joined_lines-inl.hpp"

// The kernels of joined lines for AVX2.
#define TACC_LANES 8
#define TACC_CONV_ISA avx2
#define TACC_REGISTERS 16
#define TACC_JOINED_LINES avx2JoinedLines
#include "compute/conv/kernels/joined_lines-inl.hpp"

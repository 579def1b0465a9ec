// The channel-wise kernels for AVX2 with FMA.
#define TACC_LANES 8
#define TACC_CONV_ISA avx2
#define TACC_VECTOR_REGISTER "x"
#define TACC_REGISTERS 16
#include "compute/conv/kernels/depthwise_table-inl.hpp"

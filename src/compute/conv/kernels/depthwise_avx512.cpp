// The channel-wise kernels for AVX-512.
#define TACC_LANES 16
#define TACC_CONV_ISA avx512
#define TACC_VECTOR_REGISTER "v"
#define TACC_REGISTERS 32
#include "compute/conv/kernels/depthwise_table-inl.hpp"

// The kernels of short sums for AVX2.
#define TACC_LANES 8
#define TACC_CONV_ISA avx2
#define TACC_VECTOR_REGISTER "x"
#define TACC_REGISTERS 16
#define TACC_SHORT_SUMS avx2ShortSums
#include "compute/conv/kernels/short_sums-inl.hpp"

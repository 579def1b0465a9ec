// The kernels of short sums for AVX-512.
#define TACC_LANES 16
#define TACC_CONV_ISA avx512
#define TACC_VECTOR_REGISTER "v"
#define TACC_REGISTERS 32
#define TACC_SHORT_SUMS avx512ShortSums
#include "compute/conv/kernels/short_sums-inl.hpp"

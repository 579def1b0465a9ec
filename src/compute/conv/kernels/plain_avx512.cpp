// The kernels of products in NCHW for AVX-512.
#define TACC_LANES 16
#define TACC_CONV_ISA avx512
#define TACC_VECTOR_REGISTER "v"
#define TACC_REGISTERS 32
#define TACC_PLAIN_KERNELS avx512PlainKernels
#include "compute/conv/kernels/plain-inl.hpp"

// The kernels of products in NCHW for AVX2.
#define TACC_LANES 8
#define TACC_CONV_ISA avx2
#define TACC_VECTOR_REGISTER "x"
#define TACC_REGISTERS 16
#define TACC_PLAIN_KERNELS avx2PlainKernels
#include "compute/conv/kernels/plain-inl.hpp"

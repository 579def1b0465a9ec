// The kernels of few channels in NCHW for AVX-512.
#define TACC_LANES 16
#define TACC_CONV_ISA avx512
#define TACC_VECTOR_REGISTER "v"
#define TACC_REGISTERS 32
#define TACC_PLANE_KERNELS avx512PlaneKernels
#include "compute/conv/kernels/planes-inl.hpp"

// The kernels of few channels in NCHW for AVX2.
#define TACC_LANES 8
#define TACC_CONV_ISA avx2
#define TACC_VECTOR_REGISTER "x"
#define TACC_REGISTERS 16
#define TACC_PLANE_KERNELS avx2PlaneKernels
#include "compute/conv/kernels/planes-inl.hpp"

// The kernels of channel-wise convolutions in NCHW for AVX-512.
#define TACC_LANES 16
#define TACC_CONV_ISA avx512
#define TACC_VECTOR_REGISTER "v"
#define TACC_REGISTERS 32
#define TACC_DEPTHWISE_PLANE_KERNELS avx512DepthwisePlaneKernels
#include "compute/conv/kernels/depthwise_planes-inl.hpp"

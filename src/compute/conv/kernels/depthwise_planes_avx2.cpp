// The kernels of channel-wise convolutions in NCHW for AVX2.
#define TACC_LANES 8
#define TACC_CONV_ISA avx2
#define TACC_VECTOR_REGISTER "x"
#define TACC_REGISTERS 16
#define TACC_DEPTHWISE_PLANE_KERNELS avx2DepthwisePlaneKernels
#include "compute/conv/kernels/depthwise_planes-inl.hpp"

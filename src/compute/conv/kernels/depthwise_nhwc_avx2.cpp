// The kernels of channel-wise convolutions in NHWC for AVX2.
#define TACC_LANES 8
#define TACC_CONV_ISA avx2
#define TACC_VECTOR_REGISTER "x"
#define TACC_REGISTERS 16
#define TACC_DEPTHWISE_NHWC avx2DepthwiseNhwc
#include "compute/conv/kernels/depthwise_nhwc-inl.hpp"

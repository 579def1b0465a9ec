// The kernels of channel-wise convolutions in NHWC for AVX-512.
#define TACC_LANES 16
#define TACC_CONV_ISA avx512
#define TACC_VECTOR_REGISTER "v"
#define TACC_REGISTERS 32
#define TACC_DEPTHWISE_NHWC avx512DepthwiseNhwc
#include "compute/conv/kernels/depthwise_nhwc-inl.hpp"

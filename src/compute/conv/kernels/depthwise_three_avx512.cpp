// The kernels of channel-wise gradients three wide for AVX-512.
#define TACC_LANES 16
#define TACC_CONV_ISA avx512
#define TACC_VECTOR_REGISTER "v"
#define TACC_REGISTERS 32
#define TACC_DEPTHWISE_THREE avx512DepthwiseThree
#include "compute/conv/kernels/depthwise_three-inl.hpp"

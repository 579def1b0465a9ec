// The kernels of channel-wise gradients three wide for AVX2 with FMA.
#define TACC_LANES 8
#define TACC_CONV_ISA avx2
#define TACC_VECTOR_REGISTER "x"
#define TACC_REGISTERS 16
#define TACC_DEPTHWISE_THREE avx2DepthwiseThree
#include "compute/conv/kernels/depthwise_three-inl.hpp"

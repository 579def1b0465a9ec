// The kernels of channel-wise convolutions in NHWC for what every CPU of the architecture has.
#define TACC_LANES 4
#define TACC_CONV_ISA portable
#if defined(__aarch64__)
#define TACC_VECTOR_REGISTER "w"
#define TACC_REGISTERS 32
#else
#define TACC_VECTOR_REGISTER "x"
#define TACC_REGISTERS 16
#endif
#define TACC_DEPTHWISE_NHWC portableDepthwiseNhwc
#include "compute/conv/kernels/depthwise_nhwc-inl.hpp"

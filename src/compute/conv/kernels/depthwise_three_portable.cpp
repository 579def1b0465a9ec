// The kernels of channel-wise gradients three wide for what every CPU of the architecture has.
#define TACC_LANES 4
#define TACC_CONV_ISA portable
#if defined(__aarch64__)
#define TACC_VECTOR_REGISTER "w"
#define TACC_REGISTERS 32
#else
#define TACC_VECTOR_REGISTER "x"
#define TACC_REGISTERS 16
// As in depthwise_portable.cpp: there are none.
#define TACC_FEW_FORMS
#endif
#define TACC_DEPTHWISE_THREE portableDepthwiseThree
#include "compute/conv/kernels/depthwise_three-inl.hpp"

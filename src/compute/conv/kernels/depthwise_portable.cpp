// The channel-wise kernels for what every CPU of the architecture has.
#define TACC_LANES 4
#define TACC_CONV_ISA portable
#if defined(__aarch64__)
#define TACC_VECTOR_REGISTER "w"
#define TACC_REGISTERS 32
#else
#define TACC_VECTOR_REGISTER "x"
#define TACC_REGISTERS 16
// CPUs of this architecture without AVX2 are old: each form more takes its time to compile, and serves nobody else.
#define TACC_FEW_FORMS
#endif
#include "compute/conv/kernels/depthwise_table-inl.hpp"

// Gradients of weights of few pixels for what every CPU of the architecture has.
#define TACC_LANES 4
#define TACC_CONV_ISA portable
#if defined(__aarch64__)
#define TACC_REGISTERS 32
#else
#define TACC_REGISTERS 16
#endif
#define TACC_FEW_PIXELS portableFewPixels
#include "compute/conv/kernels/few_pixels-inl.hpp"

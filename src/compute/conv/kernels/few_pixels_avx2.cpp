// Gradients of weights of few pixels for AVX2.
#define TACC_LANES 8
#define TACC_CONV_ISA avx2
#define TACC_REGISTERS 16
#define TACC_FEW_PIXELS avx2FewPixels
#include "compute/conv/kernels/few_pixels-inl.hpp"

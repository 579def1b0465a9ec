// Gradients of weights of few pixels for AVX-512.
#define TACC_LANES 16
#define TACC_CONV_ISA avx512
#define TACC_REGISTERS 32
#define TACC_FEW_PIXELS avx512FewPixels
#include "compute/conv/kernels/few_pixels-inl.hpp"

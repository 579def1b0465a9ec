// libtacc_kernels.so: the kernels of convolutions and other layers, for all instruction sets. They are two fifths of
// the code, and of the time to compile it, and a program that only communicates calls none of them. So libtacc.so loads
// them with the first function of tacc/compute.h that needs one.
#pragma once

#include <cstdint>

#include "compute/conv/amx/amx_kernels.hpp"
#include "compute/conv/kernels/depthwise_nhwc_kernels.hpp"
#include "compute/conv/kernels/depthwise_planes_kernels.hpp"
#include "compute/conv/kernels/depthwise_three_kernels.hpp"
#include "compute/conv/kernels/few_pixels_kernels.hpp"
#include "compute/conv/kernels/joined_lines_kernels.hpp"
#include "compute/conv/kernels/kernels.hpp"
#include "compute/conv/kernels/plain_kernels.hpp"
#include "compute/conv/kernels/planes_kernels.hpp"
#include "compute/conv/kernels/short_sums_kernels.hpp"
#include "compute/layers/kernels.hpp"
#include "compute/simd/kernel_sets.hpp"
#include "tacc/tacc.h"

namespace tacc {

/// What the module shows: the functions of the same names, which tests have linked in instead.
struct KernelModule {
  std::uint64_t layout;  // first, so that it can be read of a module whose rest is another
#define TACC_MEMBER(set, isThere)                                         \
  decltype(&conv::set##Kernels) set##Kernels;                             \
  decltype(&conv::set##PlaneKernels) set##PlaneKernels;                   \
  decltype(&conv::set##DepthwisePlaneKernels) set##DepthwisePlaneKernels; \
  decltype(&conv::set##PlainKernels) set##PlainKernels;                   \
  decltype(&conv::set##ShortSums) set##ShortSums;                         \
  decltype(&conv::set##DepthwiseNhwc) set##DepthwiseNhwc;                 \
  decltype(&conv::set##JoinedLines) set##JoinedLines;                     \
  decltype(&conv::set##DepthwiseThree) set##DepthwiseThree;               \
  decltype(&conv::set##FewPixels) set##FewPixels;                         \
  decltype(&layers::set##Table) set##Table;
  TACC_KERNEL_SETS(TACC_MEMBER)
#undef TACC_MEMBER
#if defined(__x86_64__)
  decltype(&conv::amxKernelTable) amxKernelTable;
  decltype(&conv::avx512PairKernels) avx512PairKernels;
  decltype(&conv::avx512Bf16Depthwise) avx512Bf16Depthwise;
#endif
};

/// Differs between two versions of the library, and, of one version, between most that do not fit each other.
constexpr std::uint64_t kernelLayout() {
  std::uint64_t layout = 0;
  for (const std::uint64_t part : {std::uint64_t{TACC_MAJOR},
                                   std::uint64_t{TACC_MINOR},
                                   std::uint64_t{TACC_PATCH},
                                   sizeof(KernelModule),
                                   sizeof(conv::KernelSet),
                                   sizeof(conv::TileCall),
                                   sizeof(conv::TapRun),
                                   sizeof(conv::GradientCall),
                                   sizeof(conv::DepthwiseCall),
                                   sizeof(conv::DepthwiseGradientCall),
                                   sizeof(conv::WinogradInputCall),
                                   sizeof(conv::WinogradOutputCall),
                                   sizeof(conv::PlaneKernels),
                                   sizeof(conv::PlaneCall),
                                   sizeof(conv::PlaneGradientCall),
                                   sizeof(conv::DepthwisePlaneKernels),
                                   sizeof(conv::DepthwisePlaneCall),
                                   sizeof(conv::DepthwisePlaneGradientCall),
                                   sizeof(conv::PlainKernels),
                                   sizeof(conv::PlainProductCall),
                                   sizeof(conv::PlainGradientCall),
                                   sizeof(conv::ShortSumsKernels),
                                   sizeof(conv::ShortSumsCall),
                                   sizeof(conv::JoinedLinesKernels),
                                   sizeof(conv::JoinedLinesCall),
                                   sizeof(conv::DepthwiseThreeKernels),
                                   sizeof(conv::DepthwiseThreeCall),
                                   sizeof(conv::FewPixelsKernels),
                                   sizeof(conv::FewPixelsCall),
                                   sizeof(conv::DepthwiseNhwcKernels),
                                   sizeof(conv::DepthwiseNhwcCall),
                                   sizeof(conv::DepthwiseNhwcGradientCall),
                                   sizeof(conv::Bf16x3Kernels),
                                   sizeof(layers::LayerKernels)}) {
    layout = layout * 1'000'003 + part;
  }
  return layout;
}

/// By whose name the module is looked up.
inline constexpr const char* kernelModuleSymbol = "taccKernelModule";

}  // namespace tacc

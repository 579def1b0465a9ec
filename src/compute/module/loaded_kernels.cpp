// The functions that give tables of kernels, out of libtacc_kernels.so. Compiled into libtacc.so alone.
#include <filesystem>
#include <string>
#include <system_error>

#include "compute/module/kernel_module.hpp"
#include "core/loaded_library.hpp"

namespace tacc {
namespace {

constexpr const char* moduleFile = TACC_KERNEL_MODULE;

/// Beside the library that this is part of, as it was found or where a link to it leads; else where the linker looks.
std::string findModule() {
  Dl_info library{};
  if (::dladdr(&moduleFile, &library) == 0 || library.dli_fname == nullptr) return moduleFile;
  std::error_code none;
  const std::filesystem::path found = library.dli_fname;
  for (std::filesystem::path beside : {found, std::filesystem::canonical(found, none)}) {
    beside.replace_filename(moduleFile);
    if (std::filesystem::exists(beside, none)) return beside.string();
  }
  return moduleFile;
}

/// Throws taccSystemError where it is not there, or is of another version.
const KernelModule& loadModule() {
  const std::string file = findModule();
  const LoadedLibrary library(file.c_str(),
                              "it has the kernels of tacc/compute.h, and belongs beside libtacc.so, where \"ninja "
                              "kernels\" makes it in a build folder");
  const KernelModule* module = nullptr;
  library.find(module, kernelModuleSymbol);
  if (module->layout != kernelLayout())
    fail(taccSystemError, "{} is of another version than libtacc.so; both are installed by the same build", file);
  return *module;
}

const KernelModule& kernelModule() {
  static const KernelModule& module = loadModule();  // after an exception the next call tries again
  return module;
}

}  // namespace

#define TACC_DEFINE(set, isThere)                                                                                 \
  const conv::KernelSet& conv::set##Kernels() { return kernelModule().set##Kernels(); }                           \
  const conv::PlaneKernels& conv::set##PlaneKernels() { return kernelModule().set##PlaneKernels(); }              \
  const conv::DepthwisePlaneKernels& conv::set##DepthwisePlaneKernels() {                                         \
    return kernelModule().set##DepthwisePlaneKernels();                                                           \
  }                                                                                                               \
  const conv::PlainKernels& conv::set##PlainKernels() { return kernelModule().set##PlainKernels(); }              \
  const conv::ShortSumsKernels& conv::set##ShortSums() { return kernelModule().set##ShortSums(); }                \
  const conv::DepthwiseNhwcKernels& conv::set##DepthwiseNhwc() { return kernelModule().set##DepthwiseNhwc(); }    \
  const conv::JoinedLinesKernels& conv::set##JoinedLines() { return kernelModule().set##JoinedLines(); }          \
  const conv::DepthwiseThreeKernels& conv::set##DepthwiseThree() { return kernelModule().set##DepthwiseThree(); } \
  const conv::FewPixelsKernels& conv::set##FewPixels() { return kernelModule().set##FewPixels(); }                \
  const layers::LayerKernels& layers::set##Table() { return kernelModule().set##Table(); }
TACC_KERNEL_SETS(TACC_DEFINE)
#undef TACC_DEFINE
#if defined(__x86_64__)
const conv::Bf16x3Kernels& conv::amxKernelTable() { return kernelModule().amxKernelTable(); }
const conv::KernelSet& conv::avx512PairKernels() { return kernelModule().avx512PairKernels(); }
const conv::KernelSet& conv::avx512Bf16Depthwise() { return kernelModule().avx512Bf16Depthwise(); }
#endif

}  // namespace tacc

// Built where OpenBLAS is not installed.
#include "compute/conv/algorithms.hpp"
#include "core/error.hpp"

namespace tacc::conv {

bool servesExplicitGemm(const Description&) { return false; }

std::unique_ptr<ConvPlan> makeExplicitGemm(const Description&, const KernelSet&) {
  fail(taccInvalidUsage, "this build of tacc has no OpenBLAS; with libopenblas-serial-dev it would");
}

}  // namespace tacc::conv

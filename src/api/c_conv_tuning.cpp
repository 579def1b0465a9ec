// The C functions of tacc/compute.h for measured choices of algorithms.
#include <memory>
#include <string>

#include "api/boundary.hpp"
#include "api/compute_check.hpp"
#include "compute/conv/tuning.hpp"
#include "core/text_file.hpp"

using tacc::guardLong;
namespace conv = tacc::conv;

taccResult_t taccConvLoadTuning(const char* file) {
  return guardLong("taccConvLoadTuning", nullptr, [&] {
    if (file == nullptr) {
      conv::setTuning(nullptr);
      return;
    }
    const std::string text = tacc::readText(file);
    const conv::KernelSet& kernels = tacc::compute_check::kernels();
    const conv::ConvTuningPlace here{conv::cpuModel(), std::string(kernels.isa), kernels.split != nullptr};
    conv::setTuning(std::make_shared<const conv::ConvTuning>(conv::tuningFromToml(text, file, here)));
  });
}

const char* taccComputeCpu() { return conv::cpuModel().c_str(); }

// The C functions of tacc/compute.h for measured choices of algorithms.
#include <fstream>
#include <iterator>
#include <memory>

#include "api/boundary.hpp"
#include "api/compute_check.hpp"
#include "compute/conv/tuning.hpp"
#include "core/error.hpp"

using tacc::failErrno;
using tacc::guard;
namespace conv = tacc::conv;

taccResult_t taccConvLoadTuning(const char* file) {
  return guard("taccConvLoadTuning", nullptr, [&] {
    if (file == nullptr) {
      conv::setTuning(nullptr);
      return;
    }
    std::ifstream stream(file, std::ios::binary);
    if (!stream) failErrno("cannot open {}", file);
    const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    if (stream.bad()) failErrno("cannot read {}", file);
    const conv::KernelSet& kernels = tacc::compute_check::kernels();
    const conv::ConvTuningPlace here{conv::cpuModel(), std::string(kernels.isa), kernels.split != nullptr};
    conv::setTuning(std::make_shared<const conv::ConvTuning>(conv::tuningFromToml(text, file, here)));
  });
}

const char* taccComputeCpu() { return conv::cpuModel().c_str(); }

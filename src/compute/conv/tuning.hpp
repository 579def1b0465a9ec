// Measured choices of algorithms: which was the fastest for a convolution on this CPU. A file of them is loaded when
// the user says so, never else.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "compute/conv/shape.hpp"

namespace tacc::conv {

class ConvTuning {
 public:
  /// False when there is a choice for this description already.
  bool add(const Description& description, std::string algorithm);
  /// Empty when it has not been measured. What is fused does not matter, nor how weights lie.
  std::string_view find(const Description& description) const;

 private:
  std::map<std::string, std::string, std::less<>> choices_;
};

/// Where a file is good for.
struct ConvTuningPlace {
  std::string cpu;      // cpuModel()
  std::string isa;      // as in KernelSet
  bool splits = false;  // whether that one has kernels for products of split numbers
};

/// The model of this CPU in words, e.g. "AMD EPYC 9R14 96-Core Processor".
const std::string& cpuModel();

/// Reads the text of a file. Throws Error (taccInvalidArgument) that says where the file is wrong, or
/// (taccInvalidUsage) that it was measured in another place than `here`. `origin` is the file's name.
ConvTuning tuningFromToml(std::string_view text, const std::string& origin, const ConvTuningPlace& here);

/// What plans are made by from now on; null: the models alone. Thread safe, as the next one.
void setTuning(std::shared_ptr<const ConvTuning> tuning);
std::shared_ptr<const ConvTuning> currentTuning();

}  // namespace tacc::conv

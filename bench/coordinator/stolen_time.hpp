#pragma once

#include <cstdint>
#include <string>

namespace tacc::bench {

/// Processor time of this machine since it started, in ticks of the kernel.
struct ProcessorTime {
  uint64_t all = 0;     // idle time too
  uint64_t stolen = 0;  // a virtual machine's: wanted, and given to other machines by the hypervisor
};

/// From the text of /proc/stat; zeros if it has no such line.
ProcessorTime parseProcessorTime(const std::string& stat);

/// How much of a virtual machine's time is stolen while this object lives. What is measured meanwhile takes longer, and
/// by more than this share where ranks wait for the one that was held up.
class StolenTime {
 public:
  StolenTime();
  /// 0 to 1; 0 where the kernel does not tell.
  double share() const;

 private:
  ProcessorTime start_;
};

}  // namespace tacc::bench

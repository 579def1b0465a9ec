#include "coordinator/stolen_time.hpp"

#include <fstream>
#include <iterator>
#include <sstream>

namespace tacc::bench {
namespace {

ProcessorTime readProcessorTime() {
  std::ifstream file("/proc/stat");
  return parseProcessorTime({std::istreambuf_iterator<char>(file), {}});
}

}  // namespace

/// cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL GUEST GUEST_NICE; a guest's time is in the user's already.
ProcessorTime parseProcessorTime(const std::string& stat) {
  constexpr int steal = 7;
  std::istringstream line(stat.substr(0, stat.find('\n')));
  std::string name;
  ProcessorTime time;
  if (!(line >> name) || name != "cpu") return time;
  uint64_t ticks = 0;
  for (int field = 0; field <= steal && line >> ticks; ++field) {
    time.all += ticks;
    if (field == steal) time.stolen = ticks;
  }
  return time;
}

StolenTime::StolenTime() : start_(readProcessorTime()) {}

double StolenTime::share() const {
  const ProcessorTime now = readProcessorTime();
  if (now.all <= start_.all || now.stolen <= start_.stolen) return 0;
  return static_cast<double>(now.stolen - start_.stolen) / static_cast<double>(now.all - start_.all);
}

}  // namespace tacc::bench

#include "gauge.hpp"

#include <array>

namespace tacc::tune {

Gauge::Gauge(JoinedCommunicator& comm, std::size_t bytes)
    : comm_(comm), input_(bytes / sizeof(float) + 1, 1.0F), output_(input_.size()) {}

Reading Gauge::time(Collective collective, std::size_t count, const std::string& way, int calls, int warm) {
  const Call call{collective, input_.data(), output_.data(), count, taccFloat32, taccSum};
  comm_.force(way);
  for (int i = 0; i < warm; ++i) comm_.run(call);
  comm_.run({.collective = Collective::barrier});
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < calls; ++i) comm_.run(call);
  const Clock::time_point end = Clock::now();
  last_ = comm_.lastAlgorithm();
  comm_.force("recursive_doubling");  // so that nothing is learnt from the exchange of the readings
  const auto seconds = [](Clock::duration duration) { return std::chrono::duration<double>(duration).count(); };
  std::array<double, 2> reading = {seconds(end - begin) / calls, comm_.rank() == 0 ? seconds(end - start_) : 0};
  comm_.run({Collective::allReduce, reading.data(), reading.data(), reading.size(), taccFloat64, taccMax});
  comm_.force("");
  elapsed_ = reading[1];
  return {reading[0], reading[1]};
}

}  // namespace tacc::tune

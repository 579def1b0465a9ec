// How fast messages between hosts are, as all ranks of a communicator agree.
#pragma once

namespace tacc {

struct NetworkSpeed {
  double latency = 50e-6;       // alpha: seconds of a short message
  double bytesPerSecond = 1e9;  // 1 / beta: of long ones, from each host to the next at the same time
  double overhead = 2e-6;       // seconds of a processor for each message, at either end
};

}  // namespace tacc

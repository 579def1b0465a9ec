#include "usual_bytes.hpp"

#include <mpi.h>

#include <algorithm>

#include "communicators.hpp"
#include "meeting.hpp"

namespace tacc::mpi {

void UsualBytes::agree(const Communicator& communicator) {
  constexpr std::uint64_t timesLater = 8;
  isDue_ = false;
  for (Calls& calls : calls_) {
    if (calls.count < calls.until) continue;
    calls.known = mostOf(static_cast<std::size_t>(calls.bytes / calls.count), communicator);
    calls.isKnown = true;
    calls.until = std::min<std::uint64_t>(calls.until, UINT64_MAX / timesLater) * timesLater;
    calls.count = calls.bytes = 0;
  }
}

std::size_t mostOf(std::size_t bytes, const Communicator& communicator) {
  unsigned long long most = bytes;
  reduceOfAll(MPI_IN_PLACE, &most, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, communicator.mpi);
  return static_cast<std::size_t>(most);
}

}  // namespace tacc::mpi

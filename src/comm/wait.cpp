#include "comm/wait.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>

#include "base/error.hpp"

namespace tacc {

Deadline::Deadline(double seconds)
    : end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(std::clamp(seconds, 0.0, 3.0e9)))) {}

int Deadline::milliseconds() const noexcept {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, std::numeric_limits<int>::max()));
}

double Deadline::seconds() const noexcept {
  return std::max(0.0, std::chrono::duration<double>(end_ - Clock::now()).count());
}

Interrupt::Interrupt(int rank) : rank_(rank), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_.valid()) failErrno("cannot make an event descriptor");
}

void Interrupt::raise() noexcept {
  raised_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the event is raised all the same.
  [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
}

void waitFor(std::vector<pollfd>& sockets, const Interrupt& interrupt, const Deadline& deadline) {
  sockets.push_back({interrupt.fd(), POLLIN, 0});
  const int ready = ::poll(sockets.data(), sockets.size(), deadline.milliseconds());
  const int code = errno;
  sockets.pop_back();
  if (interrupt.raised()) fail(taccRemoteError, "the communicator was aborted by rank {}", interrupt.rank());
  if (ready >= 0) return;
  for (pollfd& socket : sockets) socket.revents = 0;
  errno = code;
  if (code != EINTR) failErrno("cannot wait for {} sockets", sockets.size());
}

bool hasEnded(int socket) noexcept {
  pollfd end{socket, POLLRDHUP, 0};
  return ::poll(&end, 1, 0) > 0;
}

}  // namespace tacc

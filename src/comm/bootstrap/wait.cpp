#include "comm/bootstrap/wait.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "core/per_thread.hpp"
#include "transports/file_descriptor.hpp"

namespace tacc {
namespace {

/// So long a thread sleeps that has no bell, because the process has no descriptor left for it.
constexpr int deafMilliseconds = 10;

/// What wakes a thread out of poll(). One descriptor for the thread: communicators come in hundreds.
class Bell {
 public:
  Bell() = default;
  ~Bell() { close(); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  /// -1 where there is no descriptor for it. A forked child takes another one: its parent would hear it ring, and be
  /// the one to silence it.
  int open() noexcept {
    const std::uint32_t process = processGeneration();
    if (process != owner_) close();
    owner_ = process;
    if (fd_ < 0) fd_ = awayFromStandard(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return fd_;
  }
  int fd() const noexcept { return fd_; }
  /// Nobody may be able to ring it any more.
  void silence() const noexcept {
    std::uint64_t rings = 0;
    [[maybe_unused]] const ssize_t read = ::read(fd_, &rings, sizeof rings);
  }

 private:
  void close() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  int fd_ = -1;
  std::uint32_t owner_ = 0;  // processGeneration()
};

}  // namespace

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

void Interrupt::raise() noexcept {
  raised_.store(true, std::memory_order_release);
  ring();
}

void Interrupt::nudge() noexcept {
  nudged_.store(true, std::memory_order_release);
  ring();
}

void Interrupt::ring() noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the event is raised all the same.
  for (const int fd : listening_) [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
}

Interrupt::Listening::Listening(const Interrupt& interrupt, int fd) : interrupt_(interrupt), fd_(fd) {
  const std::lock_guard<std::mutex> guard(interrupt_.mutex_);
  if (fd_ >= 0) interrupt_.listening_.push_back(fd_);
}

Interrupt::Listening::~Listening() {
  const std::lock_guard<std::mutex> guard(interrupt_.mutex_);
  std::erase(interrupt_.listening_, fd_);
}

void waitFor(std::vector<pollfd>& sockets, const Interrupt& interrupt, const Deadline& deadline) {
  static PerThread<Bell> bells;
  Bell& bell = bells.get();
  int ready = 0;
  int code = 0;
  bool hasRung = false;
  {
    const Interrupt::Listening listening(interrupt, bell.open());
    sockets.push_back({bell.fd(), POLLIN, 0});
    const int limit = bell.fd() >= 0 ? std::numeric_limits<int>::max() : deafMilliseconds;
    while (!interrupt.raised() && !interrupt.takeNudge()) {
      ready = ::poll(sockets.data(), sockets.size(), std::min(deadline.milliseconds(), limit));
      code = errno;
      if (ready != 0 || deadline.passed()) break;
    }
    hasRung = (sockets.back().revents & POLLIN) != 0;
    sockets.pop_back();
  }
  if (hasRung || interrupt.raised()) bell.silence();
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

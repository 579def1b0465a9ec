#include "presence.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace tacc::mpi {
namespace {

constexpr rlim_t manyFiles = 256;  // with fewer MPI may need the last one

int shown = -1;

/// -1: none. Never in the place of a stream that the program lacks.
int openSocket() noexcept {
  const int made = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (made < 0 || made > STDERR_FILENO) return made;
  const int away = ::fcntl(made, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(made);
  return away;
}

/// A socket, and the name of a process as its address; -1: none.
class Named {
 public:
  explicit Named(int process) noexcept : socket(openSocket()) {
    struct stat processes {};
    ::stat("/proc/thread-self/ns/pid", &processes);  // several containers may share a network
    std::array<char, sizeof address_.sun_path - 1> name{};
    const int length = std::snprintf(name.data(), name.size(), "tacc-mpi-%ju-%d",
                                     static_cast<std::uintmax_t>(processes.st_ino), process);
    std::copy_n(name.data(), length, address_.sun_path + 1);  // behind the 0 that makes it abstract
    size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
  }
  ~Named() {
    if (socket >= 0) ::close(socket);
  }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;

  bool apply(int (*call)(int, const sockaddr*, socklen_t)) const noexcept {
    return socket >= 0 && call(socket, reinterpret_cast<const sockaddr*>(&address_), size_) == 0;
  }

  int socket;

 private:
  sockaddr_un address_{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t size_;
};

}  // namespace

void showPresence() noexcept {
  rlimit files{};
  if (shown >= 0 || ::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur < manyFiles) return;
  Named own(::getpid());
  if (own.apply(::bind)) shown = std::exchange(own.socket, -1);
}

void hidePresence() noexcept {
  if (shown >= 0) ::close(std::exchange(shown, -1));
}

bool isPresent(int process) noexcept { return Named(process).apply(::connect); }

}  // namespace tacc::mpi

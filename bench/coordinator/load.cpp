#include "coordinator/load.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

namespace tacc::bench {
namespace {

/// Ends with the process that started it, however that ends.
[[noreturn]] void compute(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  if (::getppid() != parent) ::_exit(0);
  for (volatile unsigned number = 0;;) number = number + 1;
}

}  // namespace

Load::Load(int processes) {
  const pid_t self = ::getpid();
  for (int i = 0; i < processes; ++i) {
    const pid_t child = ::fork();
    if (child == 0) compute(self);
    if (child < 0) {
      const int error = errno;
      end();
      throw std::runtime_error(
          fmt::format("--load {}: process {} cannot be started: {}", processes, i, std::strerror(error)));
    }
    processes_.push_back(child);
  }
}

void Load::end() noexcept {
  for (const pid_t process : processes_) ::kill(process, SIGKILL);
  for (const pid_t process : processes_) ::waitpid(process, nullptr, 0);
}

}  // namespace tacc::bench

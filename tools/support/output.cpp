#include "support/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tacc::tools {

namespace {

const char* programOfOutput = nullptr;
pid_t processOfOutput = 0;  // children that end by exit() answer for nothing

void checkStandardOutput() {
  if (::getpid() != processOfOutput) return;
  const bool wasWell = std::ferror(stdout) == 0;
  if (std::fflush(stdout) == 0 && wasWell) return;
  complain("{}: cannot write all of the output{}\n", programOfOutput,
           wasWell ? fmt::format(": {}", std::strerror(errno)) : "");
  std::fflush(nullptr);
  ::_exit(1);
}

}  // namespace

void requireStandardOutput(const char* program) {
  // Where a standard stream is missing a pipe of this program's would take its number, and what is printed. Where
  // output is missing nothing can be written to it, which is told at the end.
  for (int fd = 0; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
  programOfOutput = program;
  processOfOutput = ::getpid();
  std::atexit(checkStandardOutput);
}

ProgressLine::ProgressLine() : isTerminal_(::isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(const std::string& text) {
  if (!isTerminal_) return;
  winsize window{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
  // A line that wraps could not be taken back.
  complain("\r\033[K{}", text.substr(0, known ? window.ws_col - 1U : 79U));
  std::fflush(stderr);
  visible_ = true;
}

void ProgressLine::clear() {
  if (!visible_) return;
  complain("\r\033[K");
  std::fflush(stderr);
  visible_ = false;
}

}  // namespace tacc::tools

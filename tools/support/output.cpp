#include "support/output.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace tacc::tools {

ProgressLine::ProgressLine() : isTerminal_(::isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(const std::string& text) {
  if (!isTerminal_) return;
  winsize window{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
  // A line that wraps could not be taken back.
  fmt::print(stderr, "\r\033[K{}", text.substr(0, known ? window.ws_col - 1U : 79U));
  std::fflush(stderr);
  visible_ = true;
}

void ProgressLine::clear() {
  if (!visible_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  visible_ = false;
}

}  // namespace tacc::tools

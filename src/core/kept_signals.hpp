// Signal handlers that stay the program's while a library of somebody else is loaded: some take the signals of faults,
// of an interrupt and of a termination in their constructors.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>

namespace tacc {

/// What each of these signals does when it is made, it does again afterwards. A handler that another thread sets
/// meanwhile is lost.
class KeptSignals {
 public:
  KeptSignals() noexcept {
    for (std::size_t i = 0; i < signals.size(); ++i) isKnown_[i] = ::sigaction(signals[i], nullptr, &actions_[i]) == 0;
  }
  ~KeptSignals() {
    for (std::size_t i = 0; i < signals.size(); ++i)
      if (isKnown_[i]) ::sigaction(signals[i], &actions_[i], nullptr);
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  static constexpr std::array signals{SIGHUP, SIGINT, SIGQUIT, SIGILL,  SIGTRAP, SIGABRT,
                                      SIGBUS, SIGFPE, SIGSEGV, SIGTERM, SIGSYS};

  std::array<struct sigaction, signals.size()> actions_;
  std::array<bool, signals.size()> isKnown_{};
};

}  // namespace tacc

// Signal handlers that stay the program's while a library of somebody else is loaded: some take the signals of faults,
// of an interrupt and of a termination in their constructors.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>

namespace tacc {

/// What every signal does when it is made, it does again afterwards.
class KeptSignals {
 public:
  KeptSignals() noexcept {
    for (int signal = 1; signal < count; ++signal)
      isKnown_[index(signal)] = ::sigaction(signal, nullptr, &actions_[index(signal)]) == 0;
  }
  ~KeptSignals() {
    for (int signal = 1; signal < count; ++signal)
      if (isKnown_[index(signal)]) ::sigaction(signal, &actions_[index(signal)], nullptr);
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  static constexpr int count = 32;  // those without queues
  static constexpr std::size_t index(int signal) { return static_cast<std::size_t>(signal); }

  std::array<struct sigaction, count> actions_;
  std::array<bool, count> isKnown_{};
};

}  // namespace tacc

#include "support/interrupt.hpp"

#include <csignal>

namespace tacc::tools {
namespace {

volatile std::sig_atomic_t received = 0;

void remember(int signal) { received = signal; }

}  // namespace

void catchInterrupts() {
  struct sigaction action {};
  action.sa_handler = remember;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

void throwIfInterrupted() {
  if (received != 0) throw Interrupted(received);
}

}  // namespace tacc::tools

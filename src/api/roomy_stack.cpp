#include "api/roomy_stack.hpp"

#include <pthread.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>

#include "core/error.hpp"
#include "core/quiet_thread.hpp"

namespace tacc {
namespace {

constexpr std::size_t enough = std::size_t{256} << 10;  // more than libraries of networks take to start
constexpr std::size_t roomy = std::size_t{1} << 20;

/// Where this thread's stack lies, and the limit under which that was found.
struct Stack {
  std::uintptr_t low = 0, high = 0;
  rlim_t limit = 0;
};

/// As last found. To find the stack of a process's first thread the C library reads all that the process has mapped,
/// which takes several times as long as a split on one host.
constinit thread_local Stack found;

/// Whether this thread's stack is known now.
bool find(rlim_t limit) {
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return false;  // of the first thread, without /proc
  void* lowest = nullptr;
  std::size_t bytes = 0;
  const bool isKnown = ::pthread_attr_getstack(&attributes, &lowest, &bytes) == 0;
  ::pthread_attr_destroy(&attributes);
  const auto low = reinterpret_cast<std::uintptr_t>(lowest);
  if (isKnown) found = {low, low + bytes, limit};
  return isKnown;
}

bool hasRoom() {
  rlimit limit{};  // the first thread's stack ends there, wherever that is now
  ::getrlimit(RLIMIT_STACK, &limit);
  if ((found.high == 0 || found.limit != limit.rlim_cur) && !find(limit.rlim_cur)) return true;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return here >= found.low && here < found.high && here - found.low >= enough;
}

struct Errand {
  void (*work)(void*);
  void* argument;
  std::exception_ptr failure = nullptr;
};

void* run(void* argument) {
  auto& errand = *static_cast<Errand*>(argument);
  try {
    errand.work(errand.argument);
  } catch (...) {
    errand.failure = std::current_exception();
  }
  return nullptr;
}

}  // namespace

void runWithRoom(void (*work)(void*), void* argument) {
  if (hasRoom()) return work(argument);
  Errand errand{work, argument};
  pthread_attr_t attributes;
  pthread_t thread{};
  int code = ::pthread_attr_init(&attributes);
  if (code == 0) {
    const BlockedSignals blocked;
    ::pthread_attr_setstacksize(&attributes, roomy);
    code = ::pthread_create(&thread, &attributes, run, &errand);
    ::pthread_attr_destroy(&attributes);
  }
  if (code != 0) {
    fail(taccSystemError, "this thread has less than {} KiB of stack, and no other thread can be made: {}",
         enough >> 10, std::strerror(code));
  }
  ::pthread_join(thread, nullptr);
  if (errand.failure) std::rethrow_exception(errand.failure);
}

}  // namespace tacc

#include "fuzz/beside.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <functional>

// Where clang counts which branches were taken. The linker defines both.
extern "C" {
extern std::uint8_t firstCounter __asm__("__start___sancov_cntrs") __attribute__((visibility("hidden")));
extern std::uint8_t endOfCounters __asm__("__stop___sancov_cntrs") __attribute__((visibility("hidden")));
// AddressSanitizer's, where it is there.
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());
}

namespace tacc::fuzz {
namespace {

constexpr std::size_t longest = std::size_t{1} << 16;
constexpr long secondsOfAnInput = 10;  // of processor time, as in the library

/// What both processes see.
struct Shared {
  std::size_t size;
  bool isIsolated;  // the library would have a process of its own for what runs now
  std::array<std::uint8_t, longest> input;
  // The counters follow.
};

struct Beside {
  pid_t process = -1;
  int ask = -1, answer = -1;
};

Shared* shared = nullptr;
int nowhere = -1, standardError = -1;

std::span<std::uint8_t> counters() { return {&firstCounter, static_cast<std::size_t>(&endOfCounters - &firstCounter)}; }
std::uint8_t* sharedCounters() { return reinterpret_cast<std::uint8_t*>(shared + 1); }

/// The other process's to those here. They are some 200,000, few of which count anything.
__attribute__((no_sanitize("coverage", "address", "undefined"))) void addCounters() {
  const std::span<std::uint8_t> here = counters();
  const std::uint8_t* const there = sharedCounters();
  for (std::size_t at = 0; at < here.size(); at += sizeof(std::uint64_t)) {
    const std::size_t size = std::min(sizeof(std::uint64_t), here.size() - at);
    std::uint64_t sum = 0, more = 0;
    __builtin_memcpy(&more, there + at, size);
    if (more == 0) continue;
    __builtin_memcpy(&sum, here.data() + at, size);
    sum |= more;
    __builtin_memcpy(here.data() + at, &sum, size);
  }
}

void makeShared() {
  void* const memory =
      ::mmap(nullptr, sizeof(Shared) + counters().size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "no memory for the process beside");
  shared = new (memory) Shared{};
  nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  standardError = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
}

void limitTime(long seconds) {
  const itimerval limit{.it_interval = {}, .it_value = {seconds, 0}};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
}

[[noreturn]] void takeInputs(void (*read)(Input), int asked, int answer) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGPROF}) std::signal(signal, SIG_DFL);
  // libFuzzer's writes down what the process takes for its input.
  if (&__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(nullptr);
  for (char word = 0; ::read(asked, &word, 1) == 1;) {
    std::ranges::fill(counters(), std::uint8_t{0});
    limitTime(secondsOfAnInput);
    (void)mayRefuse([&] { read({shared->input.data(), shared->size}); });
    limitTime(0);
    std::ranges::copy(counters(), sharedCounters());
    if (::write(answer, &word, 1) != 1) break;
  }
  ::_exit(0);
}

Beside start(void (*read)(Input)) {
  std::array<int, 2> ask{}, answer{};
  require(::pipe2(ask.data(), O_CLOEXEC) == 0 && ::pipe2(answer.data(), O_CLOEXEC) == 0, "no pipe");
  const pid_t process = ::fork();
  require(process >= 0, "no process");
  if (process == 0) {
    ::close(ask[1]);
    takeInputs(read, ask[0], answer[1]);
  }
  ::close(ask[0]);
  ::close(answer[1]);
  return {process, ask[1], answer[0]};
}

void clear(Beside& beside) {
  ::close(beside.ask);
  ::close(beside.answer);
  ::waitpid(beside.process, nullptr, 0);
  beside = {};
}

}  // namespace

void runBeside(void (*read)(Input), std::span<const std::uint8_t> input) {
  static Beside beside;
  if (shared == nullptr) makeShared();
  if (beside.process < 0) beside = start(read);
  shared->size = std::min(input.size(), longest);
  std::copy_n(input.begin(), shared->size, shared->input.begin());
  shared->isIsolated = false;
  char word = 1;
  if (::write(beside.ask, &word, 1) == 1 && ::read(beside.answer, &word, 1) == 1) {
    addCounters();
    return;
  }
  clear(beside);
  require(shared->isIsolated, "the process that reads ended where the library has none of its own for it");
}

/// What the library calls in place of its runIsolated().
std::string runHere(const std::function<std::string()>& work, const std::string& where) __asm__(
    "__wrap__ZN4tacc11runIsolatedERKSt8functionIFNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEvEERKS6_");

std::string runHere(const std::function<std::string()>& work, const std::string&) {
  shared->isIsolated = true;
  ::dup2(nowhere, STDERR_FILENO);
  const auto leave = [] {
    ::dup2(standardError, STDERR_FILENO);
    shared->isIsolated = false;
  };
  try {
    std::string text = work();
    leave();
    return text;
  } catch (const std::exception& error) {
    leave();
    throw Error(taccInvalidArgument, error.what());
  }
}

}  // namespace tacc::fuzz

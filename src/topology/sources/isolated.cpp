#include "topology/sources/isolated.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "core/error.hpp"

// Clang tells it another way than GCC.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TACC_IS_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TACC_IS_SANITIZED
#endif

namespace tacc {
namespace {

constexpr rlim_t secondsOfWork = 10;
constexpr rlim_t bytesOfWork = rlim_t{1} << 31;
constexpr char worked = '+', failed = '-';

/// One end of a pipe.
class End {
 public:
  explicit End(int fd) : fd_(fd) {}
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  ~End() { close(); }
  int get() const noexcept { return fd_; }
  void close() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

void limit(int resource, rlim_t most) {
  const rlimit bound{most, most};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &bound);
}

[[noreturn]] void runChild(const std::function<std::string()>& work, int output) {
  // What ends it comes, whatever the thread that forked, or the program, does with such signals.
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGALRM}) std::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, secondsOfWork);
  ::alarm(static_cast<unsigned>(secondsOfWork));
#ifndef TACC_IS_SANITIZED  // sanitizers map terabytes
  limit(RLIMIT_DATA, bytesOfWork);
#endif
  // A process without standard streams has been given their numbers for the pipe.
  if (output <= STDERR_FILENO) output = ::fcntl(output, F_DUPFD, STDERR_FILENO + 1);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
  std::string answer;
  try {
    answer = worked + work();
  } catch (const std::exception& error) {
    answer = failed + std::string(error.what());
  }
  for (std::size_t sent = 0; sent < answer.size();) {
    const ssize_t size = ::write(output, answer.data() + sent, answer.size() - sent);
    if (size <= 0 && errno != EINTR) ::_exit(1);
    sent += size > 0 ? static_cast<std::size_t>(size) : 0;
  }
  ::_exit(0);
}

}  // namespace

std::string runIsolated(const std::function<std::string()>& work, const std::string& where) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) failErrno("a pipe cannot be made");
  const End input(ends[0]);
  End output(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) failErrno("a process for reading {} cannot be started", where);
  if (child == 0) runChild(work, ends[1]);
  output.close();
  std::string answer;
  std::array<char, 4096> piece{};
  for (ssize_t size = 0; (size = ::read(input.get(), piece.data(), piece.size())) != 0;) {
    if (size > 0) answer.append(piece.data(), static_cast<std::size_t>(size));
    if (size < 0 && errno != EINTR) break;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (answer.empty() || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fail(taccInvalidArgument, "{}: it is so damaged that reading it ends the process that tries", where);
  }
  std::string text = answer.substr(1);
  if (answer.front() == failed) throw Error(taccInvalidArgument, text);
  return text;
}

}  // namespace tacc

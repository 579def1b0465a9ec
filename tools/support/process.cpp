#include "support/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace tacc::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds pollInterval{5};
constexpr std::chrono::seconds patience{2};

/// The child's side of a fork; `log` -1: none. Only async-signal-safe calls until the exec.
[[noreturn]] void becomeProgram(char* const* arguments, int log, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, 0);
  if (log >= 0) {
    ::dup2(log, 1);
    ::dup2(log, 2);
  }
  ::execvp(arguments[0], arguments);
  const char* reason = std::strerror(errno);
  for (const char* text : {"cannot start ", const_cast<const char*>(arguments[0]), ": ", reason, "\n"})
    if (::write(2, text, std::strlen(text)) < 0) break;
  ::_exit(127);
}

}  // namespace

int allowedCpus() {
  // The kernel refuses a set that is too small for its CPUs, so it is doubled until it fits.
  for (int capacity = 1024; capacity <= 1 << 20; capacity *= 2) {
    cpu_set_t* set = CPU_ALLOC(capacity);
    const size_t bytes = CPU_ALLOC_SIZE(capacity);
    const bool known = ::sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return count;
  }
  return 1;
}

void dieWithParent() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

MemoryFile::MemoryFile(const char* name) : descriptor_(::memfd_create(name, 0)) {
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string MemoryFile::tail(size_t bytes) const {
  struct stat facts {};
  ::fstat(descriptor_, &facts);
  const size_t size = static_cast<size_t>(facts.st_size);
  std::string text(std::min(size, bytes), '\0');
  const ssize_t n = ::pread(descriptor_, text.data(), text.size(), static_cast<off_t>(size - text.size()));
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

Process::Process(const std::vector<std::string>& command, const MemoryFile* log) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "cannot start " + command.at(0));
  if (pid_ == 0) becomeProgram(arguments.data(), log == nullptr ? -1 : log->descriptor(), parent);
  // Both sides do it, so that the group exists whoever comes first.
  ::setpgid(pid_, pid_);
}

Process::Process(Process&& other) noexcept
    : pid_(other.pid_), running_(std::exchange(other.running_, false)), status_(other.status_) {}

Process::~Process() {
  if (running_) finish(Clock::now());
}

bool Process::isRunning() {
  if (running_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) running_ = false;
  return running_;
}

bool Process::succeeded() const { return WIFEXITED(status_) && WEXITSTATUS(status_) == 0; }

std::string Process::ending() const {
  if (WIFSIGNALED(status_)) return fmt::format("signal {} ({})", WTERMSIG(status_), ::strsignal(WTERMSIG(status_)));
  return fmt::format("exit status {}", WEXITSTATUS(status_));
}

void Process::finish(Clock::time_point deadline) {
  if (waitUntil(deadline)) return;
  ::kill(pid_, SIGTERM);
  if (waitUntil(Clock::now() + patience)) return;
  ::kill(-pid_, SIGKILL);
  waitUntil(Clock::time_point::max());
}

bool Process::waitUntil(Clock::time_point deadline) {
  while (isRunning()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(pollInterval);
  }
  return true;
}

namespace fs = std::filesystem;

std::string findTool(const char* name) {
  const fs::path here = fs::path(fs::read_symlink("/proc/self/exe")).parent_path();
  for (const char* place : {"../../tools", "../libexec/tacc"})
    if (const fs::path tool = here / place / name; ::access(tool.c_str(), X_OK) == 0) return fs::canonical(tool);
  throw std::runtime_error(fmt::format("there is no {} in ../../tools or ../libexec/tacc of {}", name, here.string()));
}

}  // namespace tacc::tools

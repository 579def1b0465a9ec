#include "transports/file_descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>

#include "core/error.hpp"
#include "transports/spare_descriptors.hpp"

namespace tacc {
namespace {

constexpr std::size_t wordBits = 64;
/// Of numbers up to 2^20, the usual bound of ulimit -n; those beyond it are inherited. Untouched pages cost nothing.
constexpr std::size_t words = (std::size_t{1} << 20) / wordBits;

/// A bit for each descriptor that children do not inherit: a child must find them without locks and allocation.
constinit std::array<std::atomic<std::uint64_t>, words> ownBits{};
constinit std::atomic<std::size_t> usedWords{0};  // of ownBits; later ones are 0

/// Null for numbers beyond the last.
std::atomic<std::uint64_t>* wordOf(int fd) noexcept {
  const auto index = static_cast<std::size_t>(fd) / wordBits;
  return fd >= 0 && index < words ? &ownBits[index] : nullptr;
}

std::uint64_t bitOf(int fd) noexcept { return std::uint64_t{1} << (static_cast<std::size_t>(fd) % wordBits); }

/// Their numbers stay taken: the owner of one may still close it.
void closeInChild() noexcept {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const std::size_t used = usedWords.load(std::memory_order_acquire);
  for (std::size_t index = 0; index < used; ++index) {
    std::uint64_t bits = ownBits[index].exchange(0, std::memory_order_relaxed);
    for (; bits != 0; bits &= bits - 1) {
      const int fd = static_cast<int>(index * wordBits) + std::countr_zero(bits);
      if (nothing < 0 || ::dup3(nothing, fd, O_CLOEXEC) < 0) ::close(fd);
    }
  }
  if (nothing >= 0) ::close(nothing);
}

const ForkHook hook(closeInChild);

}  // namespace

int awayFromStandard(int fd) noexcept {
  if (fd < 0 || fd > STDERR_FILENO) [[likely]]
    return fd;
  const int other = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int code = errno;
  ::close(fd);
  errno = code;
  return other;
}

TakenStandardNumbers::TakenStandardNumbers() noexcept {
  const auto isThere = [](int fd) { return ::fcntl(fd, F_GETFD) >= 0; };
  if (isThere(STDIN_FILENO) && isThere(STDOUT_FILENO) && isThere(STDERR_FILENO)) return;
  for (int& taken : taken_) {
    const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0 || fd > STDERR_FILENO) {
      if (fd >= 0) ::close(fd);
      return;
    }
    taken = fd;
  }
}

TakenStandardNumbers::~TakenStandardNumbers() {
  for (const int fd : taken_)
    if (fd >= 0) ::close(fd);
}

void keepFromChildren(int fd) noexcept {
  std::atomic<std::uint64_t>* const word = wordOf(fd);
  if (word == nullptr) return;
  word->fetch_or(bitOf(fd), std::memory_order_relaxed);
  const std::size_t needed = static_cast<std::size_t>(word - ownBits.data()) + 1;
  std::size_t used = usedWords.load(std::memory_order_relaxed);
  while (used < needed && !usedWords.compare_exchange_weak(used, needed, std::memory_order_release)) {
  }
}

void shareWithChildren(int fd) noexcept {
  if (std::atomic<std::uint64_t>* const word = wordOf(fd)) word->fetch_and(~bitOf(fd), std::memory_order_relaxed);
}

ForkMutex& descriptorMutex() noexcept {
  static ForkMutex mutex;
  return mutex;
}

void closeNow(int fd) noexcept {
  const std::lock_guard lock(descriptorMutex());
  shareWithChildren(fd);
  ::close(fd);
}

FileDescriptor duplicate(int fd) {
  FileDescriptor copy = ownDescriptor([&] { return ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); });
  if (!copy.valid()) failDescriptor("cannot duplicate descriptor {}", fd);
  return copy;
}

}  // namespace tacc

#include "transports/spare_descriptors.hpp"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <mutex>

#include "core/undying.hpp"
#include "transports/file_descriptor.hpp"

namespace tacc {
namespace {

/// A process that may open fewer files than this has them all in use by what it begins with: MPICH opens some 25 in
/// MPI_Init, which fails where they are spares. It keeps none before a rank joins.
constexpr rlim_t fewFiles = 64;

bool mayOpenFewFiles() noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < fewFiles;
}

/// Made when the library is loaded, because a program that fills its table of files later leaves no room for it.
class Spares {
 public:
  Spares() noexcept {
    if (!mayOpenFewFiles()) keep();
  }

  void keep() noexcept {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (needed_ == 0) fill();
  }
  void giveUp() noexcept {
    const std::lock_guard<std::mutex> guard(mutex_);
    ++needed_;
    for (int& fd : spares_) {
      if (fd >= 0) ::close(fd);
      fd = -1;
    }
  }
  void takeBack() noexcept {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (--needed_ == 0) fill();
  }

 private:
  /// Under the mutex. What they are does not matter; these need no file system.
  void fill() noexcept {
    for (int& fd : spares_)
      if (fd < 0) fd = awayFromStandard(::eventfd(0, EFD_CLOEXEC));
  }

  std::mutex mutex_;
  int needed_ = 0;
  std::array<int, 6> spares_{-1, -1, -1, -1, -1, -1};
};

/// Ranks may join until the process ends.
Spares& spares() noexcept {
  static Undying<Spares> only;
  return only.get();
}

[[maybe_unused]] const Spares& filledAtLoad = spares();

}  // namespace

SpareDescriptors::SpareDescriptors() noexcept { spares().giveUp(); }

SpareDescriptors::~SpareDescriptors() { spares().takeBack(); }

void keepSpareDescriptors() noexcept { spares().keep(); }

std::string describeShortage(int code) {
  if (code == ENFILE) return " (the whole machine has as many files open as it may; raise fs.file-max)";
  if (code != EMFILE) return "";
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return " (raise ulimit -n)";
  return fmt::format(" (all {} files are open that process {} may have open; raise ulimit -n)", limit.rlim_cur,
                     ::getpid());
}

}  // namespace tacc

#include "transports/spare_descriptors.hpp"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <mutex>

#include "core/undying.hpp"
#include "transports/file_descriptor.hpp"
#include "transports/file_identity.hpp"

namespace tacc {
namespace {

/// A process that may open fewer files than this has them all in use by what it begins with: MPICH opens some 25 in
/// MPI_Init, which fails where they are spares. It keeps none before a rank joins.
constexpr rlim_t fewFiles = 64;

bool mayOpenFewFiles() noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < fewFiles;
}

/// A socket that is connected to nothing: it needs no file system, and has an inode of its own. By this it is known
/// again, as a program that becomes a daemon closes all descriptors, those that it never opened too: the number may
/// then be that of a file of the program.
class Spare {
 public:
  /// Makes one, where there is none.
  void keep() noexcept {
    if (isThere()) return;
    fd_ = awayFromStandard(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    file_ = identify(fd_);
  }
  void giveUp() noexcept {
    if (isThere()) ::close(fd_);
    fd_ = -1;
  }

 private:
  bool isThere() const noexcept { return fd_ >= 0 && identify(fd_) == file_; }

  int fd_ = -1;
  FileId file_;
};

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
    for (Spare& spare : spares_) spare.giveUp();
  }
  void takeBack() noexcept {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (--needed_ == 0) fill();
  }

 private:
  /// Under the mutex.
  void fill() noexcept {
    for (Spare& spare : spares_) spare.keep();
  }

  std::mutex mutex_;
  int needed_ = 0;
  std::array<Spare, 6> spares_;
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

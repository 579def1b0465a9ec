#include "transports/shm/liveness.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "core/undying.hpp"
#include "transports/file_identity.hpp"
#include "transports/shm/later_threads.hpp"
#include "transports/spare_descriptors.hpp"

namespace tacc {
namespace {

struct ClaimedFile {
  std::vector<int> ranks;   // claimed by this process
  std::vector<int> parked;  // descriptors that wait for the last claim to end

  void park(int fd) noexcept {
    try {
      parked.push_back(fd);
    } catch (const std::bad_alloc&) {
      // It stays open: to close it now would end the claims.
    }
  }
};

/// The claims of this process, locked while it lives.
class Claims {
 public:
  Claims() : guard_(table().mutex) {
    // A forked child inherits this memory but none of the locks.
    if (std::exchange(table().owner, processGeneration()) != processGeneration()) table().files.clear();
  }

  std::map<FileId, ClaimedFile>& files() { return table().files; }

 private:
  struct Table {
    ForkMutex mutex;
    std::uint32_t owner = processGeneration();  // a forked child begins without claims
    std::map<FileId, ClaimedFile> files;
  };

  /// Descriptors are closed until the very end of the process.
  static Table& table() {
    static Undying<Table> only;
    return only.get();
  }

  std::lock_guard<ForkMutex> guard_;
};

struct flock lockOf(short type, int rank) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

constexpr char zombie = 'Z', gone = 'X';  // in /proc/PID/stat

/// Of a process or thread, in its file in /proc; nothing, with errno where that cannot be opened.
std::optional<char> stateOf(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::array<char, 256> begin{};          // what is asked for is among the first
  file.read(begin.data(), begin.size());  // of a process that ends meanwhile: an error, and no exception
  const std::string_view line(begin.data(), static_cast<std::size_t>(file.gcount()));
  // The command name before the state may itself hold blanks and parentheses.
  const std::size_t end = line.rfind(')');
  if (end == std::string_view::npos || end + 2 >= line.size()) return gone;
  return line[end + 2];
}

const char* describeState(char state) {
  switch (state) {
    case 'T':
      return "stopped (SIGSTOP)";
    case 't':
      return "stopped (by a debugger)";
    case 'D':
      return "waiting for a device";
    case zombie:
    case gone:
      return "gone";
    default:
      return "running";
  }
}

}  // namespace

void closeDescriptor(int fd) noexcept {
  // The lock is held while closing, so that no claim on the file can begin in between.
  Claims claims;
  const auto found = claims.files().find(identify(fd));
  if (found != claims.files().end()) {
    found->second.park(fd);
  } else {
    closeNow(fd);
  }
}

Liveness::Liveness(int fd, int rank) : Liveness(duplicate(fd), rank) {}

Liveness::Liveness(FileDescriptor fd, int rank) : fd_(std::move(fd)), file_(identify(fd_.get())), rank_(rank) {
  Claims claims;
  const auto found = claims.files().find(file_);
  if (found != claims.files().end() && std::ranges::count(found->second.ranks, rank) > 0) {
    fail(taccSystemError, "rank {} is claimed already by this process", rank);
  }
  struct flock lock = lockOf(F_WRLCK, rank);
  if (::fcntl(fd_.get(), F_SETLK, &lock) != 0) {
    if (errno != EACCES && errno != EAGAIN) failErrno("rank {}: cannot lock its byte of the file of claims", rank);
    const int code = errno;
    lock = lockOf(F_WRLCK, rank);
    const bool known = ::fcntl(fd_.get(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    errno = code;
    failErrno("rank {} is claimed already by process {}", rank, known ? lock.l_pid : 0);
  }
  claims.files()[file_].ranks.push_back(rank);
}

Liveness::~Liveness() {
  Claims claims;
  const auto found = claims.files().find(file_);
  giveUpReplaced(fd_, file_);
  if (found == claims.files().end()) return;
  std::erase(found->second.ranks, rank_);
  if (found->second.ranks.empty()) {
    for (const int waiting : found->second.parked) closeNow(waiting);
    if (fd_.valid()) closeNow(fd_.release());
    claims.files().erase(found);
    return;
  }
  if (!fd_.valid()) return;
  struct flock lock = lockOf(F_UNLCK, rank_);
  (void)::fcntl(fd_.get(), F_SETLK, &lock);
  found->second.park(fd_.release());
}

bool Liveness::isAlive(int rank) const {
  {
    Claims claims;
    const auto found = claims.files().find(file_);
    if (found != claims.files().end() && std::ranges::count(found->second.ranks, rank) > 0) return true;
  }
  struct flock lock = lockOf(F_WRLCK, rank);
  const bool isTold = ::fcntl(fd_.get(), F_GETLK, &lock) == 0;
  if (isTold && lock.l_type != F_UNLCK) return true;
  // Nobody has locks on a file of the program that has the number now.
  const int code = errno;
  if (identify(fd_.get()) != file_)
    fail(taccInvalidUsage,
         "rank {}: this process has closed descriptor {}, which is the library's and shows that ranks live; close only "
         "what the program has opened, or all (closefrom) before it joins",
         rank_, fd_.get());
  errno = code;
  if (!isTold) failErrno("cannot ask whether rank {} lives", rank);
  return false;
}

std::string describeProcess(pid_t pid) {
  errno = 0;
  const std::optional<char> state = stateOf(fmt::format("/proc/{}/stat", pid));
  if (!state && isDescriptorShortage(errno)) return ::kill(pid, 0) == 0 || errno != ESRCH ? "running" : "gone";
  std::string described = describeState(state.value_or(gone));
  // Its first thread may have ended, and others go on.
  if (state == zombie)
    (void)someLaterThread(pid, [&](pid_t thread) {
      described = describeState(stateOf(fmt::format("/proc/{}/task/{}/stat", pid, thread)).value_or(gone));
      return described != describeState(gone);
    });
  return described;
}

}  // namespace tacc

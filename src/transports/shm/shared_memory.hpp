// Memory that several processes map: made by one, passed to the others as a descriptor.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "transports/file_descriptor.hpp"

namespace tacc {

/// When the pages of new shared memory are committed.
enum class Reserve {
  now,     ///< at once: zeroed, mapped and counted, so memory that runs out is an Error here and no SIGBUS later
  onTouch  ///< by the first access, on the NUMA node of the thread that makes it; an exhausted memory is then a SIGBUS
};

/// A mapping that other processes can map too. It comes from memfd_create, or where the kernel refuses that, and with
/// TACC_SHM=file, from an unnamed file (O_TMPFILE) in /dev/shm. Neither ever has a name, so a process that is killed
/// leaves nothing behind; a memfd is also not bound by the size of /dev/shm.
class SharedMemory {
 public:
  SharedMemory() = default;  // empty
  /// New zeroed memory of `bytes` (> 0; rounded up to pages). `purpose` is shown in messages and in /proc/PID/maps.
  /// Reserving costs about 0.25 s per GiB. Throws taccSystemError when the memory is not there: also beyond what the
  /// machine or the control group has available, where the kernel would have killed the process instead.
  static SharedMemory create(std::size_t bytes, std::string_view purpose, Reserve reserve = Reserve::now);
  /// Maps what another process made. Throws taccInternalError if the file is smaller than `bytes`.
  static SharedMemory map(FileDescriptor fd, std::size_t bytes, std::string_view purpose);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();  // unmaps; the memory itself is freed with the last mapping and descriptor anywhere

  std::byte* data() const noexcept { return data_; }
  /// Bytes asked for; the mapping reaches to the end of the page.
  std::size_t size() const noexcept { return size_; }
  /// -1 when empty or after closeFd().
  int fd() const noexcept { return fd_.get(); }
  /// Closes the descriptor and keeps the mapping, for those who hold many.
  void closeFd() noexcept { fd_.reset(); }
  /// The same, and the caller keeps the descriptor.
  FileDescriptor releaseFd() noexcept { return std::move(fd_); }
  /// A forked child does not have the mapping: it would keep the memory, and could write into what ranks share.
  void keepFromChildren() const noexcept;

 private:
  SharedMemory(FileDescriptor fd, std::byte* data, std::size_t size) noexcept;

  FileDescriptor fd_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A new unnamed file of `bytes` with no pages yet, as create() uses it. Throws taccSystemError.
FileDescriptor makeUnnamedFile(std::size_t bytes, std::string_view purpose);

/// Commits the pages of [data, data + bytes), a shared mapping of `fd` from `offset` on. Throws taccSystemError. `fd`
/// is not needed where commitsByAddress().
void reservePages(int fd, std::byte* data, std::size_t offset, std::size_t bytes, std::string_view purpose);

/// Whether the kernel commits pages of a mapping without its descriptor, at any multiple of 4 KiB. Asked once.
bool commitsByAddress() noexcept;

}  // namespace tacc

#include "transports/shm/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>
#include <utility>

#include "core/environment.hpp"
#include "core/error.hpp"
#include "transports/shm/available_memory.hpp"
#include "transports/shm/pages.hpp"
#include "transports/spare_descriptors.hpp"

namespace tacc {
namespace {

/// Memory is looked at again before each such piece is committed, because other ranks commit theirs at the same time.
constexpr std::size_t committedAtOnce = std::size_t{128} << 20;
/// Left to the machine.
constexpr std::size_t spareBytes = std::size_t{16} << 20;
/// Less than that is taken as malloc takes it, without a look at what is left.
constexpr std::size_t leastChecked = std::size_t{1} << 20;

/// Whether to look, before this process takes `bytes`: after so many, in however many pieces.
bool isLookDue(std::size_t bytes) noexcept {
  static std::atomic<std::size_t> sinceLook{0};
  if (sinceLook.fetch_add(bytes, std::memory_order_relaxed) + bytes < leastChecked) return false;
  sinceLook.store(0, std::memory_order_relaxed);
  return true;
}

#ifdef MADV_POPULATE_WRITE
constexpr int populateWrite = MADV_POPULATE_WRITE;
#else
constexpr int populateWrite = 23;  // Linux 5.14; older kernels refuse it with EINVAL
#endif

constexpr unsigned noExecSeal =
    8;  // MFD_NOEXEC_SEAL, Linux 6.3; some systems demand it, older ones refuse it with EINVAL

std::size_t wholePages(std::size_t bytes) { return (bytes + pageBytes - 1) / pageBytes * pageBytes; }

/// Past this limit the kernel would send SIGXFSZ, which ends the process.
void checkFileSizeLimit(std::size_t bytes, std::string_view purpose) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur) {
    fail(taccSystemError, "shared memory for {}: {} bytes exceed the file size limit of {} (raise ulimit -f)", purpose,
         bytes, limit.rlim_cur);
  }
}

FileDescriptor openUnnamed(std::string_view purpose) {
  int memfdError = 0;
  if (processEnvironment().segments != SegmentSource::file) {
    const std::string name = fmt::format("tacc-{}", purpose);
    int fd = ::memfd_create(name.c_str(), MFD_CLOEXEC | noExecSeal);
    if (fd < 0 && errno == EINVAL) fd = ::memfd_create(name.c_str(), MFD_CLOEXEC);
    if (fd >= 0) return FileDescriptor(fd);
    memfdError = errno;
  }
  const int fd = ::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
  if (fd >= 0) return FileDescriptor(fd);
  const int fileError = errno;
  fail(taccSystemError, "no shared memory for {}: memfd_create: {}; a file in /dev/shm: {}{}", purpose,
       memfdError == 0 ? "not tried (TACC_SHM=file)" : std::strerror(memfdError), std::strerror(fileError),
       describeShortage(isDescriptorShortage(memfdError) ? memfdError : fileError));
}

std::byte* mapShared(int fd, std::size_t bytes, std::string_view purpose) {
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) failErrno("cannot map {} bytes of shared memory for {}", bytes, purpose);
  if (bytes >= hugePageBytes) (void)::madvise(address, bytes, MADV_HUGEPAGE);  // a wish; small pages do as well
  return static_cast<std::byte*>(address);
}

void reservePiece(int fd, std::byte* data, std::size_t offset, std::size_t bytes, std::string_view purpose) {
  int result;
  do {
    result = ::madvise(data, bytes, populateWrite);
  } while (result != 0 && (errno == EAGAIN || errno == EINTR));
  if (result == 0) return;
  if (errno == EINVAL || errno == ENOSYS) {
    do {
      result = ::fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    } while (result != 0 && errno == EINTR);
    if (result == 0) return;
  }
  // EFAULT is how populating reports what a plain access would report as SIGBUS: the file system is full.
  const int code = errno == EFAULT ? ENOSPC : errno;
  struct statvfs space {};
  const bool known = ::fstatvfs(fd, &space) == 0 && space.f_blocks > 0;
  fail(taccSystemError, "shared memory for {} is exhausted at {} bytes: {}{}", purpose, offset + bytes,
       std::strerror(code),
       known ? fmt::format(" ({} bytes left of {}; in a container, raise --shm-size)", space.f_bfree * space.f_bsize,
                           space.f_blocks * space.f_frsize)
             : std::string());
}

}  // namespace

FileDescriptor makeUnnamedFile(std::size_t bytes, std::string_view purpose) {
  if (bytes == 0 || bytes > static_cast<std::size_t>(PTRDIFF_MAX) - pageBytes) {
    fail(taccSystemError, "shared memory for {}: {} bytes are not possible", purpose, bytes);
  }
  checkFileSizeLimit(bytes, purpose);
  FileDescriptor fd = openUnnamed(purpose);
  int result;
  do {
    result = ::ftruncate(fd.get(), static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result != 0) failErrno("shared memory for {}: no file of {} bytes", purpose, bytes);
  return fd;
}

void reservePages(int fd, std::byte* data, std::size_t offset, std::size_t bytes, std::string_view purpose) {
  // An impossible size is refused before the first page is taken from others. To look takes half a millisecond.
  const std::size_t available = isLookDue(bytes) ? availableMemory() : SIZE_MAX;
  if (bytes > available || available - bytes < spareBytes) {
    fail(taccSystemError, "shared memory for {}: {} bytes are wanted, and {} are available, of which {} are to be left",
         purpose, bytes, available, spareBytes);
  }
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(committedAtOnce, bytes - done);
    if (done > 0) {
      const std::size_t left = availableMemory();
      if (piece + spareBytes > left) {
        fail(taccSystemError, "shared memory for {}: memory ran out after {} of {} bytes, {} are available", purpose,
             done, bytes, left);
      }
    }
    reservePiece(fd, data + done, offset + done, piece, purpose);
    done += piece;
  }
}

bool commitsByAddress() noexcept {
  static const bool does = [] {
    const std::size_t bytes = 2 * pageBytes;
    void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return false;
    const bool result = ::madvise(static_cast<std::byte*>(pages) + pageBytes, pageBytes, populateWrite) == 0;
    ::munmap(pages, bytes);
    return result;
  }();
  return does;
}

SharedMemory SharedMemory::create(std::size_t bytes, std::string_view purpose, Reserve reserve) {
  if (bytes > static_cast<std::size_t>(PTRDIFF_MAX) - pageBytes) {
    fail(taccSystemError, "shared memory for {}: {} bytes are not possible", purpose, bytes);
  }
  const std::size_t whole = wholePages(bytes);
  FileDescriptor fd = makeUnnamedFile(whole, purpose);
  std::byte* data = mapShared(fd.get(), whole, purpose);
  SharedMemory memory(std::move(fd), data, bytes);
  if (reserve == Reserve::now) reservePages(memory.fd(), data, 0, whole, purpose);
  return memory;
}

SharedMemory SharedMemory::map(FileDescriptor fd, std::size_t bytes, std::string_view purpose) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) failErrno("shared memory for {}: descriptor {}", purpose, fd.get());
  if (bytes == 0 || status.st_size < 0 || static_cast<std::size_t>(status.st_size) < bytes) {
    fail(taccInternalError, "shared memory for {}: the file has {} bytes, {} were announced", purpose, status.st_size,
         bytes);
  }
  std::byte* data = mapShared(fd.get(), bytes, purpose);
  return SharedMemory(std::move(fd), data, bytes);
}

SharedMemory::SharedMemory(FileDescriptor fd, std::byte* data, std::size_t size) noexcept
    : fd_(std::move(fd)), data_(data), size_(size) {}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void SharedMemory::keepFromChildren() const noexcept { (void)::madvise(data_, size_, MADV_DONTFORK); }

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace tacc

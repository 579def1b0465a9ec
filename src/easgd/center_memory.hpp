// The numbers of a center, in memory that the process that keeps it and the workers of its host share.
//
//   header    what others check, and counts
//   locks     one for each shard of 16384 numbers
//   numbers   from a page's beginning on
//
// The memory has no name; its descriptor is handed to workers over a unix socket, to processes of the same user only.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "comm/bootstrap/wait.hpp"
#include "easgd/elastic_kernels.hpp"
#include "easgd/shard_lock.hpp"
#include "transports/shm/shared_memory.hpp"

namespace tacc {

/// The end of `timeout` seconds from now; 0: never.
inline Deadline deadlineOf(double timeout) { return Deadline(timeout > 0 ? timeout : 1e9); }

class CenterMemory {
 public:
  static constexpr std::size_t shardElements = std::size_t{16} << 10;

  /// What a worker has to know to map it.
  struct Shape {
    std::uint64_t count;
    std::uint32_t isLocked;
    friend bool operator==(const Shape&, const Shape&) = default;
  };

  /// New, with the numbers of `initial` (null: zeros), with pages for all of it. Throws taccSystemError.
  static CenterMemory create(const Shape& shape, const float* initial);
  /// The memory of another process. Throws taccInternalError where the memory is not what the shape says.
  static CenterMemory map(FileDescriptor fd, const Shape& shape);

  CenterMemory(CenterMemory&&) = default;
  CenterMemory& operator=(CenterMemory&&) = delete;

  std::size_t size() const noexcept { return shape_.count; }
  bool isLocked() const noexcept { return shape_.isLocked != 0; }
  const Shape& shape() const noexcept { return shape_; }
  int fd() const noexcept { return memory_.fd(); }
  /// For those who do not pass it on.
  void closeFd() noexcept { memory_.closeFd(); }

  std::size_t shards() const noexcept { return (size() + shardElements - 1) / shardElements; }
  /// The elements that one lock guards, from `first` on and at most `n`: how many.
  static std::size_t inShard(std::size_t first, std::size_t n) noexcept {
    return std::min(n, shardElements - first % shardElements);
  }

  /// What an access does with the elements [first, first + n), which are of one shard.
  struct Move {
    const float* weights;  // of the first element, as all of these
    float alpha;
    float* difference;
  };
  struct Read {
    float* out;
  };
  struct Write {
    const float* values;
  };

  /// Each of these takes the shard's lock, where there are locks, and gives it back. False: another has it, and nothing
  /// was done.
  template <class Access>
  bool tryAccess(std::size_t first, std::size_t n, const Access& access) {
    if (!isLocked()) return accessUnlocked(numbers() + first, n, access), true;
    ShardLock& lock = lockOf(first);
    if (!note(lock.tryLock(self_))) return false;
    accessLocked(numbers() + first, n, access);
    lock.unlock();
    return true;
  }
  /// The same, waiting `timeout` seconds (0: for ever): then a taccTimeout that says who has the lock. `look` as in
  /// ShardLock.
  template <class Access>
  void access(std::size_t first, std::size_t n, const Access& access, double timeout,
              const std::function<void()>& look) {
    if (tryAccess(first, n, access)) return;
    ShardLock& lock = lockOf(first);
    if (!note(lock.lock(self_, deadlineOf(timeout), look))) failOnHolder(first, timeout);
    accessLocked(numbers() + first, n, access);
    lock.unlock();
  }

  /// "process 4711, stopped (SIGSTOP), holds ...": who has the lock of `first` for too long.
  [[noreturn]] void failOnHolder(std::size_t first, double timeout) const;

  /// Counts a whole exchange: which one it is, from 1 on.
  std::uint64_t addUpdate() noexcept { return header().updates.fetch_add(1, std::memory_order_relaxed) + 1; }
  std::uint64_t updates() const noexcept { return header().updates.load(std::memory_order_relaxed); }
  std::uint64_t inherited() const noexcept { return header().inherited.load(std::memory_order_relaxed); }
  int workers() const noexcept { return header().workers.load(std::memory_order_relaxed); }
  void addWorkers(int more) noexcept { header().workers.fetch_add(more, std::memory_order_relaxed); }
  /// The process that keeps it ends it.
  void close() noexcept { header().isClosed.store(1, std::memory_order_release); }
  bool isClosed() const noexcept { return header().isClosed.load(std::memory_order_acquire) != 0; }

  /// For tests, which take the lock of a shard and keep it.
  ShardLock& lockOf(std::size_t element) const noexcept { return locks()[element / shardElements]; }
  std::uint32_t self() const noexcept { return self_; }

 private:
  struct Header {
    std::uint32_t magic;
    std::uint32_t layout;
    Shape shape;
    std::uint64_t processSpace;  // in which the numbers of holders mean something
    std::atomic<std::uint32_t> isClosed;
    std::atomic<std::int32_t> workers;
    alignas(64) std::atomic<std::uint64_t> updates;
    std::atomic<std::uint64_t> inherited;
  };

  CenterMemory(SharedMemory memory, const Shape& shape) noexcept;

  Header& header() const noexcept { return *reinterpret_cast<Header*>(memory_.data()); }
  ShardLock* locks() const noexcept;
  float* numbers() const noexcept { return numbers_; }

  bool note(ShardLock::Taken taken) noexcept {
    if (taken == ShardLock::Taken::fromTheDead) header().inherited.fetch_add(1, std::memory_order_relaxed);
    return taken != ShardLock::Taken::no;
  }

  void accessLocked(float* center, std::size_t n, const Move& move) const;
  void accessLocked(float* center, std::size_t n, const Read& read) const;
  void accessLocked(float* center, std::size_t n, const Write& write) const;
  void accessUnlocked(float* center, std::size_t n, const Move& move) const;
  void accessUnlocked(float* center, std::size_t n, const Read& read) const;
  void accessUnlocked(float* center, std::size_t n, const Write& write) const;

  SharedMemory memory_;
  Shape shape_;
  float* numbers_;
  std::uint32_t self_ = 0;  // this process, where its number means something to the others
  const ElasticKernels* kernels_;
};

}  // namespace tacc

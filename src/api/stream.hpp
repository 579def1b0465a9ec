// What a taccStream_t points to: a queue and the thread that works it off.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "api/work.hpp"
#include "core/error.hpp"
#include "tacc/tacc.h"

namespace tacc {

/// First in, first out. Keeps its memory, so a stream that is used again and again stops allocating.
class WorkQueue {
 public:
  bool empty() const noexcept { return size_ == 0; }

  /// Makes sure that one push() needs no memory.
  void makeRoom() {
    if (size_ == slots_.size()) grow();
  }

  /// After makeRoom().
  void push(Work work) noexcept {
    slots_[(first_ + size_) % slots_.size()] = std::move(work);
    ++size_;
  }

  Work pop() {
    Work work = std::move(slots_[first_]);
    slots_[first_] = Work();
    first_ = (first_ + 1) % slots_.size();
    --size_;
    return work;
  }

 private:
  void grow() {
    std::vector<Work> larger(slots_.empty() ? 16 : 2 * slots_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move(slots_[(first_ + i) % slots_.size()]);
    slots_ = std::move(larger);
    first_ = 0;
  }

  std::vector<Work> slots_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace tacc

struct taccStream {
 public:
  /// Work and where it goes.
  struct Given {
    std::shared_ptr<taccStream> stream;
    tacc::Work work;
  };

  /// Starts the thread.
  taccStream();
  taccStream(const taccStream&) = delete;
  taccStream& operator=(const taccStream&) = delete;
  ~taccStream();

  /// Queues work whose turns have been taken. When that is impossible the work is abandoned, and that is the stream's
  /// error. Locks for the time of one insertion.
  void push(tacc::Work work) noexcept;

  /// Pushes a group's work onto several streams in one step, as seen by all other threads. Parts of one group may wait
  /// for each other, so no other thread's work may come between them in different orders on different streams.
  static void pushTogether(std::span<Given> given) noexcept;

  /// All work given so far is done.
  bool idle();
  /// Waits for all work given before. Returns the first error since the last call of this and forgets it.
  std::optional<tacc::Error> synchronize();
  /// The first error, not forgotten. None while work is under way, as its buffers are in use then.
  std::optional<tacc::Error> error();
  /// Waits for the work and ends the thread. Work that comes later is abandoned.
  void stop();

  /// The number of the entry that was given last; 0: none yet. Numbers follow the order of the queue.
  std::uint64_t lastGiven();
  /// Whether the entries up to `number` are done.
  bool isDone(std::uint64_t number);
  void waitFor(std::uint64_t number);

  /// lastGiven(), whose outcome is kept until close(). Fails while there is none: nothing was given.
  std::uint64_t open();
  void close() noexcept;
  /// How an entry went for which open() was called. Waits for it until `deadline` (none: as long as it takes), and
  /// returns false when it is still under way then. Throws its error.
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;
  static constexpr std::chrono::steady_clock::time_point past = std::chrono::steady_clock::time_point::min();
  bool finish(std::uint64_t number, const Deadline& deadline);

  /// The process that has its thread, and its generation among forks.
  std::uint32_t generation() const noexcept { return generation_; }
  int process() const noexcept { return process_; }

 private:
  void work();
  bool tryPush(tacc::Work& work);                                             // with mutex_ held; false: stopping
  void refuse(tacc::Work& work, const tacc::Error& reason) noexcept;          // without mutex_
  void keep(std::optional<tacc::Error> error);                                // with mutex_ held
  void noteFailure(std::uint64_t number, const tacc::Error& error) noexcept;  // with mutex_ held
  void noteUnknown(std::uint64_t number) noexcept;                            // with mutex_ held

  std::mutex mutex_;
  std::condition_variable given_;  // work or the end
  std::condition_variable done_;
  tacc::WorkQueue queue_;
  std::optional<tacc::Error> error_;
  std::uint64_t givenCount_ = 0;
  std::uint64_t doneCount_ = 0;
  /// Entries that failed while somebody may ask for them, and the last that failed.
  struct Failure {
    std::uint64_t number;
    tacc::Error error;
  };
  std::vector<Failure> failures_;
  // There was no memory to note how these went, or to queue what was to come after the last.
  std::uint64_t unknownFrom_ = 1, unknownTo_ = 0;
  std::uint64_t openCount_ = 0;
  bool stopping_ = false;
  std::uint32_t generation_;
  int process_;
  std::thread thread_;
};

namespace tacc {

using StreamPointer = std::shared_ptr<taccStream>;

/// Streams are found by their handles in a table, so a handle that is none is never read through.
taccStream_t makeStream();
/// Fails when the handle is not that of a stream. Null for a null handle.
StreamPointer findStream(taccStream_t handle);
/// findStream(), for functions that need one, taking it out of the table.
StreamPointer removeStream(taccStream_t handle);
/// Fails in a forked child on the streams of its parent, which have no threads there.
void checkIsOwn(const taccStream& stream);
/// findStream() that fails on null.
StreamPointer requireStream(taccStream_t handle);

}  // namespace tacc

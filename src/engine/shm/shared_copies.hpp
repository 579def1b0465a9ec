// Copies of private memory through the kernel that both ends make.
//
// A rank that reads another one's memory takes pieces of it from the front. The owner, which waits until it has been
// read, takes pieces from the back and writes them where they belong, as long as it looks for something to do.
//
//   reader's area   claims: number | first | end      pieces first .. end are nobody's
//   reader          first += n     process_vm_readv   ... until first == end, then waits for what the other end took
//   owner           end   -= n     process_vm_writev  written += n
//
// Whoever claims takes half of the rest, as the other end may come; a reader whose owners have had work of their own
// takes all at first (copy_habits.hpp).
//
// The owner writes only what it has claimed, and the reader's call ends when all that was claimed is written. What the
// owner cannot write, as the kernel lets memory of some devices only be written by its process, the reader reads. A
// call that fails claims the rest for nobody and waits for what is being written: abandon().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/shm/copy_habits.hpp"
#include "engine/shm/remote_memory.hpp"
#include "transports/shm/node_segment.hpp"
#include "transports/shm/waiter.hpp"

namespace tacc {

/// Memory of this process that others may ask for.
struct OwnMemory {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;

  bool contains(const std::byte* at, std::size_t length) const noexcept {
    return begin != nullptr && at >= begin && length <= bytes && static_cast<std::size_t>(at - begin) <= bytes - length;
  }
};

class SharedCopies {
 public:
  /// Of shorter ones the second end costs more than it saves.
  static constexpr std::size_t leastBytes = std::size_t{128} << 10;

  SharedCopies(const NodeSegment& segment, int rank, Waiter& waiter, const RemoteMemory& memory);
  SharedCopies(const SharedCopies&) = delete;
  SharedCopies& operator=(const SharedCopies&) = delete;

  /// Whether another copy can be opened.
  bool hasRoom() const noexcept { return count_ < openCopies; }
  bool isAnyOpen() const noexcept { return count_ > 0; }
  /// Begins a copy of memory of `source`, for a call of `collective`. hasRoom().
  void open(Collective collective, int source, const std::byte* from, std::byte* to, std::size_t bytes) noexcept;
  /// Makes this rank's part of all copies that are open, and waits for the others' parts.
  void finish();
  /// After a failure that all ranks have been told of: nobody writes into this rank's memory when it returns. Empty;
  /// or who may still write, and where.
  std::string abandon();

  /// Makes a part of a copy of this rank's memory that `reader` has opened, of a MiB at most. False where there is none
  /// to make. `memory`: where copies of the call may read.
  bool help(int reader, const std::array<OwnMemory, 2>& memory);

 private:
  struct Opened {
    int source = 0;
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t bytes = 0, pieceBytes = 0;
    std::uint32_t number = 0;
    std::uint32_t pieces = 0, taken = 0;  // all, and from the front by this rank
    std::uint32_t claimed = 0;            // of these at first
    std::uint32_t writtenBefore = 0;
    CopyHabit* habit = nullptr;

    std::uint32_t others() const noexcept { return pieces - taken; }
  };
  void take(OpenCopy& copy, Opened& opened);
  void read(const Opened& opened, std::uint32_t first, std::uint32_t end);

  NodeSegment segment_;
  int rank_;
  Waiter& waiter_;
  const RemoteMemory& memory_;
  std::array<Opened, openCopies> opened_;
  int count_ = 0;  // that are open
  std::uint32_t number_ = 0;
  CopyHabits habits_;
  bool mayWrite_ = true;  // false once the kernel has refused it
};

}  // namespace tacc

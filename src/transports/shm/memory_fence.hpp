// Keeping late ranks out of memory whose call has failed.
//
// A call on library memory lets peers write into this rank's output. When it fails here, one of them may be stopped, or
// slow, and go on writing whenever it continues. So before the error is returned the pages of the output are exchanged
// for others with the same contents, at the same addresses: the late rank writes into the old ones, which are nobody's.
//
// A call that has succeeded needs none of this: it returns when all that peers do to its buffers has been done.
//
// The whole pages of the output are of the call alone, so nobody else can be hurt. A page at its ends, which holds
// other data too, becomes this process's own: no store of another thread to it is lost, but peers do not reach it any
// more, so calls on buffers that touch it go the way of private memory. Where a call of another communicator has its
// output on that very page, that call is waited for.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace tacc {

/// The memory that peers may write in the call that goes on: what a fence of another communicator must wait for. Makes
/// itself known as long as it lives; the place must stay. One thread begins and ends it.
class OutputUse {
 public:
  OutputUse();
  ~OutputUse();
  OutputUse(const OutputUse&) = delete;
  OutputUse& operator=(const OutputUse&) = delete;

  /// Before findLibrarySegment is asked about it. No lock, no allocation; about 5 ns.
  void begin(const std::byte* memory, std::size_t bytes) noexcept {
    end_.store(memory + bytes, std::memory_order_relaxed);
    begin_.exchange(memory, std::memory_order_seq_cst);
  }
  void end() noexcept { begin_.store(nullptr, std::memory_order_release); }

  bool overlaps(const std::byte* begin, const std::byte* end) const noexcept {
    const std::byte* const mine = begin_.load(std::memory_order_seq_cst);
    return mine != nullptr && mine < end && begin < end_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<const std::byte*> begin_{nullptr}, end_{nullptr};
};

/// Keeps peers out of [output, output + bytes), library memory that a call which has failed gave them; its OutputUse
/// has ended, and the failure has been told to the peers: what they still read there means nothing. Contents stay.
/// Needs 32 MiB for a moment; takes as long as copying twice, and up to `patienceSeconds` where a call of another
/// communicator has to end first. Empty when done; otherwise what is still open to them, and why: "..., which ...".
std::string fenceLibraryMemory(std::byte* output, std::size_t bytes, double patienceSeconds = 2);

/// Makes [memory, memory + bytes), which fences have left in several pieces, one that findLibrarySegment finds, if it
/// begins and ends at pages. For the buffer of a call that begins: nobody may write it meanwhile. False when it cannot
/// be done; a look at one word unless some memory is in pieces.
bool uniteLibraryMemory(const void* memory, std::size_t bytes);

/// Makes the allocation that begins at `start` this process's own for good: peers do not reach it any more, and a
/// forked child gets a copy of it. Contents stay; other threads may read and write meanwhile. Throws taccInvalidUsage,
/// with nothing changed, while a call has its output there, or in a child of the process that made it, and
/// taccInvalidArgument where none begins. Once more does nothing.
void unshareLibraryMemory(void* start);

}  // namespace tacc

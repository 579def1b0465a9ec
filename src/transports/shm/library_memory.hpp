// Library memory: what taccMemAlloc gives. It is shared memory, so the other ranks of the node can map it and
// collectives on it copy nothing. One registry for the process; every function is thread safe.
//
// A segment is a file: one header page, then the user's bytes from offset libraryHeaderBytes on. The header outlives
// the segment in the mappings of the peers and tells them that it was freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "transports/file_descriptor.hpp"
#include "transports/shm/shared_memory.hpp"

namespace tacc {

inline constexpr std::size_t libraryHeaderBytes = 4096;

struct LibrarySegment {
  std::uint64_t id = 0;  ///< random, never 0, never used again
  std::byte* base =
      nullptr;  ///< address of the file's first byte: what is at p here is at (p - base) in any mapping of fd.
                ///< The header page itself must be read there by nobody (adopted memory has it elsewhere).
  std::size_t bytes = 0;  ///< of the file: header and user bytes
  int fd = -1;            ///< the registry's; valid until the segment is freed
};

/// Zeroed memory, aligned to 4096 bytes. `bytes` == 0 gives a unique pointer. Throws taccSystemError.
void* allocateLibraryMemory(std::size_t bytes, Reserve reserve = Reserve::now);

/// Releases the pages at once, even while peers still map them. Throws taccInvalidArgument if `pointer` is not the
/// start of memory from allocateLibraryMemory.
void freeLibraryMemory(void* pointer);

/// The segment that holds [pointer, pointer + bytes), if one holds it all. No lock and no allocation unless the
/// registry changed since this thread last asked; about 20 ns.
std::optional<LibrarySegment> findLibrarySegment(const void* pointer, std::size_t bytes);

/// Turns the whole pages inside [buffer, buffer + bytes) into library memory in place, contents kept. True when done;
/// false when there is no whole page or the memory is not plain private memory (file, shared, stack, not writable,
/// already library memory). Nobody may touch the buffer meanwhile. From then on children made by fork() share these
/// pages with the parent instead of getting copies. Throws taccSystemError when the memory runs out; the buffer is then
/// as it was.
bool adoptMemory(void* buffer, std::size_t bytes);

/// Undoes adoptMemory for the same `buffer`: private memory again, contents kept. Nobody may touch the buffer
/// meanwhile. Throws taccInvalidArgument if the buffer is not adopted.
void releaseAdopted(void* buffer);

/// Whether the owner has freed the segment. `mappedHeader`: first byte of a peer's mapping of it.
bool segmentIsFreed(const std::byte* mappedHeader) noexcept;

/// A peer's view: the segments of other ranks that this communicator has mapped. For one thread at a time.
class MappedSegments {
 public:
  explicit MappedSegments(int ranks) : segments_(static_cast<std::size_t>(ranks)) {}

  /// First byte (the header) of this process's mapping of segment `id` of `rank`; nullptr if it is not mapped.
  std::byte* find(int rank, std::uint64_t id) const noexcept {
    for (const Mapped& mapped : segments_[static_cast<std::size_t>(rank)]) {
      if (mapped.id == id) return mapped.memory.data();
    }
    return nullptr;
  }
  /// The `bytes` at `offset` of it; nullptr where it has none such for users.
  std::byte* find(int rank, std::uint64_t id, std::uint64_t offset, std::size_t bytes) const noexcept {
    for (const Mapped& mapped : segments_[static_cast<std::size_t>(rank)]) {
      const std::size_t size = mapped.memory.size();
      if (mapped.id == id && offset >= libraryHeaderBytes && bytes <= size && offset <= size - bytes)
        return mapped.memory.data() + offset;
    }
    return nullptr;
  }
  /// Maps a segment; the descriptor is closed. A second add() of the same segment returns the first mapping.
  std::byte* add(int rank, std::uint64_t id, FileDescriptor fd, std::size_t bytes);
  /// Unmaps the segments that their owners have freed.
  void dropFreed() noexcept;

 private:
  struct Mapped {
    std::uint64_t id;
    SharedMemory memory;
  };
  std::vector<std::vector<Mapped>> segments_;  // by rank
};

}  // namespace tacc

// What the process knows of its library memory: every allocation, the files that its pages are of, and which pages
// peers may reach. For library_memory.cpp and memory_fence.cpp alone.
//
// At first an allocation is one file. Pages that a failed call's peers might still write are moved to a new one
// (memory_fence.hpp); all files of an allocation have its size, and its pages at the same offsets.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/fork.hpp"
#include "transports/shm/library_memory.hpp"
#include "transports/shm/shared_memory.hpp"

namespace tacc {

/// A file of an allocation.
struct LibraryFile {
  SharedMemory memory;  // maps the header page; of what allocateLibraryMemory gives, all of the first file
  LibrarySegment segment;
};

/// Whole pages that peers may reach, of one file.
struct LibraryPiece {
  std::byte* begin;
  std::byte* end;
  LibrarySegment segment;
};

struct LibraryAllocation {
  std::byte* begin = nullptr;  // of the user's pages
  std::byte* end = nullptr;
  std::byte* usedEnd = nullptr;                 // the user's bytes end here; nobody uses what follows in the last page
  std::vector<LibraryFile> files;               // never empty
  std::vector<LibraryPiece> pieces;             // by address; what is in none of them is reached by this process alone
  std::byte* adopted = nullptr;                 // the buffer as it was named to adoptMemory
  int adoptions = 0;                            // calls of adoptMemory not yet undone
  bool isUnshared = false;                      // for good: it has no pieces, and gets none
  std::uint32_t process = processGeneration();  // to free it is the business of the process that made it

  /// More or less than the one piece that it began with.
  bool isSplit() const noexcept {
    return !isUnshared && (pieces.size() != 1 || pieces.front().begin != begin || pieces.front().end != end);
  }
};

/// What findLibrarySegment looks at: all pieces by address. A table never changes; each change publishes a new one.
struct LibraryTable {
  std::vector<LibraryPiece> pieces;
};

/// One for the process.
struct LibraryRegistry {
  ForkMutex mutex;
  std::map<const std::byte*, LibraryAllocation> owned;  // by the first user byte; places stay
  std::shared_ptr<const LibraryTable> table;
  std::atomic<int> split{0};  // allocations that are, for a look without the mutex
};

/// Never destroyed: user memory may be freed in any destructor of the program.
LibraryRegistry& libraryRegistry();

/// Makes the table anew, after a change of `all`. Only under its mutex.
void publishLibraryMemory(LibraryRegistry& all);

/// Writes the header of a new file; returns the id in it.
std::uint64_t writeLibraryHeader(std::byte* page);

/// Tells the peers that the file is not for them any more.
void withdrawLibraryFile(LibraryFile& file) noexcept;

/// The same, and gives its pages back even while others map them.
void releaseLibraryFile(LibraryFile& file) noexcept;

}  // namespace tacc

// A buffer of an MPI call as the bytes that tacc moves or the numbers that it reduces.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>

#include "tacc/tacc.h"
#include "types.hpp"

namespace tacc::mpi {

/// `count` elements of an MPI type at an address.
struct Elements {
  void* address;
  std::size_t count;
  MPI_Datatype type;

  std::size_t bytes() const { return count * bytesOfJudged(type); }
  /// The same number of elements for each of several ranks: those of `rank`.
  Elements block(int rank) const { return movedBy(static_cast<std::ptrdiff_t>(count) * rank); }
  /// As many elements, `extents` extents of the type further on.
  Elements movedBy(std::ptrdiff_t extents) const;
  Elements ofAll(int ranks) const { return {address, count * static_cast<std::size_t>(ranks), type}; }
};

/// What is only read is not written to through it either.
inline Elements elementsAt(const void* address, MPI_Count count, MPI_Datatype type) {
  return {const_cast<void*>(address), static_cast<std::size_t>(count), type};
}

/// Their bytes to `block`, where they are not there already.
void copyInto(const Elements& elements, std::byte* block);

/// And from there.
void copyFrom(std::byte* block, const Elements& elements);

/// Whether MPI_Pack makes of a type with gaps just its bytes, as all MPIs do among machines of one kind. Then a rank
/// that has a block meets one that has the same numbers with gaps. Local.
bool arePackedPlainly();

/// Elements as one block of bytes: themselves where they are one, else a copy. Throws std::bad_alloc, and
/// std::runtime_error where MPI does not pack.
class Block {
 public:
  enum class Use { read, write, both };

  /// Elements that are there to be written only may have any content in the block at first.
  Block(const Elements& elements, Use use) : elements_(elements), data_(static_cast<std::byte*>(elements.address)) {
    if (!isBlock(elements.type)) copy(use);
  }

  std::byte* data() const noexcept { return data_; }
  /// Makes a copy of what is read here, if it lies where something else is written, other than `inPlace` bytes behind
  /// the beginning of that. MPI forbids it, but on one rank alone it must not be an error that the others wait for, and
  /// some MPIs take it.
  void keepApart(const Block& written, std::size_t inPlace);
  /// What was written goes where it belongs.
  void deliver() const {
    if (copy_) unpack();
  }

 private:
  void copy(Use use);
  void unpack() const;

  Elements elements_;
  std::unique_ptr<std::byte[]> copy_;
  std::byte* data_;
};

std::size_t sizeOf(taccDataType_t type) noexcept;

}  // namespace tacc::mpi

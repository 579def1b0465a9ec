// The types and operations that MPI has from the beginning, to be found in a nanosecond or two: short calls look for
// one or two of them, and take some tenths of a microsecond in all.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tacc/tacc.h"

namespace tacc::mpi {

struct KnownType {
  MPI_Datatype mpi{};
  std::uint32_t bytes = 0;  // of the numbers in one element, without the gaps
  taccDataType_t tacc = taccInt8;
  std::uint16_t reducedBy = 0;    // a bit for each taccRedOp_t that MPI has for the type
  std::uint8_t reducedBytes = 0;  // of an element of `tacc`
  bool isBlock = false;           // elements one after the other are a block of memory
  bool isThere = false;
};

struct KnownOperation {
  MPI_Op mpi{};
  taccRedOp_t tacc = taccSum;
  bool isThere = false;
};

/// By their handles. Filled once, before anybody asks.
template <class Known>
class KnownHandles {
  using Handle = decltype(Known::mpi);

 public:
  /// Not a second time under another name.
  void add(const Known& known) noexcept {
    std::size_t at = placeOf(known.mpi);
    while (places_[at].isThere && places_[at].mpi != known.mpi) at = (at + 1) % places;
    if (places_[at].isThere) return;
    places_[at] = known;
    places_[at].isThere = true;
  }

  /// Null for derived types, operations of the program, and others.
  const Known* find(Handle handle) const noexcept {
    for (std::size_t at = placeOf(handle); places_[at].isThere; at = (at + 1) % places)
      if (places_[at].mpi == handle) return &places_[at];
    return nullptr;
  }

 private:
  static constexpr int bits = 8;
  static constexpr std::size_t places = std::size_t{1} << bits;  // several times as many as there are

  /// Handles are numbers in one MPI and pointers in another.
  static std::uint64_t numberOf(Handle handle) noexcept {
    if constexpr (std::is_pointer_v<Handle>)
      return reinterpret_cast<std::uintptr_t>(handle);
    else
      return static_cast<std::uint64_t>(handle);
  }
  static std::size_t placeOf(Handle handle) noexcept {
    constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;  // spreads neighbours
    return static_cast<std::size_t>((numberOf(handle) * golden) >> (64 - bits));
  }

  std::array<Known, places> places_{};
};

extern KnownHandles<KnownType> knownTypes;
extern KnownHandles<KnownOperation> knownOperations;

}  // namespace tacc::mpi

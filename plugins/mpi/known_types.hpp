// The types that MPI has from the beginning, to be found in a nanosecond or two: short calls look for one or two of
// them and take less than a tenth of a microsecond in all.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tacc/tacc.h"

namespace tacc::mpi {

/// Which operations MPI has for a type.
enum class NumberKind : std::uint8_t { integer, real, complex, logical, bytes, pair, none };

struct KnownType {
  MPI_Datatype mpi{};
  std::size_t bytes = 0;  // of the numbers in one element, without the gaps
  taccDataType_t tacc = taccInt8;
  NumberKind kind = NumberKind::none;
  bool isBlock = false;  // elements one after the other are a block of memory
  bool isThere = false;
};

/// Filled once, before anybody asks.
class KnownTypes {
 public:
  /// Not a second time under another name.
  void add(const KnownType& type) noexcept {
    std::size_t at = placeOf(type.mpi);
    while (places_[at].isThere && places_[at].mpi != type.mpi) at = (at + 1) % places;
    if (places_[at].isThere) return;
    places_[at] = type;
    places_[at].isThere = true;
  }

  /// Null for derived types and others.
  const KnownType* find(MPI_Datatype type) const noexcept {
    for (std::size_t at = placeOf(type); places_[at].isThere; at = (at + 1) % places)
      if (places_[at].mpi == type) return &places_[at];
    return nullptr;
  }

 private:
  static constexpr int bits = 8;
  static constexpr std::size_t places = std::size_t{1} << bits;  // several times the types

  /// Handles are numbers in one MPI and pointers in another.
  template <class Handle>
  static std::uint64_t numberOf(Handle handle) noexcept {
    if constexpr (std::is_pointer_v<Handle>)
      return reinterpret_cast<std::uintptr_t>(handle);
    else
      return static_cast<std::uint64_t>(handle);
  }
  static std::size_t placeOf(MPI_Datatype type) noexcept {
    constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;  // spreads neighbours
    return static_cast<std::size_t>((numberOf(type) * golden) >> (64 - bits));
  }

  std::array<KnownType, places> places_{};
};

extern KnownTypes knownTypes;

}  // namespace tacc::mpi

// The inside of a taccUniqueId: where the ranks meet, and the secret by which they know each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tacc/tacc.h"

namespace tacc {

inline constexpr std::size_t secretBytes = 32;

/// What the 128 bytes hold, in this order and without gaps.
struct UniqueIdContents {
  std::array<char, 8> magic;                      // "taccUID" and a zero
  std::uint32_t version;                          // of this layout
  std::uint32_t reserved;                         // 0
  std::uint64_t host;                             // hash of the boot id of the host that made it; 0: unknown
  std::array<unsigned char, secretBytes> secret;  // random; whoever has it may join
  std::array<unsigned char, 16> name;             // random; names the rendezvous
  std::array<unsigned char, 40> unused;           // 0
  std::array<unsigned char, 16> check;            // hash of all that precedes, so that damage is noticed
};
static_assert(sizeof(UniqueIdContents) == TACC_UNIQUE_ID_BYTES);

/// A new id with a fresh secret. Throws taccSystemError.
taccUniqueId makeUniqueId();

/// Checks and opens an id. Throws taccInvalidArgument that says what is wrong with it: all zero, no id at all, damaged,
/// from another version of the library, or made on another host.
UniqueIdContents openUniqueId(const taccUniqueId& id);

/// Name in the abstract namespace of unix sockets at which rank 0 listens, without the leading zero byte: a hash of the
/// id, from which the secret cannot be found.
std::string rendezvousName(const UniqueIdContents& contents);

}  // namespace tacc

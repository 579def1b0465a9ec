// The inside of a taccUniqueId: where the ranks meet, and the secret by which they know each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tacc/tacc.h"
#include "transports/inet_address.hpp"

namespace tacc {

inline constexpr std::size_t secretBytes = 32;

/// What an id leads to.
enum class IdPurpose : std::uint16_t { communicator = 0, center = 1 };

/// What the 128 bytes hold, in this order and without gaps.
struct UniqueIdContents {
  std::array<char, 8> magic;  // "taccUID" and a zero
  std::uint32_t version;      // of this layout
  std::uint16_t port;         // of TCP, where rank 0 listens; 0: the id is good on one host only
  IdPurpose purpose;
  std::uint64_t host;                             // hostHash() where it was made; 0: rank 0 may be on any host
  std::array<unsigned char, secretBytes> secret;  // random; a process that has it may join
  std::array<unsigned char, 16> name;             // random; names the rendezvous
  std::array<InetAddress::V4, 4> ipv4;            // of rank 0's host, best first; unused ones are 0.0.0.0
  InetAddress::V6 ipv6;                           // the same, or ::
  std::array<unsigned char, 8> unused;            // 0
  std::array<unsigned char, 16> check;            // hash of all that precedes, so that damage is noticed
};
static_assert(sizeof(UniqueIdContents) == TACC_UNIQUE_ID_BYTES);

/// A new id with a fresh secret, a port that this process reserves, and the addresses of this host (restricted by
/// TACC_SOCKET_IFNAME). Throws taccSystemError, or taccInvalidArgument for an environment that is not right.
taccUniqueId makeUniqueId();

/// A new id that is good among the ranks of this host only: it has no port and reserves none.
taccUniqueId makeHostUniqueId();

/// An id with these contents; magic, version and check are filled in here.
taccUniqueId sealUniqueId(UniqueIdContents contents);

/// Checks and opens an id. Throws taccInvalidArgument that says what is wrong with it: all zero, no id at all, damaged,
/// from another version of the library, or for another purpose.
UniqueIdContents openUniqueId(const taccUniqueId& id, IdPurpose purpose = IdPurpose::communicator);

/// Puts as many of the addresses into the contents as fit.
void setAddresses(UniqueIdContents& contents, const std::vector<InetAddress>& addresses);

/// The addresses in it, with the port, best first; none when the port is 0.
std::vector<InetAddress> addressesIn(const UniqueIdContents& contents);

/// "192.0.2.2:4711, [fd00::2]:4711", for messages.
std::string describeAddressesIn(const UniqueIdContents& contents);

/// Name in the abstract namespace of unix sockets at which rank 0 listens, without the leading zero byte: a hash of its
/// secret and name, from which the secret cannot be found.
std::string rendezvousName(const UniqueIdContents& contents);

/// The same for the gateway of a host. `host` tells hosts apart that share the namespace.
std::string gatewayName(const UniqueIdContents& contents, std::uint64_t host);

}  // namespace tacc

#include "comm/bootstrap/unique_id.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "comm/hosts.hpp"
#include "core/environment.hpp"
#include "core/error.hpp"
#include "transports/interfaces.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

constexpr std::array<char, 8> idMagic = {'t', 'a', 'c', 'c', 'U', 'I', 'D', '\0'};
constexpr std::uint32_t layoutVersion = 2;

void startSodium() {
  if (::sodium_init() < 0) fail(taccSystemError, "libsodium finds no source of random numbers");
}

template <std::size_t hashBytes>
std::array<unsigned char, hashBytes> hashOf(const void* data, std::size_t bytes, std::string_view key) {
  std::array<unsigned char, hashBytes> hash;
  ::crypto_generichash(hash.data(), hash.size(), static_cast<const unsigned char*>(data), bytes,
                       reinterpret_cast<const unsigned char*>(key.data()), key.size());
  return hash;
}

std::array<unsigned char, 16> checkOf(const UniqueIdContents& contents) {
  return hashOf<16>(&contents, offsetof(UniqueIdContents, check), "tacc check of a unique id");
}

/// Not of the addresses: ranks that derive the id themselves may know rank 0's host by different ones.
std::string socketName(const UniqueIdContents& contents, std::uint64_t host, std::string_view key) {
  std::array<unsigned char, sizeof contents.secret + sizeof contents.name + sizeof host> source;
  const auto end = std::ranges::copy(contents.name, std::ranges::copy(contents.secret, source.begin()).out).out;
  std::memcpy(&*end, &host, sizeof host);
  const auto hash = hashOf<16>(source.data(), source.size(), key);
  std::string name = "tacc-";
  for (const unsigned char byte : hash) name += fmt::format("{:02x}", byte);
  return name;
}

}  // namespace

taccUniqueId makeHostUniqueId() {
  startSodium();
  UniqueIdContents contents{};
  contents.host = hostHash();
  ::randombytes_buf(contents.secret.data(), contents.secret.size());
  ::randombytes_buf(contents.name.data(), contents.name.size());
  return sealUniqueId(contents);
}

taccUniqueId makeUniqueId() {
  startSodium();
  const std::vector<InterfaceAddress> chosen = chooseAddresses(interfaceAddresses(), checkEnvironment().interfaces);
  std::vector<InetAddress> addresses;
  for (const InterfaceAddress& one : chosen) addresses.push_back(one.address);
  UniqueIdContents contents{};
  contents.host = hostHash();
  if (!addresses.empty()) contents.port = reservePort();
  if (contents.port != 0) setAddresses(contents, addresses);
  ::randombytes_buf(contents.secret.data(), contents.secret.size());
  ::randombytes_buf(contents.name.data(), contents.name.size());
  const taccUniqueId id = sealUniqueId(contents);
  ::sodium_memzero(&contents, sizeof contents);
  return id;
}

taccUniqueId sealUniqueId(UniqueIdContents contents) {
  contents.magic = idMagic;
  contents.version = layoutVersion;
  contents.check = checkOf(contents);
  taccUniqueId id;
  std::memcpy(id.internal, &contents, sizeof id.internal);
  ::sodium_memzero(&contents, sizeof contents);
  return id;
}

UniqueIdContents openUniqueId(const taccUniqueId& id, IdPurpose purpose) {
  startSodium();
  if (std::ranges::all_of(id.internal, [](char byte) { return byte == 0; })) {
    fail(taccInvalidArgument,
         "the unique id is all zero: it was never filled; call taccGetUniqueId on one rank and copy its 128 bytes to "
         "all");
  }
  UniqueIdContents contents;
  std::memcpy(&contents, id.internal, sizeof contents);
  if (contents.magic != idMagic) {
    fail(taccInvalidArgument,
         "these 128 bytes are no unique id from taccGetUniqueId (they do not begin with \"taccUID\"); copy all 128 "
         "bytes "
         "unchanged");
  }
  if (contents.version != layoutVersion) {
    fail(taccInvalidArgument,
         "the unique id has layout {}, this library knows layout {}: use one version of tacc on all ranks",
         contents.version, layoutVersion);
  }
  if (contents.check != checkOf(contents)) {
    fail(taccInvalidArgument, "the unique id was damaged on its way: copy all 128 bytes unchanged, zeros included");
  }
  if (contents.purpose != purpose) {
    fail(taccInvalidArgument, "the unique id is {}: {}",
         contents.purpose == IdPurpose::center ? "that of a center, from taccCenterCreate" : "not that of a center",
         purpose == IdPurpose::center ? "taccCenterConnect needs the one that taccCenterCreate has written"
                                      : "a communicator needs one from taccGetUniqueId");
  }
  return contents;
}

void setAddresses(UniqueIdContents& contents, const std::vector<InetAddress>& addresses) {
  contents.ipv4 = {};
  contents.ipv6 = {};
  std::size_t next = 0;
  for (const InetAddress& address : addresses) {
    if (address.isV4() && next < contents.ipv4.size()) contents.ipv4[next++] = address.v4();
    if (!address.isV4() && contents.ipv6 == InetAddress::V6{}) contents.ipv6 = address.v6();
  }
}

std::vector<InetAddress> addressesIn(const UniqueIdContents& contents) {
  std::vector<InetAddress> addresses;
  if (contents.port == 0) return addresses;
  for (const InetAddress::V4& bytes : contents.ipv4) {
    if (bytes != InetAddress::V4{}) addresses.emplace_back(bytes, contents.port);
  }
  if (contents.ipv6 != InetAddress::V6{}) addresses.emplace_back(contents.ipv6, contents.port);
  return addresses;
}

std::string describeAddressesIn(const UniqueIdContents& contents) {
  std::string text;
  for (const InetAddress& address : addressesIn(contents)) text += (text.empty() ? "" : ", ") + address.text();
  return text.empty() ? "none" : text;
}

std::string rendezvousName(const UniqueIdContents& contents) {
  return socketName(contents, 0, "tacc name of a rendezvous");
}

std::string gatewayName(const UniqueIdContents& contents, std::uint64_t host) {
  return socketName(contents, host, "tacc name of a gateway");
}

}  // namespace tacc

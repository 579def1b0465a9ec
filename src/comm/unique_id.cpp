#include "comm/unique_id.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "base/error.hpp"

namespace tacc {
namespace {

constexpr std::array<char, 8> idMagic = {'t', 'a', 'c', 'c', 'U', 'I', 'D', '\0'};
constexpr std::uint32_t layoutVersion = 1;

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

/// Same on all processes of a running host, also in its containers; 0 where the kernel does not tell.
std::uint64_t hashOfHost() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  const std::string bootId{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (bootId.empty()) return 0;
  const auto hash = hashOf<16>(bootId.data(), bootId.size(), "tacc host of a unique id");
  std::uint64_t value;
  std::memcpy(&value, hash.data(), sizeof value);
  return value;
}

std::array<unsigned char, 16> checkOf(const UniqueIdContents& contents) {
  return hashOf<16>(&contents, offsetof(UniqueIdContents, check), "tacc check of a unique id");
}

}  // namespace

taccUniqueId makeUniqueId() {
  startSodium();
  UniqueIdContents contents{};
  contents.magic = idMagic;
  contents.version = layoutVersion;
  contents.host = hashOfHost();
  ::randombytes_buf(contents.secret.data(), contents.secret.size());
  ::randombytes_buf(contents.name.data(), contents.name.size());
  contents.check = checkOf(contents);
  taccUniqueId id;
  std::memcpy(id.internal, &contents, sizeof id.internal);
  ::sodium_memzero(&contents, sizeof contents);
  return id;
}

UniqueIdContents openUniqueId(const taccUniqueId& id) {
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
  const std::uint64_t here = hashOfHost();
  if (contents.host != 0 && here != 0 && contents.host != here) {
    fail(taccInvalidArgument,
         "the unique id was made on another host (or before a reboot): a communicator joins the ranks of one host");
  }
  return contents;
}

std::string rendezvousName(const UniqueIdContents& contents) {
  const auto hash = hashOf<16>(&contents, sizeof contents, "tacc name of a rendezvous");
  std::string name = "tacc-";
  for (const unsigned char byte : hash) name += fmt::format("{:02x}", byte);
  return name;
}

}  // namespace tacc

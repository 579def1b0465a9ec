#include "comm/host.hpp"

#include <sodium.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

namespace tacc {
namespace {

std::uint64_t hashOf(std::string_view text, std::string_view key) {
  std::array<unsigned char, 16> hash;
  ::crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                       reinterpret_cast<const unsigned char*>(key.data()), key.size());
  std::uint64_t value;
  std::memcpy(&value, hash.data(), sizeof value);
  return value;
}

std::string bootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::uint64_t hostHash() {
  const std::string id = bootId();
  return id.empty() ? 0 : hashOf(id, "tacc host of a unique id");
}

std::uint64_t processSpaceHash() {
  const std::string id = bootId();
  std::array<char, 64> space{};  // "pid:[4026531836]"
  if (id.empty() || ::readlink("/proc/self/ns/pid", space.data(), space.size() - 1) <= 0) return 0;
  return hashOf(id + space.data(), "tacc process numbers");
}

std::string hostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "?";
  return name.data();
}

}  // namespace tacc

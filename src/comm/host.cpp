#include "comm/host.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "transports/file_descriptor.hpp"
#include "transports/spare_descriptors.hpp"

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

constexpr const char* bootIdFile = "/proc/sys/kernel/random/boot_id";

std::string readBootId() {
  FileDescriptor file(::open(bootIdFile, O_RDONLY | O_CLOEXEC));
  if (!file.valid() && isDescriptorShortage(errno)) {
    // A rank that does not know its host would take itself for another one than the others, who do.
    const SpareDescriptors spare;
    file.reset(::open(bootIdFile, O_RDONLY | O_CLOEXEC));
    if (!file.valid()) failDescriptor("cannot read {}, which tells hosts apart", bootIdFile);
  }
  std::array<char, 64> text{};
  if (!file.valid() || ::read(file.get(), text.data(), text.size() - 1) <= 0) return "";
  return text.data();
}

/// Read once: it is the same until the process ends. Empty where the kernel does not tell.
const std::string& bootId() {
  static const std::string id = readBootId();
  return id;
}

}  // namespace

std::uint64_t hostHash() {
  const std::string& id = bootId();
  return id.empty() ? 0 : hashOf(id, "tacc host of a unique id");
}

std::uint64_t processSpaceHash() {
  const std::string& id = bootId();
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

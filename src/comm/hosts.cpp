#include "comm/hosts.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "transports/file_descriptor.hpp"
#include "transports/spare_descriptors.hpp"

namespace tacc {
namespace {

/// FNV-1a: only equality matters, among ranks that trust each other.
std::uint64_t fnvHashOf(const std::string& text) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3ULL;
  return hash;
}

/// The number of this thread's network namespace; 0 where the kernel has none. Of the thread, as the process's first
/// one has none any more where main() has called pthread_exit().
std::uint64_t networkNamespace() {
  struct stat info {};
  return ::stat("/proc/thread-self/ns/net", &info) == 0 ? info.st_ino : 0;
}

std::uint64_t keyedHashOf(std::string_view text, std::string_view key) {
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

std::string RankIdentity::describe() const {
  // Another rank sent it: the name may have no end, and is shown on terminals.
  std::string name(hostName.begin(), std::ranges::find(hostName, '\0'));
  std::ranges::replace_if(
      name, [](char c) { return c < '!' || c > '~'; }, '?');
  return fmt::format("process {} on host {}", process, name);
}

RankIdentity introduceSelf(const std::string& settings, bool sharesMemory) {
  RankIdentity self{};
  self.settings = fnvHashOf(settings);
  if (::gethostname(self.hostName.data(), self.hostName.size() - 1) != 0) failErrno("cannot ask for the host's name");
  self.process = static_cast<std::int32_t>(::getpid());
  // Where the kernel does not tell which host this is, the name has to do.
  const std::uint64_t machine = hostHash() != 0 ? hostHash() : fnvHashOf(self.hostName.data());
  self.host = fnvHashOf(fmt::format("{} {} {} {} {}", machine, networkNamespace(), processSpaceHash(), ::geteuid(),
                                    sharesMemory ? 0 : self.process));
  return self;
}

bool haveEqualSettings(const std::vector<RankIdentity>& all) {
  return std::ranges::all_of(all, [&](const RankIdentity& one) { return one.settings == all[0].settings; });
}

void failSettings(const std::vector<RankIdentity>& all, const std::vector<std::string>& settings) {
  const auto other = static_cast<std::size_t>(
      std::ranges::find_if(settings, [&](const std::string& one) { return one != settings[0]; }) - settings.begin());
  if (other == settings.size()) fail(taccInternalError, "equal settings have different digests");
  fail(taccInvalidUsage,
       "ranks have different settings: rank 0 ({}) has '{}', rank {} ({}) has '{}'; set them alike on all",
       all[0].describe(), settings[0], other, all[other].describe(), settings[other]);
}

HostMap::HostMap(const std::vector<RankIdentity>& all) {
  std::map<std::uint64_t, int> numbers;
  for (const RankIdentity& one : all) {
    const int host = numbers.try_emplace(one.host, hosts()).first->second;
    if (host == hosts()) ranks_.emplace_back();
    auto& members = ranks_[static_cast<std::size_t>(host)];
    local_.push_back(static_cast<int>(members.size()));
    members.push_back(static_cast<int>(host_.size()));
    host_.push_back(host);
  }
}

HostMap HostMap::inOrder(std::span<const int> walk) const {
  HostMap result = *this;
  result.ranks_.clear();
  for (const int host : walk) {
    for (const int rank : ranksOf(host)) result.host_[static_cast<std::size_t>(rank)] = result.hosts();
    result.ranks_.push_back(ranksOf(host));
  }
  return result;
}

std::vector<int> HostMap::lane(int local) const {
  std::vector<int> ranks;
  for (const auto& members : ranks_) ranks.push_back(members[static_cast<std::size_t>(local)]);
  return ranks;
}

std::vector<int> HostMap::everybody() const {
  std::vector<int> ranks;
  for (const auto& members : ranks_) ranks.insert(ranks.end(), members.begin(), members.end());
  return ranks;
}

std::uint64_t hostHash() {
  const std::string& id = bootId();
  return id.empty() ? 0 : keyedHashOf(id, "tacc host of a unique id");
}

std::uint64_t processSpaceHash() {
  const std::string& id = bootId();
  std::array<char, 64> space{};  // "pid:[4026531836]"
  if (id.empty() || ::readlink("/proc/thread-self/ns/pid", space.data(), space.size() - 1) <= 0) return 0;
  return keyedHashOf(id + space.data(), "tacc process numbers");
}

std::string hostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "?";
  return name.data();
}

}  // namespace tacc

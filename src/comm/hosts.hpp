// Which ranks share a host, and what every rank tells of itself when a communicator is formed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tacc {

inline constexpr std::size_t settingsBytes = 400;

/// One rank, as all ranks know it.
struct RankIdentity {
  std::uint64_t host;  // equal where ranks can share memory: same kernel, network and process namespace
  std::int32_t process;
  std::array<char, 64> hostName;
  std::array<char, settingsBytes> settings;  // of the environment and the configuration that must be equal, as text

  /// "process 123 on host b".
  std::string describe() const;
};

/// This process. `settings` must be shorter than settingsBytes. `sharesMemory` false: a host of its own.
RankIdentity introduceSelf(const std::string& settings, bool sharesMemory);

/// Ranks with different settings would choose different plans and wait for each other for ever: throws an Error that
/// names both and both values.
void checkSettings(const std::vector<RankIdentity>& all);

/// The ranks by host. Ranks of a host are in order.
class HostMap {
 public:
  HostMap() = default;
  /// Hosts are numbered by their lowest rank.
  explicit HostMap(const std::vector<RankIdentity>& all);
  /// The same hosts in another order: walk[n] is the present number of what becomes host n.
  HostMap inOrder(std::span<const int> walk) const;

  int hosts() const noexcept { return static_cast<int>(ranks_.size()); }
  int hostOf(int rank) const { return host_[static_cast<std::size_t>(rank)]; }
  /// The place of `rank` among those of its host.
  int localOf(int rank) const { return local_[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& ranksOf(int host) const { return ranks_[static_cast<std::size_t>(host)]; }
  /// All hosts have equally many ranks.
  bool isEven() const noexcept;
  /// The rank number `local` of every host.
  std::vector<int> lane(int local) const;
  /// All ranks, host by host.
  std::vector<int> everybody() const;

 private:
  std::vector<int> host_, local_;
  std::vector<std::vector<int>> ranks_;
};

}  // namespace tacc

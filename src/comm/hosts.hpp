// Which host this is, which ranks share one, and what every rank tells of itself when a communicator is formed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tacc {

/// One rank, as all ranks know it.
struct RankIdentity {
  std::uint64_t host;  // equal where ranks can share memory: same kernel, network, process namespace and user
  std::int32_t process;
  std::array<char, 64> hostName;
  std::uint64_t settings;  // a digest of what must be equal in the environment and the configuration

  /// "process 123 on host b".
  std::string describe() const;
};

/// This process. `settings`: what must be equal, as text. `sharesMemory` false: a separate host.
RankIdentity introduceSelf(const std::string& settings, bool sharesMemory);

/// Ranks with different settings would choose different plans and wait for each other for ever.
bool haveEqualSettings(const std::vector<RankIdentity>& all);
/// Throws an Error that names two ranks that differ, and both values. `settings`: by rank.
void failSettings(const std::vector<RankIdentity>& all, const std::vector<std::string>& settings);

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
  /// The rank number `local` of every host.
  std::vector<int> lane(int local) const;
  /// All ranks, host by host.
  std::vector<int> everybody() const;

 private:
  std::vector<int> host_, local_;
  std::vector<std::vector<int>> ranks_;
};

/// Equal on all processes of a running host, also in its containers; 0 where the kernel does not tell. Throws
/// taccSystemError where this process has no descriptor left to ask. Two hosts that share a kernel (containers with
/// networks of their own) have the same.
std::uint64_t hostHash();

/// Equal on processes that see the same process numbers; 0: unknown.
std::uint64_t processSpaceHash();

/// As uname tells; "?" where it does not.
std::string hostName();

}  // namespace tacc

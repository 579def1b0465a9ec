// From what a launcher says to a unique id: every rank derives the same one, without a message.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/launch/launch_environment.hpp"
#include "tacc/tacc.h"
#include "transports/inet_address.hpp"

namespace tacc {

/// Which communicator of the job one that is being made is: the lowest number that no other has, which is made or being
/// made here. An attempt that fails gives its number back, so that ranks which fail together, whenever each of them
/// notices, try again with the same number. Any thread.
class LaunchNumber {
 public:
  LaunchNumber();
  ~LaunchNumber() { giveBack(); }
  LaunchNumber(const LaunchNumber&) = delete;
  LaunchNumber& operator=(const LaunchNumber&) = delete;

  unsigned value() const noexcept { return value_; }
  /// The communicator stands: nothing else gets this number.
  void keep() noexcept { isSettled_ = true; }
  /// The attempt has failed; not after keep().
  void giveBack() noexcept;

 private:
  unsigned value_;
  bool isSettled_ = false;  // kept, or given back
};

/// What a process needs to join.
struct LaunchedRank {
  taccUniqueId id;
  int ranks;
  int rank;
  std::shared_ptr<LaunchNumber> number = nullptr;  // of the communicator; who joins keeps it or gives it back
};

/// Whether a launcher that findLaunch() knows started this process.
bool isLaunched();

/// Which process of a job this one is; nothing where no launcher started it. Throws taccInvalidUsage where the launcher
/// does not say it all.
std::optional<LaunchPlace> placeInJob();

/// Reads the environment of this process and derives the id of its next communicator: equal on all ranks that have
/// joined as many. Looks up the name of the meeting point. Throws taccInvalidUsage, or taccSystemError when the name is
/// not known.
LaunchedRank findLaunch();

/// The id of communicator number `sequence` of this job. `addresses` are rank 0's, and may differ between ranks (a name
/// can mean loopback on its own host): the secret and the unix name do not depend on them.
///
/// The secret is a hash of `jobSecret`, the launcher's key, the user's number and the meeting point. Without a job
/// secret it is only as secret as the launcher's key: it keeps jobs apart that meet by accident, and keeps out those
/// who cannot know the key, but not those who can find out or guess it and reach the port.
taccUniqueId deriveUniqueId(const Launch& launch, std::string_view jobSecret, unsigned sequence,
                            const std::vector<InetAddress>& addresses);

/// What the name of a meeting point stands for, best first. Loopback is an Error (taccInvalidUsage) where the job is
/// known to be on several hosts, unless it is this host's own name: then it is the addresses of the interfaces, chosen
/// as for a new unique id.
std::vector<InetAddress> resolveMeetingPoint(const Launch& launch, std::string_view interfaces);

}  // namespace tacc

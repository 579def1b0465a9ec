// Who of a communicator's ranks is still in it. Two things end that: the rank's process ends, which the kernel tells by
// the claim that goes with it (liveness.hpp), or the rank leaves, which it writes into its area of the segment.
//
// A communicator and those that are split off it share one claim in each process. It stands until the last of them has
// gone there, in whatever order they go, so a child takes no further descriptor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "transports/shm/liveness.hpp"
#include "transports/shm/node_segment.hpp"

namespace tacc {

class Presence {
 public:
  /// `memory` keeps the segment. `claimOf[r]`: the number under which rank r has its claim. A barrier must follow
  /// before anyone asks.
  Presence(const NodeSegment& segment, std::shared_ptr<const void> memory, int rank,
           std::shared_ptr<const Liveness> claims, std::vector<int> claimOf);
  /// Leaves.
  ~Presence() { leave(); }
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  /// Whether `rank` has neither left nor ended. Cost: a load, and where it has not left as Liveness::isAlive(). Any
  /// thread.
  bool isThere(int rank) const;
  /// From now on this rank is seen as gone. Nothing in a forked child, to which the communicator does not belong.
  void leave() noexcept;

  /// Tells `rank` that the agreement of that number was decided without it, where it does not listen yet.
  void tellPassed(int rank, std::uint32_t agreement) const noexcept;
  /// The last agreement that this rank was told of so.
  std::optional<std::uint32_t> passed() const noexcept;

  const std::shared_ptr<const Liveness>& claims() const noexcept { return claims_; }
  int claimOf(int rank) const { return claimOf_[static_cast<std::size_t>(rank)]; }

 private:
  NodeSegment segment_;
  std::shared_ptr<const void> memory_;
  int rank_;
  std::shared_ptr<const Liveness> claims_;
  std::vector<int> claimOf_;
  std::uint32_t process_;  // processGeneration() of whose it is
};

}  // namespace tacc

// The run of a rank's sends and receives over several hosts: those with ranks of its host and those with others go on
// together.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/call.hpp"
#include "engine/net/network_pairs.hpp"
#include "engine/net/network_wait.hpp"

namespace tacc {

class PairRun {
 public:
  /// Runs operations inside the host, of which peers are numbers on the host, to their end.
  using InsideHost = std::function<void(std::span<const PointToPoint>)>;

  /// `onHost`: by rank, its number on this rank's host; -1: it is on another. `insideHost`: empty where this rank is
  /// alone there.
  PairRun(NetworkPeers& peers, NetworkWait& wait, int rank, std::vector<int> onHost, InsideHost insideHost);

  /// Runs all operations to their end.
  void run(std::span<const PointToPoint> operations);

  /// What goes on between hosts while run() does; null otherwise.
  NetworkPairs* active() noexcept { return isRunning_ ? &pairs_ : nullptr; }
  const NetworkPairs* active() const noexcept { return isRunning_ ? &pairs_ : nullptr; }

 private:
  /// Fills near_ and far_, and copies what a rank that is alone on its host sends itself.
  void sort(std::span<const PointToPoint> operations);
  void copyOwn() const;

  NetworkWait& wait_;
  NetworkPairs pairs_;
  int rank_;
  std::vector<int> onHost_;
  InsideHost insideHost_;
  bool isRunning_ = false;
  std::vector<PointToPoint> near_, far_, ownSends_, ownReceives_;  // of the operations that go on
};

}  // namespace tacc

// What rank 0 hears when it asks all ranks what they are doing, as an operation does not end, and what follows from it.
//
// A rank that does not answer is to blame, or the network between it and rank 0. Of one that has told by itself that it
// waits, at least what it sends arrives. A host whose kernel confirms the question is not cut off, whatever its ranks
// do; where no other host does, rank 0's own may be the one that is. Where all answer, the kernel of each host knows to
// which others it sends in vain.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/bootstrap/channel.hpp"
#include "comm/bootstrap/wait.hpp"
#include "comm/hosts.hpp"
#include "core/stopwatch.hpp"

namespace tacc {

/// What a rank tells of itself.
struct RankState {
  RankState(std::string what, std::vector<int> missed = {}) : doing(std::move(what)), unreached(std::move(missed)) {}
  RankState(const char* what) : doing(what) {}

  std::string doing;           // "was in allreduce(...), call 7"
  std::vector<int> unreached;  // ranks of other hosts that do not get what is sent to them
};

/// As it travels: which rank, then its state.
Payload payloadOfState(int rank, const RankState& state);
/// Of what follows the rank. Whatever the bytes are, no unreached rank is beyond `ranks`.
RankState stateIn(std::span<const std::byte> bytes, std::size_t ranks);

class Inquest {
 public:
  explicit Inquest(std::size_t ranks);

  /// What the rank answers to rank 0's question.
  void answer(int rank, RankState state);
  /// The rank has told by itself that its operation has timed out. It may have gone on since.
  void hear(int rank, RankState state);
  /// All have answered but rank 0 itself, or the time is up.
  bool isOver() const;

  /// Seconds since rank 0 has asked.
  double age() const { return opened_.seconds(); }

  /// The sentence for all ranks. `parents`: by rank, between it and rank 0; `unconfirmed`: ranks at the other ends of
  /// rank 0's connections whose kernels have not confirmed the question; `own`: rank 0's state.
  std::string verdict(const std::vector<RankIdentity>& who, const std::vector<int>& parents,
                      const std::vector<int>& unconfirmed, RankState own);

 private:
  std::vector<int> silentRanks(const std::vector<int>& parents) const;
  bool isCutOff(const std::vector<RankIdentity>& who, const std::vector<int>& silent,
                const std::vector<int>& unconfirmed) const;
  std::string blame(const std::vector<RankIdentity>& who, const std::vector<int>& silent,
                    const std::vector<int>& unconfirmed) const;
  std::vector<std::pair<int, int>> lostPairs(const std::vector<RankIdentity>& who) const;

  Stopwatch opened_;
  Deadline deadline_;
  std::vector<std::optional<RankState>> answers_, heard_;
};

}  // namespace tacc

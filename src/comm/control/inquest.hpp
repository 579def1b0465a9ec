// What rank 0 hears when it asks all ranks what they are doing, as an operation does not end, and what follows from it.
//
// A rank that does not answer is to blame, or the network between it and rank 0. One that has told by itself that it
// waits, and then does not answer, is heard and hears nothing. Where all answer, the kernel of each host knows to which
// others it sends in vain.
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
  /// The rank has told by itself that its operation has timed out.
  void hear(int rank);
  /// All have answered but rank 0 itself, or the time is up.
  bool isOver() const;

  /// The sentence for all ranks. `parents`: by rank, between it and rank 0; `own`: rank 0's state.
  std::string verdict(const std::vector<RankIdentity>& who, const std::vector<int>& parents, RankState own);

 private:
  std::vector<int> silentRanks(const std::vector<int>& parents) const;
  std::string blame(const std::vector<RankIdentity>& who, const std::vector<int>& silent) const;
  std::string lostPairs(const std::vector<RankIdentity>& who) const;

  Deadline deadline_;
  std::vector<std::optional<RankState>> answers_;
  std::vector<bool> heard_;
};

}  // namespace tacc

#include "comm/recovery/consensus.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace tacc {
namespace {

constexpr Ballot ofDecisions{std::numeric_limits<std::uint32_t>::max(), std::numeric_limits<std::int32_t>::max()};

}  // namespace

bool Decision::operator==(const Decision& other) const noexcept {
  return flags == other.flags && members == other.members && std::memcmp(&id, &other.id, sizeof id) == 0;
}

Quorum::Quorum(std::vector<bool> base) : base_(std::move(base)) {}

bool Quorum::suffices(const std::vector<bool>& present, const std::vector<bool>& dead) const {
  std::size_t all = 0, here = 0;
  bool areAllHere = true, hasLowest = false;
  for (std::size_t rank = 0; rank < base_.size(); ++rank) {
    if (!base_[rank]) continue;
    if (all == 0) hasLowest = present[rank];
    ++all;
    if (present[rank])
      ++here;
    else if (!dead[rank])
      areAllHere = false;
  }
  if (here == 0) return false;
  return areAllHere || 2 * here > all || (2 * here == all && hasLowest);
}

bool Acceptor::promise(const Ballot& ballot) {
  if (ballot < promised_) return false;
  promised_ = ballot;
  return true;
}

bool Acceptor::accept(const Ballot& ballot, const Decision& value) {
  if (hasDecided_ || ballot < promised_) return false;
  promised_ = accepted_ = ballot;
  value_ = value;
  return true;
}

void Acceptor::learn(const Decision& value) {
  accepted_ = ofDecisions;
  value_ = value;
  hasDecided_ = true;
}

Proposal::Proposal(const Quorum& quorum, const Ballot& ballot)
    : quorum_(quorum), ballot_(ballot), promised_(quorum.base().size()), accepted_(quorum.base().size()) {}

void Proposal::addPromise(std::size_t rank, const Ballot& accepted, const std::optional<Decision>& value) {
  if (value_ || !quorum_.isIn(rank)) return;
  promised_[rank] = true;
  if (!value || (inherited_ && accepted < highest_)) return;
  highest_ = accepted;
  inherited_ = value;
}

void Proposal::addAccepted(std::size_t rank) {
  if (rank < promised_.size() && promised_[rank]) accepted_[rank] = true;
}

}  // namespace tacc

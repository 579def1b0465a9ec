// How ranks that may die, stop or be cut off at any moment decide on one value, and never on two.
//
// This is Paxos with a single value (Lamport, "The Part-Time Parliament", 1998; "Paxos Made Simple", 2001). A rank that
// leads asks for promises in its own ballot, proposes what was accepted in the highest earlier ballot that it is
// told of, or else its own value, and the value is decided when a quorum has accepted it. Any number of ranks may
// lead at the same time, and any message may be lost: that costs time, and never makes two values.
//
// Pure: no sockets, no clocks (comm/recovery/agreement.hpp has these), so tests drive it through interleavings.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "tacc/tacc.h"

namespace tacc {

/// What is decided.
struct Decision {
  std::uint32_t flags = 0;    // bitwise and of the members' flags
  std::vector<bool> members;  // by rank: who took part
  taccUniqueId id{};          // of the communicator that the members form; all zero: none

  bool operator==(const Decision& other) const noexcept;
};

/// Which ranks may decide. The members of the base are those who were in the last agreement; dead is only who is known
/// to have ended for certain. A majority of the base suffices, exactly half of it with the lowest rank of all, and all
/// who are not dead. Any two such sets share a rank that lives: that is what makes decisions unique. Of two sets of the
/// last kind the later is among the ranks that live, and the earlier had all of them.
class Quorum {
 public:
  explicit Quorum(std::vector<bool> base);
  const std::vector<bool>& base() const noexcept { return base_; }
  bool isIn(std::size_t rank) const noexcept { return rank < base_.size() && base_[rank]; }
  bool suffices(const std::vector<bool>& present, const std::vector<bool>& dead) const;

 private:
  std::vector<bool> base_;
};

/// Numbers a leader's attempt; unique, as the leader's rank is a part of it.
struct Ballot {
  std::uint32_t round = 0;  // 0: none
  std::int32_t rank = -1;
  auto operator<=>(const Ballot&) const = default;
};

/// What one rank has promised and accepted. It must outlive every connection over which this was told.
class Acceptor {
 public:
  /// False: a higher ballot has its promise.
  bool promise(const Ballot& ballot);
  /// False: a higher ballot has its promise, or a decision is known.
  bool accept(const Ballot& ballot, const Decision& value);
  /// The value is decided.
  void learn(const Decision& value);

  const Ballot& promised() const noexcept { return promised_; }
  /// Ballot in which value() was accepted; a decision counts as accepted in the highest ballot there is.
  const Ballot& accepted() const noexcept { return accepted_; }
  const std::optional<Decision>& value() const noexcept { return value_; }
  bool hasDecided() const noexcept { return hasDecided_; }

 private:
  Ballot promised_, accepted_;
  std::optional<Decision> value_;
  bool hasDecided_ = false;
};

/// One attempt of a leader to have a value decided.
class Proposal {
 public:
  Proposal(const Quorum& quorum, const Ballot& ballot);
  const Ballot& ballot() const noexcept { return ballot_; }

  void addPromise(std::size_t rank, const Ballot& accepted, const std::optional<Decision>& value);
  const std::vector<bool>& promised() const noexcept { return promised_; }
  bool hasPromises(const std::vector<bool>& dead) const { return quorum_.suffices(promised_, dead); }
  /// What must be proposed; null: whatever the leader likes. Only after hasPromises().
  const Decision* inherited() const noexcept { return inherited_ ? &*inherited_ : nullptr; }

  /// The promises have been counted: from now on only acceptances are.
  void propose(Decision value) { value_ = std::move(value); }
  const std::optional<Decision>& value() const noexcept { return value_; }
  /// A rank that has promised has accepted; others were never asked to.
  void addAccepted(std::size_t rank);
  bool isDecided(const std::vector<bool>& dead) const { return value_ && quorum_.suffices(accepted_, dead); }

 private:
  const Quorum& quorum_;
  Ballot ballot_, highest_;
  std::vector<bool> promised_, accepted_;
  std::optional<Decision> inherited_, value_;
};

}  // namespace tacc

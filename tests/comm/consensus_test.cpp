// Never two decisions, whatever ranks die, lead at the same time, and whichever messages are lost or late.
#include "comm/recovery/consensus.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace tacc {
namespace {

/// Ranks, what they have promised and accepted, and the ballots that are under way. Messages wait until they are
/// delivered in any order, or never.
class Model {
 public:
  Model(int ranks, unsigned seed) : random_(seed), ranks_(ranks), quorum_(std::vector<bool>(places(), true)) {
    acceptors_.resize(places());
    isDead_.resize(places());
    known_.assign(places(), std::vector<bool>(places()));
  }

  void run(int steps) {
    for (int i = 0; i < steps && !failed_; ++i) step();
  }
  bool failed() const { return failed_; }
  int decisions() const { return decisions_; }

 private:
  struct Attempt {
    std::size_t leader;
    Proposal proposal;
    std::vector<bool> asked, told;  // prepare, accept: sent and neither delivered nor lost
    bool isOver = false;
  };

  std::size_t places() const { return static_cast<std::size_t>(ranks_); }
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  bool chance(double share) { return std::bernoulli_distribution(share)(random_); }

  void step() {
    const std::size_t rank = below(places());
    if (isDead_[rank]) return;
    switch (below(12)) {
      case 0:
        return startAttempt(rank);
      case 1:
        if (chance(0.15)) isDead_[rank] = true;
        return;
      case 2:  // finds out that another has ended
        if (const std::size_t other = below(places()); isDead_[other]) known_[rank][other] = true;
        return;
      case 3:  // tells another what it has learnt
        if (const std::size_t other = below(places()); acceptors_[rank].hasDecided() && !isDead_[other])
          decide(other, *acceptors_[rank].value());
        return;
      default:
        if (!attempts_.empty()) deliver(attempts_[below(attempts_.size())], rank);
    }
  }

  void startAttempt(std::size_t leader) {
    // A leader without a decision tries again and again; how it numbers its attempts is all that it has to get right.
    const Ballot ballot{acceptors_[leader].promised().round + 1 + static_cast<std::uint32_t>(below(2)),
                        static_cast<std::int32_t>(leader)};
    if (acceptors_[leader].hasDecided() || !acceptors_[leader].promise(ballot)) return;
    Attempt attempt{leader, Proposal(quorum_, ballot), std::vector<bool>(places(), true),
                    std::vector<bool>(places(), true)};
    attempt.proposal.addPromise(leader, acceptors_[leader].accepted(), acceptors_[leader].value());
    attempts_.push_back(std::move(attempt));
  }

  /// The attempt's next message to `rank`, and the answer, one of which may be lost.
  void deliver(Attempt& attempt, std::size_t rank) {
    if (isDead_[attempt.leader]) return;
    const std::vector<bool>& dead = known_[attempt.leader];
    Proposal& proposal = attempt.proposal;
    Acceptor& acceptor = acceptors_[rank];
    if (!proposal.value()) {
      if (attempt.asked[rank]) {
        attempt.asked[rank] = false;
        if (chance(0.2) || !acceptor.promise(proposal.ballot()) || chance(0.2)) return;
        proposal.addPromise(rank, acceptor.accepted(), acceptor.value());
      }
      if (!proposal.hasPromises(dead) || chance(0.5)) return;
      Decision value{static_cast<std::uint32_t>(attempts_.size()), proposal.promised(), {}};
      if (proposal.inherited() != nullptr) value = *proposal.inherited();
      proposal.propose(value);
      if (acceptors_[attempt.leader].accept(proposal.ballot(), value)) proposal.addAccepted(attempt.leader);
    } else if (proposal.promised()[rank] && attempt.told[rank]) {
      attempt.told[rank] = false;
      if (chance(0.2) || !acceptor.accept(proposal.ballot(), *proposal.value()) || chance(0.2)) return;
      proposal.addAccepted(rank);
    }
    if (!attempt.isOver && proposal.isDecided(dead)) {
      attempt.isOver = true;
      ++decisions_;
      decide(attempt.leader, *proposal.value());
    }
  }

  void decide(std::size_t rank, const Decision& value) {
    acceptors_[rank].learn(value);
    for (std::size_t other = 0; other < places(); ++other)
      if (!isDead_[other] && acceptors_[other].hasDecided() && !(*acceptors_[other].value() == value)) failed_ = true;
  }

  std::mt19937 random_;
  int ranks_;
  Quorum quorum_;
  std::vector<Acceptor> acceptors_;
  std::vector<bool> isDead_;
  std::vector<std::vector<bool>> known_;  // by rank: whom it knows to have ended
  std::vector<Attempt> attempts_;
  bool failed_ = false;
  int decisions_ = 0;
};

TEST(Consensus, NeverTwoDecisions) {
  const bool isQuick = std::getenv("TACC_TEST_QUICK") != nullptr;
  int decisions = 0;
  for (unsigned seed = 0; seed < (isQuick ? 5'000U : 60'000U); ++seed) {
    Model model(1 + static_cast<int>(seed % 6), seed);
    model.run(200);
    decisions += model.decisions();
    ASSERT_FALSE(model.failed()) << "seed " << seed;
  }
  EXPECT_GT(decisions, 1'000);
}

TEST(Quorum, TwoOfThemShareARank) {
  for (unsigned ranks = 1; ranks <= 8; ++ranks) {
    const Quorum quorum{std::vector<bool>(ranks, true)};
    const std::vector<bool> nobody(ranks);
    const auto setOf = [ranks](unsigned bits) {
      std::vector<bool> set(ranks);
      for (unsigned rank = 0; rank < ranks; ++rank) set[rank] = (bits >> rank & 1) != 0;
      return set;
    };
    for (unsigned one = 0; one < 1U << ranks; ++one)
      if (quorum.suffices(setOf(one), nobody)) {
        const unsigned others = ~one & ((1U << ranks) - 1);
        EXPECT_FALSE(quorum.suffices(setOf(others), nobody)) << ranks << " ranks, " << one;
      }
  }
}

TEST(Quorum, WhoHasEndedIsNotNeeded) {
  const Quorum quorum({true, false, true, true, true});
  const std::vector<bool> nobody(5), three({true, false, false, true, true});
  EXPECT_FALSE(quorum.suffices({false, false, true, false, false}, nobody));
  EXPECT_TRUE(quorum.suffices({false, false, true, false, false}, three));
  EXPECT_TRUE(quorum.suffices({true, false, true, false, false}, nobody));  // half of them, with the lowest
  EXPECT_FALSE(quorum.suffices({false, true, true, true, false}, nobody));  // rank 1 does not count
  EXPECT_TRUE(quorum.suffices({false, false, true, true, true}, nobody));
}

}  // namespace
}  // namespace tacc

// What the rounds of a contest between tacc and an MPI tell. Times are given: nothing here looks at a clock or calls
// anybody, and ranks that are given the same times conclude the same.
#pragma once

#include <vector>

#include "report.hpp"

namespace tacc::mpi {

/// Of a round: how many calls of each follow each other; and seconds of one of them, on the slowest rank.
struct RoundCalls {
  int tacc = 0, mpi = 0;
};
struct RoundTimes {
  double tacc = 0, mpi = 0;
};

/// What earlier contests of the same calls leave to the next one.
struct EarlierRounds {
  double slowMpi = 0;  // seconds of a call of this MPI where it lost by its mean: what is seldom is not in each contest
  double longer = 1;   // times as long as those of a first contest the rounds are
};

/// First some rounds of single calls, which make what later ones use again. Then rounds that are long enough for the
/// clock, of as many calls as the quickest round so far says: a library that is quick for some calls, and then waits
/// for processors, would otherwise be asked for few calls after each wait, and these are quick again.
class Rounds {
 public:
  explicit Rounds(const EarlierRounds& before = {}) noexcept : before_(before) {}

  /// Of the next round; none when it is over.
  RoundCalls next() const noexcept;
  /// What the round that next() told has taken.
  void add(const RoundTimes& times);
  /// Who serves such calls from now on, and what is told of them. After one round at least.
  void conclude(Outcome& outcome) const;

 private:
  bool isOver() const noexcept;
  bool isClearAtOnce() const noexcept;
  bool isClear() const noexcept;

  EarlierRounds before_;
  int done_ = 0;                  // rounds of all kinds
  double seconds_ = 0;            // of all calls
  RoundTimes least_;              // of rounds so far
  std::vector<RoundTimes> long_;  // the rounds that count
};

}  // namespace tacc::mpi

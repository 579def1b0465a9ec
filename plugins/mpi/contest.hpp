// A contest between tacc and the MPI: the calls that are timed. What is concluded is in contest_rounds.hpp, and when it
// is held in contests.hpp.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "contest_rounds.hpp"
#include "report.hpp"
#include "tacc/tacc.h"

namespace tacc::mpi {

struct Communicator;

/// Sets each of `numbers` to the most that a rank gave. Collective. By tacc: with more ranks than cores a call of an
/// MPI that spins takes milliseconds.
taccResult_t agreeOnMost(std::span<double> numbers, const Communicator& communicator);

/// Seconds of a clock that goes on and on.
double clockSeconds() noexcept;

/// A call of the program that does the same however often it is made.
struct Repeated {
  std::function<taccResult_t()> tacc;
  std::function<void()> mpi;
};

/// Runs some calls of either, in turns: of `repeated`, or on memory of its own with rank 0 as the root, where that is
/// null, on all ranks alike. Collective over `communicator`, which has joined. Sets `outcome` on success; an error is
/// tacc's own. Where it would take much memory, or a rank has none, tacc wins unmeasured. `before`: as of Rounds.
taccResult_t holdContest(Function function, std::size_t bytes, const Communicator& communicator,
                         const Repeated* repeated, const EarlierRounds& before, Outcome& outcome);

}  // namespace tacc::mpi

// What tests of shrinking have in common: who went on with whom.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fault_team.hpp"

namespace tacc::test {

/// How many faults a test of shrinking draws of each kind: SHRINK_ROUNDS, or `otherwise`; less with TACC_TEST_QUICK.
int shrinkRounds(int otherwise);

void nap(double seconds);

/// Shrinks, and lets the ranks of the new communicator tell each other who they were: the bits of their old numbers end
/// up in report.value, and their number in report.laterSeconds. 0: an error, whose text is in the report.
void shrinkAndMeet(taccComm_t comm, int rank, const std::vector<int>& excluded, Report& report);

/// `make`s a communicator on each of three ranks, stops `victim`, and expects that the others go on without it and that
/// it gets an Error when it continues. Returns that Error's text.
std::string expectStoppedRankLeftOut(int victim, const std::function<taccComm_t(const taccUniqueId&, int rank)>& make);

/// Ranks with success have as many members, and those that met met the same.
void expectTogether(const Team& team, const std::string& what);

}  // namespace tacc::test

// What times that were measured in turns say of candidates, and how surely.
//
// Of a dozen noisy candidates the one that measured the fastest is also the luckiest: its time is less than what it
// takes, so what is compared with it looks worse than it is. Here the rounds that name the fastest are never those that
// say by how much it is faster.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace tacc::tune {

/// Seconds of one candidate in each round; candidates with as many rounds were measured beside one another.
using Rounds = std::vector<double>;

/// The mean of the middle half: what other programs did to a few rounds does not count, and where times jump between
/// two levels it says how often each was met, which the median does not. 0 without any.
double typical(Rounds times);

/// A share: 0.1 is 10 %.
struct Excess {
  double share = 0;
  double error = 0;  // the standard error of the share
};

/// How much longer one candidate takes than the fastest. Each fifth of the rounds, in a row, is compared with the
/// candidate that the other rounds name the fastest. So it is 0 in the mean where all are alike, and may be less than
/// 0. Where the rounds do not tell which is the fastest it is a little less than it should be. Only candidates with as
/// many rounds as this one can be the fastest.
Excess excessOf(std::span<const Rounds> candidates, std::size_t of);

/// Which to take: the least typical time and its standard error together, as of two that are alike the steadier one is
/// the safer. `usual` is taken all the same if it is not slower by more than the error of the comparison.
std::size_t preferred(std::span<const Rounds> candidates, std::optional<std::size_t> usual);

}  // namespace tacc::tune

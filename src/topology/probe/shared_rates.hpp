// What pairs of hosts that send at the same time get of the links that they share.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/probe/probe_matrix.hpp"

namespace tacc {

/// Hosts below 64 as bits.
using HostSet = std::uint64_t;
inline constexpr std::uint32_t mostSetHosts = 64;

inline HostSet setOf(std::uint32_t host) noexcept { return HostSet{1} << host; }
inline bool has(HostSet set, std::uint32_t host) noexcept { return (set >> host & 1) != 0; }

/// Whether a message between the two leaves or enters the group.
inline bool crosses(HostSet group, ProbePair pair) noexcept { return has(group, pair.a) != has(group, pair.b); }

/// Pairs that sent one message each, all at the same time, and what each got.
struct MeasuredRound {
  std::vector<ProbePair> pairs;
  std::vector<double> rates;    // bytes/s; 0: failed
  std::vector<double> lengths;  // of the messages, in any unit
};

/// Links of a tree: every host's own, and what each group shares to the outside, bytes/s.
struct SharedLinks {
  std::vector<double> hosts;
  std::vector<HostSet> groups;
  std::vector<double> uplinks;  // of the groups
};

inline constexpr std::uint32_t limitedByHost = 0xffff'ffff;

struct PredictedRate {
  double rate;              // bytes/s from the beginning to the pair's end
  std::uint32_t limitedBy;  // number of the group whose uplink was its limit at first, or limitedByHost
};

/// What each pair of the round gets of these links when all begin at once, share evenly, and leave to the others what
/// they do not use any more. `predicted` has one for each pair.
void predictRates(const SharedLinks& links, const MeasuredRound& round, std::vector<PredictedRate>& predicted);

}  // namespace tacc

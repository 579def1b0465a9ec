// What was measured on a machine: for each collective and size the algorithm that was the fastest, and where that
// holds. tacc_tune measures it and a file keeps it (tuning_file.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/plan.hpp"
#include "selection/cost/cost_machine.hpp"
#include "selection/cost/network_speed.hpp"

namespace tacc {

/// What measurements of a communicator hold for; equal on all its ranks. Where the hosts are and what they are called
/// is no part of it: a job gets other hosts every time, and in the same arrangement they are as fast.
struct TuningPlace {
  std::string version;           // of the library
  std::string transport;         // between hosts; "shm" inside one
  std::uint64_t topology = 0;    // layoutDigest()
  bool isMeasured = false;       // the topology, when the ranks joined: it does not come out the same every time
  std::vector<int> ranksOfHost;  // in the order of the topology
  NetworkSpeed speed;  // between hosts, measured when ranks joined: of bandwidth only the magnitude must agree

  int ranks() const;
};

/// The version of this library: "0.1.0".
std::string ownVersion();

/// Which hosts, in the order of the topology, are nearer to one another, and so at every level; no names, no figures:
/// those of a network that was measured differ a little every time. `hosts`: with one rank for each host.
std::uint64_t layoutDigest(const CostMachine& hosts);

/// Why measurements of one place do not hold at another: a phrase with both values. Empty: they do.
std::string differenceOf(const TuningPlace& measured, const TuningPlace& here);

/// Calls that are no plan of an algorithm, under the name that taccCommLastAlgorithm gives them: inside a host all read
/// what all have posted.
inline constexpr std::string_view eagerRoute = "eager";

struct TunedSize {
  std::size_t bytes = 0;  // of the call's `count` elements
  std::string algorithm;  // the fastest; or eagerRoute
  double seconds = 0;
  std::string next;  // the second; empty: there was no other
  double nextSeconds = 0;
  std::string untuned;  // what the library chose by itself
  double untunedSeconds = 0;
  int line = 0;  // in the file that it came from
};

struct TunedCollective {
  Collective collective = Collective::allReduce;
  std::vector<TunedSize> sizes;  // ascending
};

struct Tuning {
  std::string origin;  // the file
  TuningPlace place;
  std::vector<TunedCollective> collectives;  // in their order

  /// What was measured at the nearest size, by ratio; null for a collective that was not measured and for sizes that
  /// are more than twice too small or too large. A pure function: ranks with the same file find the same.
  const TunedSize* find(Collective collective, std::size_t bytes) const;

  /// Where a measurement is kept, in its order; replaces one of the same size.
  void add(Collective collective, TunedSize measured);
};

}  // namespace tacc

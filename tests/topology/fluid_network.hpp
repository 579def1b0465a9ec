// A network in which messages share links as TCP's do, nearly: for what a survey would measure on it.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "topology/model/topology.hpp"
#include "topology/probe/probe_session.hpp"

namespace tacc::test {

/// A tree: groupOf[level][host], from the inside; what each group lets out, and what messages cost that meet there.
struct FluidNetwork {
  std::vector<double> links;                        // of the hosts, bytes/s
  std::vector<std::vector<std::uint32_t>> groupOf;  // levels between hosts and root
  std::vector<std::vector<double>> uplinks;         // of each level's groups
  std::vector<double> latencies;                    // of the levels and of the root, s

  std::uint32_t hosts() const { return static_cast<std::uint32_t>(links.size()); }
  std::size_t meet(ProbePair pair) const;
};

struct Disturbances {
  double rates = 0.05;      // standard deviation, relative
  double unfairness = 0.1;  // how much more than others a message takes of a link
  double latencies = 0.05;  // relative
  double sleeps = 0;        // share of samples in which both slept: ten times the latency
  double busy = 0;          // share of samples with half to all of the rate
  double holes = 0;         // share of samples that fail
  double cold = 1;          // of the rate, the first time that two meet
  double bucket = 0;        // bytes that links let pass at once
  double late = 0;          // seconds until somebody sees what has come, in the mean
};

/// Runs rounds as a communicator would.
class FluidRounds {
 public:
  FluidRounds(const FluidNetwork& network, Disturbances disturbances, unsigned seed)
      : network_(network), disturbances_(disturbances), random_(seed) {}
  std::vector<ProbeSample> run(const ProbeRound& round);

  /// How a message moves: at which rate until when.
  struct Stretch {
    double until, rate;
  };
  /// The messages of pairs that begin at once, with nothing to disturb them; each takes of links by its weight.
  static std::vector<std::vector<Stretch>> play(const FluidNetwork& network, const std::vector<ProbePair>& pairs,
                                                const std::vector<double>& weights, const std::vector<double>& bytes);

 private:
  double noise(double deviation) { return std::exp(std::normal_distribution<double>(0, deviation)(random_)); }
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }
  /// What each pair measures one way, but for what disturbs that one pair.
  std::vector<double> measure(const ProbeRound& round);
  double watch(const std::vector<Stretch>& stretches, double bytes);
  const FluidNetwork& network_;
  Disturbances disturbances_;
  std::mt19937 random_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> met_;
};

/// Whether it is one that fluids can be played on: groups in groups.
bool isTree(const Topology& network);

/// Of such a topology; what nobody said is no limit, and takes no time.
FluidNetwork fluidOf(const Topology& network);

/// What a survey finds that measures on it.
Topology surveyed(const Topology& network, const Disturbances& disturbances, unsigned seed, int* rounds = nullptr);

}  // namespace tacc::test

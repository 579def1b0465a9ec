// How far apart hosts are, and which of them are nearest to each other.
#pragma once

#include <vector>

#include "topology/probe/shared_rates.hpp"

namespace tacc {

/// Distances between up to 64 hosts, some of which may be missing. Samples of one pair are averaged.
class HostDistances {
 public:
  explicit HostDistances(std::uint32_t hosts);

  std::uint32_t hosts() const noexcept { return hosts_; }
  void add(ProbePair pair, double distance);

  struct Mean {
    double sum = 0, squares = 0;
    double pairs = 0;
    double value() const { return sum / pairs; }
    double variance() const { return squares / pairs - value() * value(); }
  };
  /// Over the pairs that have a host in each of the two sets; of a set with itself, over those inside.
  Mean between(HostSet one, HostSet other) const;

  /// The sets that come about when the two nearest, by the average over all their pairs, are joined over and over, in
  /// that order; without single hosts and without the set of all.
  std::vector<HostSet> clusters() const;

 private:
  std::size_t at(std::uint32_t a, std::uint32_t b) const { return std::size_t{a} * hosts_ + b; }
  std::uint32_t hosts_;
  std::vector<double> sum_, count_;
};

}  // namespace tacc

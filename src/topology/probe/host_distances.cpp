#include "topology/probe/host_distances.hpp"

#include <utility>

namespace tacc {

HostDistances::HostDistances(std::uint32_t hosts)
    : hosts_(hosts), sum_(std::size_t{hosts} * hosts), count_(std::size_t{hosts} * hosts) {}

void HostDistances::add(ProbePair pair, double distance) {
  for (const std::size_t place : {at(pair.a, pair.b), at(pair.b, pair.a)}) {
    sum_[place] += distance;
    count_[place] += 1;
  }
}

HostDistances::Mean HostDistances::between(HostSet one, HostSet other) const {
  Mean mean;
  for (std::uint32_t a = 0; a < hosts_; ++a) {
    if (!has(one, a)) continue;
    for (std::uint32_t b = 0; b < hosts_; ++b) {
      if (!has(other, b) || count_[at(a, b)] == 0 || (one == other && b <= a)) continue;
      const double distance = sum_[at(a, b)] / count_[at(a, b)];
      mean.sum += distance;
      mean.squares += distance * distance;
      mean.pairs += 1;
    }
  }
  return mean;
}

std::vector<HostSet> HostDistances::clusters() const {
  std::vector<HostSet> sets, found;
  // Sums over the pairs between each two sets; the second of two that were joined is empty from then on.
  std::vector<double> sums(sum_.size()), pairs(sum_.size());
  for (std::uint32_t a = 0; a < hosts_; ++a) {
    sets.push_back(setOf(a));
    for (std::uint32_t b = 0; b < hosts_; ++b) {
      if (count_[at(a, b)] == 0) continue;
      sums[at(a, b)] = sum_[at(a, b)] / count_[at(a, b)];
      pairs[at(a, b)] = 1;
    }
  }
  for (std::uint32_t left = hosts_; left > 2; --left) {
    std::uint32_t nearA = 0, nearB = 0;
    double nearest = 0;
    for (std::uint32_t a = 0; a < hosts_; ++a) {
      for (std::uint32_t b = a + 1; b < hosts_; ++b) {
        if (sets[a] == 0 || sets[b] == 0 || pairs[at(a, b)] == 0) continue;
        const double mean = sums[at(a, b)] / pairs[at(a, b)];
        if (nearB != 0 && mean >= nearest) continue;
        nearest = mean;
        nearA = a;
        nearB = b;
      }
    }
    if (nearB == 0) break;
    sets[nearA] |= std::exchange(sets[nearB], 0);
    for (std::uint32_t c = 0; c < hosts_; ++c) {
      for (std::vector<double>* figures : {&sums, &pairs}) {
        (*figures)[at(nearA, c)] += (*figures)[at(nearB, c)];
        (*figures)[at(c, nearA)] = (*figures)[at(nearA, c)];
      }
    }
    found.push_back(sets[nearA]);
  }
  return found;
}

}  // namespace tacc

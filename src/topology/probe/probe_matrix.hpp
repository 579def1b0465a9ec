// What was measured between pairs of hosts, with holes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace tacc {

/// Hosts by number, a below b once it is in the matrix.
struct ProbePair {
  std::uint32_t a = 0, b = 0;
  bool operator==(const ProbePair&) const = default;
  bool operator<(const ProbePair& other) const { return std::pair(a, b) < std::pair(other.a, other.b); }
};

inline ProbePair orderedPair(ProbePair pair) noexcept { return {std::min(pair.a, pair.b), std::max(pair.a, pair.b)}; }

/// What a pair measured. 0: not measured, or it failed.
struct ProbeSample {
  double latency = 0;    // seconds of a short message, one way
  double bandwidth = 0;  // bytes/s of a long one
};

/// The samples of a network of `hosts`. Of a pair that was measured again the lowest latency counts, since noise only
/// adds; of its bandwidths the geometric mean, since what shows the groups is the load, which differs from time to
/// time. The first of several does not: fresh connections are slow.
class ProbeMatrix {
 public:
  explicit ProbeMatrix(std::uint32_t hosts = 0) : hosts_(hosts) {}

  std::uint32_t hosts() const noexcept { return hosts_; }

  void add(ProbePair pair, ProbeSample sample) { samples_[keyOf(pair)].push_back(sample); }

  bool has(ProbePair pair) const { return samples_.contains(keyOf(pair)); }

  /// All pairs that were measured, in order.
  std::vector<std::pair<ProbePair, ProbeSample>> all() const;

  /// Whether the pairs that were near when they met once were near when they met again. Where ranks wait for
  /// processors they are not, and latencies tell of the scheduler. True where no pair was measured again.
  bool latenciesTell() const;

  /// How far the least latency of half of a pair's samples is from that of the other half, the root of the mean square
  /// of the logarithms; what is not known is taken for a tenth.
  double latencyNoise() const;

 private:
  static std::uint64_t keyOf(ProbePair pair) noexcept {
    return std::uint64_t{std::min(pair.a, pair.b)} << 32 | std::max(pair.a, pair.b);
  }
  std::uint32_t hosts_;
  std::map<std::uint64_t, std::vector<ProbeSample>> samples_;  // in the order of measuring
};

}  // namespace tacc

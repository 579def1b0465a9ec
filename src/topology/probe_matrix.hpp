// What was measured between pairs of hosts, with holes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace tacc {

/// Hosts by number, a below b once it is in the matrix.
struct ProbePair {
  std::uint32_t a = 0, b = 0;
  bool operator==(const ProbePair&) const = default;
};

/// What a pair measured. 0: not measured, or it failed.
struct ProbeSample {
  double latency = 0;    // seconds of a short message, one way
  double bandwidth = 0;  // bytes/s of a long one
};

/// The samples of a network of `hosts`. A pair that is measured again keeps the lower latency, since noise only adds,
/// and the lower bandwidth, since what shows the groups is the load.
class ProbeMatrix {
 public:
  explicit ProbeMatrix(std::uint32_t hosts = 0) : hosts_(hosts) {}

  std::uint32_t hosts() const noexcept { return hosts_; }

  void add(ProbePair pair, ProbeSample sample) {
    ProbeSample& known = samples_[keyOf(pair)];
    const auto keepLower = [](double& value, double other) {
      if (other > 0 && (value == 0 || other < value)) value = other;
    };
    keepLower(known.latency, sample.latency);
    keepLower(known.bandwidth, sample.bandwidth);
  }

  bool has(ProbePair pair) const { return samples_.contains(keyOf(pair)); }

  /// All pairs that were measured, in order.
  std::vector<std::pair<ProbePair, ProbeSample>> all() const {
    std::vector<std::pair<ProbePair, ProbeSample>> result;
    result.reserve(samples_.size());
    for (const auto& [key, sample] : samples_) {
      result.push_back({{static_cast<std::uint32_t>(key >> 32), static_cast<std::uint32_t>(key)}, sample});
    }
    std::sort(result.begin(), result.end(), [](const auto& x, const auto& y) {
      return std::pair(x.first.a, x.first.b) < std::pair(y.first.a, y.first.b);
    });
    return result;
  }

 private:
  static std::uint64_t keyOf(ProbePair pair) noexcept {
    return std::uint64_t{std::min(pair.a, pair.b)} << 32 | std::max(pair.a, pair.b);
  }
  std::uint32_t hosts_;
  std::unordered_map<std::uint64_t, ProbeSample> samples_;
};

}  // namespace tacc

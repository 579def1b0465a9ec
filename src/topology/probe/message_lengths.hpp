// How long messages of a survey must be.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "topology/probe/probe_matrix.hpp"

namespace tacc {

/// A message of a survey is sent in pieces of this length.
inline constexpr std::size_t probePieceBytes = 64 * 1024;

/// What is known of a network before anything of it is measured in earnest: what pairs of hosts carry, bytes/s.
struct ProbeSpeeds {
  double slowest = 0, fastest = 0;  // 0: not known
};

/// Messages that take every pair about as long: of a message that is over too soon, most passes before the links hold
/// it back, and what others are given of a link that one has left says little of the time when both were on it.
class MessageLengths {
 public:
  explicit MessageLengths(ProbeSpeeds speeds) : speeds_(speeds) {}

  /// Of each pair's message in a round; `alone`: when nobody else sends. Where not all pairs have met, all are alike.
  std::vector<std::size_t> of(std::span<const ProbePair> pairs, bool alone) const {
    std::vector<std::size_t> lengths;
    for (const ProbePair& pair : pairs) {
      const auto known = most_.find(orderedPair(pair));
      if (known == most_.end() || known->second == 0)
        return std::vector<std::size_t>(pairs.size(), lengthFor(alone ? speeds_.fastest : speeds_.slowest));
      lengths.push_back(lengthFor(known->second));
    }
    return lengths;
  }

  /// What the pair's message got.
  void saw(ProbePair pair, double bytesPerSecond) {
    double& most = most_[orderedPair(pair)];
    most = std::max(most, bytesPerSecond);
  }

 private:
  static constexpr double seconds = 25e-3;  // latencies do not count then
  static constexpr double leastBytes = 384 * 1024, mostBytes = 4 * 1024 * 1024;

  static std::size_t lengthFor(double bytesPerSecond) {
    const double wanted = std::clamp(bytesPerSecond * seconds, leastBytes, mostBytes);
    return static_cast<std::size_t>(wanted) / probePieceBytes * probePieceBytes;
  }

  ProbeSpeeds speeds_;
  std::map<ProbePair, double> most_;
};

}  // namespace tacc

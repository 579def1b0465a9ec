#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tacc/tacc.h"
#include "worker/collectives.hpp"

namespace tacc::bench {

/// How long single calls took, of all ranks; in microseconds.
struct CallTimes {
  double least = 0, most = 0, mean = 0, median = 0, percentile90 = 0, percentile99 = 0;
  double variation = 0;  ///< standard deviation in percent of the mean

  /// `seconds` of each call; empty gives zeros.
  static CallTimes of(std::vector<double> seconds);
};

/// What one contestant needed for one call.
struct Outcome {
  double microseconds = 0;
  int64_t wrong = 0;  ///< over all ranks
  std::string algorithm;
  double cpuSeconds = 0;  ///< of processor time per call and rank
  std::optional<CallTimes> calls = std::nullopt;
};

/// Another contestant's outcome; nothing if it does not offer the call.
struct PeerOutcome {
  std::string name;
  std::optional<Outcome> outcome;
};

/// One row of the table.
struct Row {
  const Collective* collective = nullptr;
  size_t bytes = 0;
  size_t count = 0;
  taccDataType_t type = taccFloat32;
  taccRedOp_t op = taccSum;
  int root = 0;
  int ranks = 0;
  int iterations = 0;  ///< of tacc, over all repetitions
  Outcome outOfPlace;
  std::optional<Outcome> inPlace;
  std::vector<PeerOutcome> peers;
  std::optional<Outcome> bound;
  double stolen = 0;  ///< share of the processors' time that the hypervisor gave to other machines meanwhile

  const char* typeLabel() const;
  const char* opLabel() const;
  int rootLabel() const { return collective->rooted ? root : -1; }
  /// 1e9 bytes per second, by the size column.
  double algorithmBandwidth(double microseconds) const;
  double busBandwidth(double microseconds) const;
  /// How many times as long as tacc the other took.
  double ratio(const Outcome& other) const { return other.microseconds / outOfPlace.microseconds; }
  /// Wrong elements of all contestants.
  int64_t wrong() const;
};

}  // namespace tacc::bench

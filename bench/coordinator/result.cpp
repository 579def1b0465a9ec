#include "coordinator/result.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "worker/element.hpp"

namespace tacc::bench {

CallTimes CallTimes::of(std::vector<double> seconds) {
  CallTimes times;
  if (seconds.empty()) return times;
  std::ranges::sort(seconds);
  const auto count = static_cast<double>(seconds.size());
  // The least time that `percent` of the calls do not exceed.
  const auto percentile = [&](double percent) {
    const auto rank = static_cast<size_t>(std::ceil(percent / 100 * count));
    return seconds[std::clamp<size_t>(rank, 1, seconds.size()) - 1] * 1e6;
  };
  const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / count;
  double squares = 0;
  for (const double value : seconds) squares += (value - mean) * (value - mean);
  times.least = seconds.front() * 1e6;
  times.most = seconds.back() * 1e6;
  times.mean = mean * 1e6;
  times.median = percentile(50);
  times.percentile90 = percentile(90);
  times.percentile99 = percentile(99);
  times.variation = mean > 0 ? 100 * std::sqrt(squares / count) / mean : 0;
  return times;
}

const char* Row::typeLabel() const { return collective->kind == Kind::barrier ? "none" : typeName(type); }

const char* Row::opLabel() const { return collective->reduces ? opName(op) : "none"; }

double Row::algorithmBandwidth(double microseconds) const {
  return microseconds > 0 ? static_cast<double>(bytes) / microseconds / 1e3 : 0;
}

double Row::busBandwidth(double microseconds) const {
  return algorithmBandwidth(microseconds) * collective->busFactor(ranks);
}

int64_t Row::wrong() const {
  int64_t sum = outOfPlace.wrong + (inPlace ? inPlace->wrong : 0);
  for (const PeerOutcome& peer : peers)
    if (peer.outcome) sum += peer.outcome->wrong;
  return sum;
}

}  // namespace tacc::bench

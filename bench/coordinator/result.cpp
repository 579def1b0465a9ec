#include "coordinator/result.hpp"

#include "worker/element.hpp"

namespace tacc::bench {

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

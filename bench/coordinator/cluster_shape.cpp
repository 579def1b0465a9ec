#include "coordinator/cluster_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <stdexcept>

namespace tacc::bench {
namespace {

/// What tools/cluster lets a link pass at once: a millisecond's worth, and this at least.
constexpr size_t leastBurst = 72 << 10, burstPerMbit = 125;
/// A link fills up again while calls empty it, and not every call sends all its bytes over every link.
constexpr size_t burstsSent = 8;
constexpr size_t mostCallsPerBurst = 64;

double secondsThrough(int mbit, size_t ends, size_t bytes) {
  if (mbit == 0 || ends < 2) return 0;
  const double share = 2.0 * static_cast<double>(ends - 1) / static_cast<double>(ends);
  return share * static_cast<double>(bytes) * 8 / (mbit * 1e6);
}

}  // namespace

ClusterShape ClusterShape::parse(const std::string& text) {
  ClusterShape shape;
  int end = 0;
  const int found = std::sscanf(text.c_str(), "%5d,%5d,%6d,%6d%n", &shape.supernodes, &shape.hosts, &shape.hostMbit,
                                &shape.uplinkMbit, &end);
  if (found != 4 || text[static_cast<size_t>(end)] != '\0' ||
      std::min({shape.supernodes, shape.hosts, shape.hostMbit + 1, shape.uplinkMbit + 1}) < 1)
    throw std::invalid_argument(fmt::format(
        "--cluster \"{}\" is not SUPERNODES,HOSTS_PER_SUPERNODE,HOST_MBIT,UPLINK_MBIT, such as 2,4,200,200", text));
  return shape;
}

std::string ClusterShape::text() const { return fmt::format("{},{},{},{}", supernodes, hosts, hostMbit, uplinkMbit); }

double allReduceNetworkBound(const ClusterShape& shape, std::vector<int> hostsOfRanks, size_t bytes) {
  std::set<int> hosts(hostsOfRanks.begin(), hostsOfRanks.end());
  std::set<int> supernodes;
  for (const int host : hosts) supernodes.insert(shape.supernodeOf(host));
  return std::max(secondsThrough(shape.hostMbit, hosts.size(), bytes),
                  secondsThrough(shape.uplinkMbit, supernodes.size(), bytes));
}

int callsPerBurst(const ClusterShape& shape, size_t bytes) {
  const int rate = std::max(shape.hostMbit, shape.uplinkMbit);
  if (rate == 0) return 0;
  const size_t burst = std::max(leastBurst, static_cast<size_t>(rate) * burstPerMbit);
  return static_cast<int>(std::min(mostCallsPerBurst, burstsSent * burst / std::max<size_t>(bytes, 1)));
}

}  // namespace tacc::bench

#include "support/cluster_shape.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <stdexcept>

#include "support/process.hpp"

namespace tacc::tools {
namespace {

/// What tools/cluster lets a link pass at once: a millisecond's worth, and this at least.
constexpr double leastBurst = 72 << 10, burstPerMbit = 125;
/// A link fills up again while calls empty it, and not every call sends all its bytes over every link.
constexpr double burstsSent = 8, mostCallsPerBurst = 64;
constexpr std::chrono::seconds shapePatience{60};

[[noreturn]] void reject(const std::string& text, const std::string& why) {
  throw std::invalid_argument(fmt::format(
      "--cluster \"{}\" is neither SUPERNODES,HOSTS_PER_SUPERNODE,HOST_MBIT,UPLINK_MBIT, such as 2,4,200,200, nor a "
      "topology file{}",
      text, why));
}

std::vector<ClusterShape::Host> equalHosts(int supernodes, int hosts, int hostMbit, int uplinkMbit) {
  std::vector<ClusterShape::Host> all;
  for (int i = 0; i < supernodes * hosts; ++i) {
    const std::string name = fmt::format("tacc{}", i + 1);
    all.push_back({name, {{name, 1.0 * hostMbit}, {fmt::format("leaf{}", i / hosts + 1), 1.0 * uplinkMbit}}});
  }
  return all;
}

/// From the lines of `cluster shape`: a host with its rate, then the switches that it is behind, in kbit/s.
std::vector<ClusterShape::Host> hostsOfFile(const std::string& file) {
  MemoryFile output("tacc_bench_shape");
  Process process({findTool("cluster"), "shape", file}, output);
  process.finish(std::chrono::steady_clock::now() + shapePatience);
  const std::string text = output.tail(SIZE_MAX);
  if (!process.succeeded()) reject(file, ": " + text);
  std::vector<ClusterShape::Host> hosts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    ClusterShape::Host host;
    ClusterShape::Link link;
    while (words >> link.name >> link.mbit) {
      link.mbit /= 1000;
      host.links.push_back(link);
    }
    if (host.links.empty()) reject(file, ": " + line);
    host.name = host.links.front().name;
    hosts.push_back(std::move(host));
  }
  return hosts;
}

}  // namespace

ClusterShape ClusterShape::parse(const std::string& text) {
  ClusterShape shape;
  shape.text_ = text;
  int supernodes = 0, hosts = 0, hostMbit = 0, uplinkMbit = 0, end = 0;
  const int found = std::sscanf(text.c_str(), "%5d,%5d,%6d,%6d%n", &supernodes, &hosts, &hostMbit, &uplinkMbit, &end);
  if (found == 4 && text[static_cast<size_t>(end)] == '\0') {
    if (std::min({supernodes, hosts, hostMbit + 1, uplinkMbit + 1}) < 1) reject(text, " that is there");
    shape.hosts_ = equalHosts(supernodes, hosts, hostMbit, uplinkMbit);
  } else {
    if (::access(text.c_str(), R_OK) != 0) reject(text, " that is there");
    shape.hosts_ = hostsOfFile(text);
  }
  return shape;
}

int callsPerBurst(const ClusterShape& shape, size_t bytes) {
  double rate = 0;
  for (const ClusterShape::Host& host : shape.hosts())
    for (const ClusterShape::Link& link : host.links) rate = std::max(rate, link.mbit);
  if (rate == 0) return 0;
  const double burst = std::max(leastBurst, rate * burstPerMbit);
  return static_cast<int>(
      std::min(mostCallsPerBurst, burstsSent * burst / static_cast<double>(std::max<size_t>(bytes, 1))));
}

}  // namespace tacc::tools

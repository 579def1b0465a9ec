#include "easgd/group_color.hpp"

#include <cstdint>

#include "core/error.hpp"
#include "topology/model/cores.hpp"

namespace tacc {
namespace {

enum class Obstacle : std::int32_t { none, severalDomains, noNetworkLevel };

struct ColorClaim {
  std::int32_t color = 0;
  Obstacle obstacle = Obstacle::none;
};

ColorClaim membershipOf(const Standing& standing, const EasgdSettings& settings) {
  constexpr int mostDomains = 1024;  // of a host
  switch (settings.group) {
    case taccEasgdGroupHost:
      return {standing.host, Obstacle::none};
    case taccEasgdGroupNuma:
      return {standing.host * mostDomains + standing.numaDomain % mostDomains,
              liesInOneDomain(allowedCores(), numaDomainOf) ? Obstacle::none : Obstacle::severalDomains};
    case taccEasgdGroupNetwork:
      return {standing.networkGroup, standing.networkGroups > 1 ? Obstacle::none : Obstacle::noNetworkLevel};
    case taccEasgdGroupColor:
      break;
  }
  return {settings.color, Obstacle::none};
}

[[noreturn]] void refuse(std::size_t rank, Obstacle obstacle) {
  if (obstacle == Obstacle::severalDomains)
    fail(taccInvalidUsage,
         "groups by NUMA domain: rank {} may run in several domains of its host, so it belongs to none; bind each rank "
         "to one (numactl, taskset, or the launcher's binding), or group by host or color",
         rank);
  fail(taccInvalidUsage,
       "groups by network: the topology has no level above the hosts that rank {} would belong to; name one "
       "(TACC_TOPO_FILE), or group by host or color",
       rank);
}

}  // namespace

bool liesInOneDomain(const cpu_set_t& cores, const std::function<int(const cpu_set_t&)>& domainOf) {
  const int first = domainOf(cores);
  cpu_set_t one;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &cores)) continue;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    if (domainOf(one) != first) return false;
  }
  return true;
}

std::vector<int> gatherGroupColors(Communicator& all, const EasgdSettings& settings) {
  const ColorClaim mine = membershipOf(all.standing(), settings);
  std::vector<ColorClaim> found(static_cast<std::size_t>(all.ranks()));
  all.run({.collective = Collective::allGather,
           .send = &mine,
           .receive = found.data(),
           .count = sizeof mine,
           .type = taccUint8});
  std::vector<int> colors;
  for (const ColorClaim& one : found) {
    if (one.obstacle != Obstacle::none) refuse(colors.size(), one.obstacle);
    colors.push_back(one.color);
  }
  return colors;
}

}  // namespace tacc

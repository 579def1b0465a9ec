#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "draw.hpp"
#include "drawn_network.hpp"
#include "topology/model/draft.hpp"

namespace tacc::test {

Topology drawNarrowHosts(std::uint64_t number, int mostHosts) {
  Draw draw(number + 0x0a220);
  const double link = draw.oneOf({100, 500, 1000, 25'000, 100'000}) * 1e6 / 8;
  const double latency = draw.logUniform(5e-6, 5e-5);
  TopologyDraft draft;
  draft.node.uplink = link;
  draft.root.bandwidth = link;
  draft.root.alpha = latency * draw.logUniform(1, 4);
  LevelDraft level;
  level.level.alpha = latency;
  level.level.bandwidth = link;
  const int groups = draw.between(1, 4), most = std::max(2, mostHosts / groups), usual = draw.between(2, most);
  const bool isEqual = draw.chance(0.5);
  const double uplink = draw.logUniform(0.5, 2);
  int ofNarrowGroup = 0;
  for (int group = 0; group < groups || draft.hosts.size() < 4; ++group) {
    const int size = isEqual ? usual : draw.between(1, most);
    for (int host = 0; host < size; ++host) {
      level.groupOf.push_back(std::to_string(group));
      draft.hosts.push_back(fmt::format("n{:02}", draft.hosts.size()));
    }
    level.uplinks[std::to_string(group)] = size * link * uplink;
    if (group == 0) ofNarrowGroup = size;
  }
  const int hosts = static_cast<int>(draft.hosts.size());
  const bool isWholeGroup = draw.chance(0.2) && ofNarrowGroup * 2 < hosts;
  const int narrow = isWholeGroup ? ofNarrowGroup : draw.between(1, std::min(3, hosts / 3));
  for (int n = 0; n < narrow; ++n) {
    const int host = isWholeGroup ? n : draw.below(hosts);
    draft.hostUplinks[draft.hosts[static_cast<std::size_t>(host)]] = link * draw.logUniform(1.0 / 12, 0.6);
  }
  if (groups > 1) draft.levels.push_back(std::move(level));
  return build(std::move(draft));
}

}  // namespace tacc::test

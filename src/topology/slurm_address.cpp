#include <algorithm>

#include "base/error.hpp"
#include "topology/draft.hpp"
#include "topology/host_list.hpp"
#include "topology/slurm.hpp"

namespace tacc {
namespace {

std::vector<std::string> partsOf(std::string_view address, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= address.size();) {
    const std::size_t end = std::min(address.find(separator, begin), address.size());
    parts.emplace_back(address.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

Topology topologyFromSlurmAddresses(std::span<const HostClues> hosts) {
  TopologyDraft draft;
  std::vector<std::vector<std::string>> addresses;  // of each host, from the root to the last switch
  for (const HostClues& host : hosts) {
    if (host.slurmAddress.empty()) return {};
    // A node's name may have dots itself, so the pattern, whose last part is "node", says how many switches come first.
    const std::size_t switches = host.slurmPattern.empty() ? partsOf(host.slurmAddress, '.').size() - 1
                                                           : partsOf(host.slurmPattern, '.').size() - 1;
    std::vector<std::string> parts = partsOf(host.slurmAddress, '.');
    if (parts.size() <= switches || switches > mostLevels) {
      fail(taccInvalidArgument, "host {}: SLURM_TOPOLOGY_ADDR=\"{}\" does not fit SLURM_TOPOLOGY_ADDR_PATTERN=\"{}\"",
           host.host, shownText(host.slurmAddress), shownText(host.slurmPattern));
    }
    parts.resize(switches);
    if (!addresses.empty() && addresses.front().size() != switches) {
      fail(taccInvalidArgument, "SLURM_TOPOLOGY_ADDR has {} switches for host {}, but {} for host {}",
           addresses.front().size(), draft.hosts.front(), switches, host.host);
    }
    addresses.push_back(std::move(parts));
    draft.hosts.push_back(host.host);
  }
  if (hosts.empty() || addresses.front().empty()) return {};
  for (std::size_t level = addresses.front().size(); level-- > 0;) {
    LevelDraft groups;
    groups.level.kind = draft.levels.empty() ? LevelKind::leaf : LevelKind::group;
    groups.level.name = draft.levels.empty() ? "leaf switch" : "switch";
    bool isRoot = level == 0;
    for (const std::vector<std::string>& address : addresses) {
      // With all that is above, since only the whole way is certain to be one switch. "s[0-1]": several joined ones.
      std::string path = address[0];
      for (std::size_t l = 1; l <= level; ++l) path += '.' + address[l];
      isRoot = isRoot && path == addresses.front()[0];
      groups.groupOf.push_back(std::move(path));
    }
    if (isRoot)
      draft.root.name = addresses.front()[0];
    else
      draft.levels.push_back(std::move(groups));
  }
  return build(std::move(draft));
}

}  // namespace tacc

// The source "sunway". A file of it is a list of hosts.
#include "core/error.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/sources.hpp"
#include "topology/sources/sunway.hpp"
#include "topology/sources/text_file.hpp"

namespace tacc {

bool recognisesSunway(std::string_view text) {
  const std::vector<std::string_view> words = wordsOf(text.substr(0, text.find('\n')));
  return words.size() == 1 && (isSunwayHost(words[0]) || words[0].starts_with("vn["));
}

Topology readSunwayFile(std::string_view text, const std::string& origin) {
  std::vector<std::string> hosts;
  std::size_t number = 0;
  for (const std::string_view line : linesOf(text)) {
    ++number;
    if (wordsOf(line).empty()) continue;
    try {
      for (std::string& host : expandHosts(line, mostHosts - hosts.size())) hosts.push_back(std::move(host));
    } catch (const Error& error) {
      fail(error.result(), "{}:{}: {}", origin, number, error.what());
    }
  }
  Topology topology = topologyFromSunwayHosts(hosts);
  if (topology.hosts() == 0) fail(taccInvalidArgument, "{}: not all hosts are called like vn000123", origin);
  return topology;
}

std::optional<Finding> lookForSunway(const SourceContext& context) {
  std::vector<std::string> hosts;
  for (const HostClues& host : context.hosts) hosts.push_back(host.host);
  Topology topology = topologyFromSunwayHosts(hosts);
  if (topology.hosts() == 0) return std::nullopt;
  return Finding{"sunway", "host names", std::move(topology)};
}

}  // namespace tacc

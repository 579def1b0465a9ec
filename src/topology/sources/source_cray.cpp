// The source "cray". A file of it lists hosts, one a line: a name, then cname, xname or address of a Slingshot card.
// With cnames what `rtr --interconnect` prints may stand in it, too.
#include "core/error.hpp"
#include "core/parse.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/cray.hpp"
#include "topology/sources/cray_links.hpp"
#include "topology/sources/sources.hpp"
#include "topology/sources/text_file.hpp"

namespace tacc {
namespace {

std::vector<std::vector<std::string_view>> rowsOf(std::string_view text) {
  std::vector<std::vector<std::string_view>> rows;
  for (const std::string_view line : linesOf(text)) {
    std::vector<std::string_view> words = wordsOf(line.substr(0, line.find('#')));
    rows.push_back(std::move(words));
  }
  return rows;
}

bool isPlace(std::string_view word) { return parseCname(word) || parseXname(word) || parseSlingshotMac(word); }

void addLink(CrayLinks& links, const std::vector<std::string_view>& words, const std::string& origin,
             std::size_t number) {
  try {
    links.add(words);
  } catch (const Error& error) {
    fail(error.result(), "{}:{}: {}", origin, number, error.what());
  }
}

}  // namespace

bool recognisesCray(std::string_view text) {
  for (const auto& words : rowsOf(text.substr(0, 4096))) {
    if (!words.empty()) return CrayLinks::isLink(words) || (words.size() >= 2 && isPlace(words[1]));
  }
  return false;
}

Topology readCrayFile(std::string_view text, const std::string& origin) {
  std::vector<HostClues> hosts;
  CrayLinks links;
  std::size_t number = 0;
  for (const auto& words : rowsOf(text)) {
    ++number;
    if (words.empty()) continue;
    if (CrayLinks::isLink(words)) {
      addLink(links, words, origin, number);
      continue;
    }
    HostClues& host = hosts.emplace_back();
    host.host = words[0];
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (parseCname(words[i]))
        host.cname = words[i];
      else if (parseXname(words[i]))
        host.xname = words[i];
      else if (parseSlingshotMac(words[i]))
        host.macs.emplace_back(words[i]);
      else
        fail(taccInvalidArgument, "{}:{}: \"{}\" is no cname, xname or Slingshot address", origin, number,
             shownText(words[i]));
    }
    if (words.size() < 2)
      fail(taccInvalidArgument, "{}:{}: the host {} has no place", origin, number, shownText(words[0]));
    if (hosts.size() > mostHosts) fail(taccInvalidArgument, "{}: more than {} hosts", origin, mostHosts);
  }
  try {
    if (!links.isEmpty() && hosts.empty())
      fail(taccInvalidArgument, "links alone name no hosts; put a line with name and cname of each before them");
    Topology topology = links.isEmpty() ? topologyFromCrayNames(hosts) : links.topologyOf(hosts);
    if (topology.hosts() == 0) topology = topologyFromSlingshot(hosts);
    if (topology.hosts() == 0) {
      fail(taccInvalidArgument, "not all hosts have the same kind of place: cnames, xnames or Slingshot addresses");
    }
    return topology;
  } catch (const Error& error) {
    fail(error.result(), "{}: {}", origin, error.what());
  }
}

std::optional<Finding> lookForCray(const SourceContext& context) {
  Topology topology = topologyFromCrayNames(context.hosts);
  if (topology.hosts() > 0) {
    return Finding{"cray", context.hosts.front().cname.empty() ? "xname" : "cname", std::move(topology)};
  }
  topology = topologyFromSlingshot(context.hosts);
  if (topology.hosts() == 0) return std::nullopt;
  return Finding{"cray", "Slingshot addresses", std::move(topology)};
}

}  // namespace tacc

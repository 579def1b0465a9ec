// The source "cray". A file of it lists hosts, one a line: a name, then cname, xname or address of a Slingshot card.
// With cnames what `rtr --interconnect` prints may stand in it, too; of a Slingshot network what `cxi_stat` prints of
// cards, and the table of `show fabric`.
#include "core/error.hpp"
#include "core/parse.hpp"
#include "core/text_file.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/cray.hpp"
#include "topology/sources/cray_links.hpp"
#include "topology/sources/slingshot.hpp"
#include "topology/sources/sources.hpp"

namespace tacc {
namespace {

std::string_view beforeHash(std::string_view line) { return line.substr(0, line.find('#')); }

bool isPlace(std::string_view word) { return parseCname(word) || parseXname(word) || parseSlingshotMac(word); }

/// The lines of a file: hosts, and what other programs print.
class CrayFile {
 public:
  void take(std::string_view line) {
    const std::vector<std::string_view> words = wordsOf(line);
    if (words.empty()) return;
    if (SlingshotLinks::isLine(line)) return fabric_.add(line);
    if (CrayLinks::isLink(words)) return links_.add(words);
    if (CxiStat::isLine(words)) return cards_.add(words);
    takeHost(words);
  }

  Topology topology() {
    cards_.addTo(hosts_);
    if ((!links_.isEmpty() || !fabric_.isEmpty()) && hosts_.empty())
      fail(taccInvalidArgument, "links alone name no hosts; put a line with name and place of each before them");
    if (!fabric_.isEmpty()) return fabric_.topologyOf(hosts_);
    Topology topology = links_.isEmpty() ? topologyFromCrayNames(hosts_) : links_.topologyOf(hosts_);
    if (topology.hosts() == 0) topology = topologyFromSlingshot(hosts_);
    if (topology.hosts() == 0)
      fail(taccInvalidArgument, "not all hosts have the same kind of place: cnames, xnames or Slingshot addresses");
    return topology;
  }

 private:
  void takeHost(const std::vector<std::string_view>& words) {
    HostClues host;
    host.host = words[0];
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (parseCname(words[i]))
        host.cname = words[i];
      else if (parseXname(words[i]))
        host.xname = words[i];
      else if (parseSlingshotMac(words[i]))
        host.cards.push_back({std::string(words[i])});
      else
        fail(taccInvalidArgument, "\"{}\" is no cname, xname or Slingshot address", shownText(words[i]));
    }
    if (words.size() < 2) fail(taccInvalidArgument, "the host {} has no place", shownText(words[0]));
    if (hosts_.size() >= mostHosts) fail(taccInvalidArgument, "more than {} hosts", mostHosts);
    hosts_.push_back(std::move(host));
  }

  std::vector<HostClues> hosts_;
  CrayLinks links_;
  CxiStat cards_;
  SlingshotLinks fabric_;
};

bool recognisesCray(std::string_view text) {
  for (const std::string_view line : linesOf(text.substr(0, 4096))) {
    const std::vector<std::string_view> words = wordsOf(beforeHash(line));
    if (words.empty()) continue;
    return CrayLinks::isLink(words) || (CxiStat::isLine(words) && (words[1] == "Device:" || words[0] == "Device:")) ||
           (words.size() >= 2 && isPlace(words[1]));
  }
  return false;
}

Topology readCrayFile(std::string_view text, const std::string& origin) {
  CrayFile file;
  std::size_t number = 0;
  for (const std::string_view line : linesOf(text)) {
    ++number;
    try {
      file.take(beforeHash(line));
    } catch (const Error& error) {
      fail(error.result(), "{}:{}: {}", origin, number, error.what());
    }
  }
  try {
    return file.topology();
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

}  // namespace

TopologySource craySource() {
  return {.name = {},
          .summary = "names of places in Cray machines: cname, xname, addresses of Slingshot cards",
          .library = "",
          .recognises = recognisesCray,
          .read = readCrayFile,
          .look = lookForCray};
}

}  // namespace tacc

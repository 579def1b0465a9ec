// The source "hwloc". A file of it is XML of lstopo, or one line of hwloc's synthetic description.
#include <cctype>

#include "topology/draft.hpp"
#include "topology/hwloc_node.hpp"
#include "topology/sources.hpp"
#include "topology/text_file.hpp"

namespace tacc {
namespace {

/// One host of which only the inside is known.
Topology alone(const std::string& host, NodeDescription node) {
  TopologyDraft draft;
  draft.hosts = {host};
  draft.nodes.push_back(std::move(node));
  draft.nodeOf = {0u};
  return build(std::move(draft));
}

/// The name that lstopo wrote down, else the file's.
std::string hostOf(std::string_view xml, const std::string& origin) {
  constexpr std::string_view mark = "name=\"HostName\" value=\"";
  const std::size_t at = xml.find(mark);
  const std::string_view rest = at == std::string_view::npos ? std::string_view() : xml.substr(at + mark.size(), 64);
  std::string name(rest.substr(0, rest.find('"')));
  if (name.empty() || name.find_first_of(" ,[]<>\n") != std::string::npos) {
    name = origin.substr(origin.find_last_of('/') + 1);
    name = name.substr(0, name.find('.'));
  }
  return name.empty() ? "host" : name;
}

}  // namespace

bool recognisesHwloc(std::string_view text) {
  if (text.substr(0, 4096).find("<topology") != std::string_view::npos) return true;
  const std::vector<std::string_view> words = wordsOf(text.substr(0, text.find('\n')));
  if (words.empty()) return false;
  const std::size_t colon = words.front().find(':');
  return colon != std::string_view::npos && colon > 0 && colon + 1 < words.front().size() &&
         std::isdigit(static_cast<unsigned char>(words.front()[colon + 1])) != 0 &&
         std::isalpha(static_cast<unsigned char>(words.front().front())) != 0;
}

Topology readHwlocFile(std::string_view text, const std::string& origin) {
  if (text.find("<topology") != std::string_view::npos) return alone(hostOf(text, origin), nodeFromXml(text, origin));
  const std::string line(text.substr(0, text.find('\n')));
  return alone(hostOf("", origin), nodeFromSynthetic(line, origin));
}

/// What the hosts told of themselves.
std::optional<Finding> lookForHwloc(const SourceContext& context) {
  TopologyDraft draft;
  for (const HostClues& host : context.hosts) {
    draft.hosts.push_back(host.host);
    draft.nodeOf.emplace_back();
    if (!host.node) continue;
    draft.nodeOf.back() = static_cast<std::uint32_t>(draft.nodes.size());
    draft.nodes.push_back(*host.node);
  }
  if (draft.nodes.empty()) return std::nullopt;
  return Finding{"hwloc", draft.hosts.size() == 1 ? "this host" : "all hosts", build(std::move(draft))};
}

}  // namespace tacc

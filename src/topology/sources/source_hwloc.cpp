// The source "hwloc". A file of it is XML of lstopo, or one line of hwloc's synthetic description.
#include <cctype>

#include "core/text_file.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/hwloc_node.hpp"
#include "topology/sources/sources.hpp"

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

/// The name that lstopo wrote down; empty if there is none.
std::string namedIn(std::string_view xml) {
  constexpr std::string_view mark = "name=\"HostName\" value=\"";
  const std::size_t at = xml.find(mark);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = xml.substr(at + mark.size(), 1 + longestHostName);
  const std::size_t end = rest.find('"');
  const std::string name(rest.substr(0, end));
  return end != std::string_view::npos && isHostName(name) ? name : "";
}

/// That of the file, where no other is known.
std::string nameOfFile(const std::string& origin) {
  const std::string file = origin.substr(origin.find_last_of('/') + 1);
  const std::string name = file.substr(0, file.find('.'));
  return isHostName(name) ? name : "host";
}

bool isXml(std::string_view text) { return text.find("<topology") != std::string_view::npos; }

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
  if (isXml(text)) {
    const std::string name = namedIn(text);
    return alone(name.empty() ? nameOfFile(origin) : name, nodeFromXml(text, origin));
  }
  const std::string line(text.substr(0, text.find('\n')));
  return alone(nameOfFile(origin), nodeFromSynthetic(line, origin));
}

bool namesHostInHwloc(std::string_view text) { return isXml(text) && !namedIn(text).empty(); }

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

}  // namespace

TopologySource hwlocSource() {
  return {.name = {},
          .summary = "the inside of hosts: cores, caches, NUMA nodes, sockets",
          .library = hasHwloc() ? "" : "libhwloc-dev",
          .recognises = recognisesHwloc,
          .read = readHwlocFile,
          .look = lookForHwloc,
          .namesHost = namesHostInHwloc};
}

}  // namespace tacc

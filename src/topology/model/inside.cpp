#include "topology/model/inside.hpp"

#include <unistd.h>

#include <array>
#include <optional>

#include "core/error.hpp"
#include "core/text_file.hpp"
#include "topology/sources/host_clues.hpp"
#include "topology/sources/hwloc_node.hpp"
#include "topology/sources/source_registry.hpp"

namespace tacc {
namespace {

std::string textOf(const NodeDescription& node) {
  HostClues clues;
  clues.host = "-";
  clues.node = node;
  return cluesToText(clues);
}

std::string ownName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// What a file says of this host, or of the only one that it tells of; empty: nothing.
std::string textIn(const std::string& path) {
  const std::string text = readText(path);
  const Topology topology = sourceOfFile(text, path).read(text, path);
  const std::optional<std::uint32_t> host = topology.findHost(ownName());
  const NodeDescription* node = nullptr;
  if (host)
    node = topology.node(*host);
  else if (topology.hosts() == 1)
    node = topology.node(0);
  return node == nullptr ? "" : textOf(*node);
}

}  // namespace

std::string describeInside(const std::vector<std::string>& files) {
  for (const std::string& path : files)
    if (std::string text = textIn(path); !text.empty()) return text;
  if (!hasHwloc()) return "";
  static const std::string here = textOf(wholeNodeHere());
  return here;
}

NodeDescription insideFromText(std::string_view text) {
  const HostClues clues = cluesFromText(text);
  if (!clues.node) fail(taccInvalidArgument, "what rank 0 says of the inside of this host has no cores");
  return *clues.node;
}

}  // namespace tacc

// The source "ibnet".
#include <algorithm>

#include "core/text_file.hpp"
#include "topology/sources/ibnet.hpp"
#include "topology/sources/sources.hpp"

namespace tacc {
namespace {

bool recognisesIbnet(std::string_view text) {
  return isOpareport(text) ||
         std::ranges::any_of(linesOf(text), [](std::string_view line) { return ibnetRecordOf(line).has_value(); });
}

Topology readIbnetFile(std::string_view text, const std::string& origin) {
  return topologyOfFabric(isOpareport(text) ? fabricFromOpareport(text, origin) : fabricFromIbnetdiscover(text, origin),
                          origin);
}

/// The subnet is asked only on demand: it takes long, and from all hosts at once it is a storm.
std::optional<Finding> lookForIbnet(const SourceContext& context) {
  if (!context.isForced) return std::nullopt;
  return Finding{"ibnet", "the subnet", topologyOfFabric(fabricNow(), "the subnet")};
}

}  // namespace

TopologySource ibnetSource() {
  return {.name = {},
          .summary =
              "an InfiniBand or Omni-Path network: a file that ibnetdiscover or opareport wrote, or the subnet "
              "itself when this source is forced",
          .library = hasIbnetdisc() ? "" : "libibnetdisc-dev",
          .recognises = recognisesIbnet,
          .read = readIbnetFile,
          .look = lookForIbnet};
}

}  // namespace tacc

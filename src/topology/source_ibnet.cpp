// The source "ibnet".
#include "topology/ibnet.hpp"
#include "topology/sources.hpp"

namespace tacc {

bool recognisesIbnet(std::string_view text) {
  for (const std::string_view mark : {"\nSwitch\t", "\nCa\t", "\nswitchguid=", "\ncaguid="}) {
    if (text.find(mark) != std::string_view::npos) return true;
  }
  return text.starts_with("Switch\t") || text.starts_with("Ca\t");
}

Topology readIbnetFile(std::string_view text, const std::string& origin) {
  return topologyOfFabric(fabricFromIbnetdiscover(text, origin), origin);
}

/// The subnet is asked only on demand: it takes long, and from all hosts at once it is a storm.
std::optional<Finding> lookForIbnet(const SourceContext& context) {
  if (!context.isForced) return std::nullopt;
  return Finding{"ibnet", "the subnet", topologyOfFabric(fabricNow(), "the subnet")};
}

}  // namespace tacc

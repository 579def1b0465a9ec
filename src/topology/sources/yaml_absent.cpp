#include "core/error.hpp"
#include "topology/sources/yaml_text.hpp"

namespace tacc {

// No file makes a node.
struct YamlTree {};

bool hasYaml() noexcept { return false; }

YamlNode parseYaml(std::string_view, const std::string& origin) {
  fail(taccInvalidUsage, "{}: this build reads no YAML; install libyaml-dev and build again", origin);
}

bool YamlNode::isSaid() const { return false; }
bool YamlNode::isText() const { return false; }
bool YamlNode::isList() const { return false; }
bool YamlNode::isTable() const { return false; }
std::size_t YamlNode::line() const { return 0; }
std::vector<YamlNode> YamlNode::items() const { return {}; }
std::vector<std::pair<YamlNode, YamlNode>> YamlNode::entries() const { return {}; }
YamlNode YamlNode::operator[](std::string_view) const { return {}; }

const std::string& YamlNode::text() const {
  static const std::string none;
  return none;
}

}  // namespace tacc

#include "topology/sources/yaml_text.hpp"

#include <yaml.h>

#include "core/error.hpp"
#include "core/loaded_library.hpp"

namespace tacc {

struct YamlTree {
  enum class Kind { null, text, list, table };
  struct Value {
    Kind kind = Kind::null;
    std::size_t line = 0;
    std::string text;
    std::vector<std::size_t> parts;  // of a table: key, value, key, value
  };
  std::vector<Value> values;
};

namespace {

constexpr std::size_t mostYamlBytes = std::size_t{8} << 20;

struct YamlLibrary {
  decltype(&yaml_parser_initialize) initialize;
  decltype(&yaml_parser_delete) finish;
  decltype(&yaml_parser_set_input_string) setInput;
  decltype(&yaml_parser_load) load;
  decltype(&yaml_document_delete) finishDocument;
  decltype(&yaml_document_get_root_node) root;
};

const YamlLibrary& yaml() {
  static const YamlLibrary functions = [] {
    const LoadedLibrary library("libyaml-0.so.2", "Debian's libyaml-0-2 has it");
    YamlLibrary found{};
    library.find(found.initialize, "yaml_parser_initialize");
    library.find(found.finish, "yaml_parser_delete");
    library.find(found.setInput, "yaml_parser_set_input_string");
    library.find(found.load, "yaml_parser_load");
    library.find(found.finishDocument, "yaml_document_delete");
    library.find(found.root, "yaml_document_get_root_node");
    return found;
  }();
  return functions;
}

class Document {
 public:
  Document() = default;
  ~Document() { yaml().finishDocument(&document_); }
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  yaml_document_t* get() noexcept { return &document_; }
  yaml_node_t* root() noexcept { return yaml().root(&document_); }

 private:
  yaml_document_t document_{};
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& origin) : origin_(origin) {
    if (yaml().initialize(&parser_) == 0) fail(taccSystemError, "{}: there is no memory to read it", origin);
    yaml().setInput(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~Parser() { yaml().finish(&parser_); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  /// The next document, which has no root behind the last.
  void read(Document& document) {
    if (yaml().load(&parser_, document.get()) != 0) return;
    if (parser_.error == YAML_MEMORY_ERROR) fail(taccSystemError, "{}: there is no memory to read it", origin_);
    const char* const problem = parser_.problem != nullptr ? parser_.problem : "it cannot be read";
    // What is wrong with single bytes has no line.
    if (parser_.error == YAML_READER_ERROR)
      fail(taccInvalidArgument, "{}: no YAML: {} (byte {})", origin_, problem, parser_.problem_offset);
    fail(taccInvalidArgument, "{}:{}: no YAML: {}", origin_, parser_.problem_mark.line + 1, problem);
  }

 private:
  yaml_parser_t parser_{};
  const std::string& origin_;
};

/// By YAML's core schema.
bool isNull(const yaml_node_t& node, std::string_view text) noexcept {
  return node.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
         (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL");
}

YamlTree::Value valueOf(const yaml_node_t& node) {
  YamlTree::Value value;
  value.line = node.start_mark.line + 1;
  const auto add = [&](int item) { value.parts.push_back(static_cast<std::size_t>(item) - 1); };
  if (node.type == YAML_SEQUENCE_NODE) {
    value.kind = YamlTree::Kind::list;
    for (const int* item = node.data.sequence.items.start; item != node.data.sequence.items.top; ++item) add(*item);
  } else if (node.type == YAML_MAPPING_NODE) {
    value.kind = YamlTree::Kind::table;
    for (const auto* pair = node.data.mapping.pairs.start; pair != node.data.mapping.pairs.top; ++pair) {
      add(pair->key);
      add(pair->value);
    }
  } else if (node.type == YAML_SCALAR_NODE) {
    value.text.assign(reinterpret_cast<const char*>(node.data.scalar.value), node.data.scalar.length);
    value.kind = isNull(node, value.text) ? YamlTree::Kind::null : YamlTree::Kind::text;
  }
  return value;
}

}  // namespace

bool hasYaml() noexcept { return true; }

YamlNode parseYaml(std::string_view text, const std::string& origin) {
  if (text.size() > mostYamlBytes) fail(taccInvalidArgument, "{}: larger than {} MiB", origin, mostYamlBytes >> 20);
  Parser parser(text, origin);
  Document document;
  parser.read(document);
  if (document.root() == nullptr) return {};
  const auto tree = std::make_shared<YamlTree>();
  const auto& nodes = document.get()->nodes;  // the root is the first
  tree->values.reserve(static_cast<std::size_t>(nodes.top - nodes.start));
  for (const yaml_node_t* node = nodes.start; node != nodes.top; ++node) tree->values.push_back(valueOf(*node));
  Document second;
  parser.read(second);
  if (const yaml_node_t* const root = second.root()) {
    fail(taccInvalidArgument, "{}:{}: a second document begins; a topology.yaml is one list of topologies", origin,
         root->start_mark.line + 1);
  }
  return {tree, 0};
}

bool YamlNode::isSaid() const {
  return tree_ && tree_->values[index_].kind != YamlTree::Kind::null && !(isText() && text().empty());
}
bool YamlNode::isText() const { return tree_ && tree_->values[index_].kind == YamlTree::Kind::text; }
bool YamlNode::isList() const { return tree_ && tree_->values[index_].kind == YamlTree::Kind::list; }
bool YamlNode::isTable() const { return tree_ && tree_->values[index_].kind == YamlTree::Kind::table; }

const std::string& YamlNode::text() const {
  static const std::string none;
  return isText() ? tree_->values[index_].text : none;
}

std::size_t YamlNode::line() const { return tree_ ? tree_->values[index_].line : 0; }

std::vector<YamlNode> YamlNode::items() const {
  std::vector<YamlNode> result;
  if (isList())
    for (const std::size_t part : tree_->values[index_].parts) result.emplace_back(tree_, part);
  return result;
}

std::vector<std::pair<YamlNode, YamlNode>> YamlNode::entries() const {
  std::vector<std::pair<YamlNode, YamlNode>> result;
  if (!isTable()) return result;
  const std::vector<std::size_t>& parts = tree_->values[index_].parts;
  for (std::size_t i = 0; i < parts.size(); i += 2)
    result.emplace_back(YamlNode(tree_, parts[i]), YamlNode(tree_, parts[i + 1]));
  return result;
}

YamlNode YamlNode::operator[](std::string_view key) const {
  for (auto& [name, value] : entries())
    if (name.isText() && name.text() == key) return value;
  return {};
}

}  // namespace tacc

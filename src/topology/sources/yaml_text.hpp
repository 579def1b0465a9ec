// YAML files as trees of values that know their lines. libyaml reads them, which is loaded when the first file is read.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacc {

struct YamlTree;

/// A value of a file, or that there is none. Copies share the file's tree. An alias is the value that it names, so a
/// value may be among its own parts.
class YamlNode {
 public:
  YamlNode() = default;
  YamlNode(std::shared_ptr<const YamlTree> tree, std::size_t index) : tree_(std::move(tree)), index_(index) {}

  /// Whether there is one, and it is neither null nor an empty text.
  bool isSaid() const;
  bool isText() const;
  bool isList() const;
  bool isTable() const;
  /// Empty where it is no text. Lives as long as a node of the file does.
  const std::string& text() const;
  /// From 1; 0 where there is no value.
  std::size_t line() const;
  /// The items of a list; none of anything else.
  std::vector<YamlNode> items() const;
  /// Keys and values of a table, in the file's order; none of anything else.
  std::vector<std::pair<YamlNode, YamlNode>> entries() const;
  /// What stands behind a key: of several alike the first.
  YamlNode operator[](std::string_view key) const;

 private:
  std::shared_ptr<const YamlTree> tree_;
  std::size_t index_ = 0;
};

/// Whether this build reads YAML.
bool hasYaml() noexcept;

/// The file's one document; `origin` stands in messages. Throws Error: taccInvalidArgument for what is no YAML, larger
/// than 8 MiB or more than one document, taccSystemError where libyaml cannot be loaded, taccInvalidUsage where this
/// build reads no YAML.
YamlNode parseYaml(std::string_view text, const std::string& origin);

}  // namespace tacc

// Reading the tables of a topology.yaml: what stands behind keys, with messages that say file and line.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacc {

/// Whether a key is there and has something behind it.
bool isSaid(const YAML::Node& node);

/// The file's text, parsed. Throws Error (taccInvalidArgument) for what is no YAML, too large or more than one
/// document.
YAML::Node parseYaml(std::string_view text, const std::string& origin);

/// All members throw Error (taccInvalidArgument) for what is not of the kind that they return.
class YamlTables {
 public:
  /// `origin` stands in messages and must outlive this.
  explicit YamlTables(const std::string& origin) : origin_(origin) {}

 protected:
  [[noreturn]] void reject(const YAML::Node& node, std::string_view why) const;
  /// "FILE:LINE".
  std::string where(const YAML::Node& node) const;
  /// No other keys and none twice. `others`: but those are left that mean something to a later Slurm, which have a
  /// table or a list behind them.
  void checkKeys(const YAML::Node& table, std::vector<std::string_view> allowed, bool others = false) const;

  /// true, yes, on, y, 1 and their opposites, in any case.
  bool isTrue(const YAML::Node& node) const;
  std::string text(const YAML::Node& table, const char* key) const;
  YAML::Node list(const YAML::Node& table, const char* key) const;
  /// Of one text or a list of texts; none where the key is missing or empty. All calls together give at most mostHosts.
  std::vector<std::string> names(const YAML::Node& table, const char* key);
  /// x, y and z.
  std::vector<std::uint32_t> coordinates(const YAML::Node& table, const char* key, std::int64_t least) const;

  const std::string& origin_;

 private:
  std::size_t names_ = 0;  // expanded so far
};

}  // namespace tacc

// Reading the tables of a topology.yaml: what stands behind keys, with messages that say file and line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topology/sources/yaml_text.hpp"

namespace tacc {

/// All members throw Error (taccInvalidArgument) for what is not of the kind that they return.
class YamlTables {
 public:
  /// `origin` stands in messages and must outlive this.
  explicit YamlTables(const std::string& origin) : origin_(origin) {}

 protected:
  [[noreturn]] void reject(const YamlNode& node, std::string_view why) const;
  /// "FILE:LINE".
  std::string where(const YamlNode& node) const;
  /// No other keys and none twice. `others`: but those are left that mean something to a later Slurm, which have a
  /// table or a list behind them.
  void checkKeys(const YamlNode& table, std::vector<std::string_view> allowed, bool others = false) const;

  /// true, yes, on, y, 1 and their opposites, in any case.
  bool isTrue(const YamlNode& node) const;
  std::string text(const YamlNode& table, const char* key) const;
  /// The items of a list, which is there.
  std::vector<YamlNode> list(const YamlNode& table, const char* key) const;
  /// The names in one text or a list of texts; none where the key is missing or empty. All calls together give at most
  /// mostHosts.
  std::vector<std::string> names(const YamlNode& table, const char* key);
  /// x, y and z.
  std::vector<std::uint32_t> coordinates(const YamlNode& table, const char* key, std::int64_t least) const;

  const std::string& origin_;

 private:
  std::size_t names_ = 0;  // expanded so far
};

}  // namespace tacc

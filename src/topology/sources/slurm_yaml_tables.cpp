#include "topology/sources/slurm_yaml_tables.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/slurm_lines.hpp"
#include "topology/sources/text_file.hpp"

namespace tacc {
namespace {

constexpr std::size_t mostYamlBytes = std::size_t{8} << 20;

/// Of several the library gives the first. It can also give all, but then some damaged files never end.
void checkOneDocument(std::string_view text, const std::string& origin) {
  std::size_t number = 0, mark = 0;
  bool says = false;
  for (const std::string_view line : linesOf(text)) {
    ++number;
    const std::vector<std::string_view> words = wordsOf(line);
    if (line.starts_with("---") && (line.size() == 3 || line[3] == ' ')) {
      if (says) mark = number;
      if (words.size() < 2) continue;
    }
    if (words.empty() || words.front().starts_with('#') || line.starts_with('%') || line.starts_with("...")) continue;
    if (mark > 0) {
      fail(taccInvalidArgument, "{}:{}: a second document begins; a topology.yaml is one list of topologies", origin,
           mark);
    }
    says = true;
  }
}

}  // namespace

bool isSaid(const YAML::Node& node) { return node && !node.IsNull() && !(node.IsScalar() && node.Scalar().empty()); }

YAML::Node parseYaml(std::string_view text, const std::string& origin) {
  if (text.size() > mostYamlBytes) fail(taccInvalidArgument, "{}: larger than {} MiB", origin, mostYamlBytes >> 20);
  checkOneDocument(text, origin);
  return YAML::Load(std::string(text));
}

std::string YamlTables::where(const YAML::Node& node) const {
  return node.Mark().is_null() ? origin_ : fmt::format("{}:{}", origin_, node.Mark().line + 1);
}
void YamlTables::reject(const YAML::Node& node, std::string_view why) const {
  fail(taccInvalidArgument, "{}: {}", where(node), why);
}

void YamlTables::checkKeys(const YAML::Node& table, std::vector<std::string_view> allowed, bool others) const {
  if (!table.IsMap()) reject(table, fmt::format("here stands a table with the keys {}", listOf(allowed)));
  std::set<std::string> seen;
  for (const auto& entry : table) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
    if (!seen.insert(key).second) reject(entry.first, fmt::format("the key {} stands twice", shownText(key)));
    if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
    const std::string_view meant = nearest(key, allowed);
    if (others && meant.empty() && entry.first.IsScalar() && !entry.second.IsScalar()) continue;
    reject(entry.first,
           fmt::format("unknown key \"{}\"{} (allowed: {})", shownText(key),
                       meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant), listOf(allowed)));
  }
}

bool YamlTables::isTrue(const YAML::Node& node) const {
  const std::string said = node.IsScalar() ? node.Scalar() : "?";
  for (const char* yes : {"true", "yes", "on", "y", "1"})
    if (sameIgnoringCase(said, yes)) return true;
  for (const char* no : {"false", "no", "off", "n", "0"})
    if (sameIgnoringCase(said, no)) return false;
  reject(node, fmt::format("\"{}\" is neither true nor false", shownText(said)));
}

std::string YamlTables::text(const YAML::Node& table, const char* key) const {
  if (!isSaid(table[key]) || !table[key].IsScalar())
    reject(table, fmt::format("the key {} is missing or no text", key));
  return table[key].Scalar();
}

std::vector<std::string> YamlTables::names(const YAML::Node& table, const char* key) {
  const YAML::Node list = table[key];
  if (!isSaid(list)) return {};
  std::vector<std::string> result;
  const auto add = [&](const YAML::Node& part) {
    if (!part.IsScalar()) reject(list, fmt::format("{} is a list of names such as node[01-16]", key));
    try {
      std::vector<std::string> more = expandSlurmList(part.Scalar(), mostHosts - names_);
      names_ += more.size();
      std::ranges::move(more, std::back_inserter(result));
    } catch (const Error& error) {
      fail(error.result(), "{}: {}", where(part), error.what());
    }
  };
  if (list.IsSequence())
    for (const YAML::Node& part : list) add(part);
  else
    add(list);
  return result;
}

YAML::Node YamlTables::list(const YAML::Node& table, const char* key) const {
  if (!table[key] || !table[key].IsSequence()) reject(table, fmt::format("the key {} is missing or no list", key));
  return table[key];
}

std::vector<std::uint32_t> YamlTables::coordinates(const YAML::Node& table, const char* key, std::int64_t least) const {
  if (!isSaid(table[key])) reject(table, fmt::format("the key {} with x, y and z is missing", key));
  const YAML::Node said = table[key];
  checkKeys(said, {"x", "y", "z"});
  std::vector<std::uint32_t> result;
  for (const char* axis : {"x", "y", "z"}) {
    const auto value = parseInteger(text(said, axis), least, 0xffff);
    if (!value) reject(said, fmt::format("{} of {} is a number from {} to {}", axis, key, least, 0xffff));
    result.push_back(static_cast<std::uint32_t>(*value));
  }
  return result;
}

}  // namespace tacc

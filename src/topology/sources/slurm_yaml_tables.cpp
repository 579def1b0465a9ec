#include "topology/sources/slurm_yaml_tables.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/slurm_lines.hpp"

namespace tacc {

std::string YamlTables::where(const YamlNode& node) const {
  return node.line() == 0 ? origin_ : fmt::format("{}:{}", origin_, node.line());
}
void YamlTables::reject(const YamlNode& node, std::string_view why) const {
  fail(taccInvalidArgument, "{}: {}", where(node), why);
}

void YamlTables::checkKeys(const YamlNode& table, std::vector<std::string_view> allowed, bool others) const {
  if (!table.isTable()) reject(table, fmt::format("here stands a table with the keys {}", listOf(allowed)));
  std::set<std::string> seen;
  for (const auto& [name, value] : table.entries()) {
    const std::string key = name.isText() ? name.text() : "?";
    if (!seen.insert(key).second) reject(name, fmt::format("the key {} stands twice", shownText(key)));
    if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
    const std::string_view meant = nearest(key, allowed);
    if (others && meant.empty() && name.isText() && !value.isText()) continue;
    reject(name,
           fmt::format("unknown key \"{}\"{} (allowed: {})", shownText(key),
                       meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant), listOf(allowed)));
  }
}

bool YamlTables::isTrue(const YamlNode& node) const {
  const std::string said = node.isText() ? node.text() : "?";
  for (const char* yes : {"true", "yes", "on", "y", "1"})
    if (sameIgnoringCase(said, yes)) return true;
  for (const char* no : {"false", "no", "off", "n", "0"})
    if (sameIgnoringCase(said, no)) return false;
  reject(node, fmt::format("\"{}\" is neither true nor false", shownText(said)));
}

std::string YamlTables::text(const YamlNode& table, const char* key) const {
  const YamlNode value = table[key];
  if (!value.isSaid() || !value.isText()) reject(table, fmt::format("the key {} is missing or no text", key));
  return value.text();
}

std::vector<std::string> YamlTables::names(const YamlNode& table, const char* key) {
  const YamlNode list = table[key];
  if (!list.isSaid()) return {};
  std::vector<std::string> result;
  const auto add = [&](const YamlNode& part) {
    if (!part.isText()) reject(list, fmt::format("{} is a list of names such as node[01-16]", key));
    try {
      std::vector<std::string> more = expandSlurmList(part.text(), mostHosts - names_);
      names_ += more.size();
      std::ranges::move(more, std::back_inserter(result));
    } catch (const Error& error) {
      fail(error.result(), "{}: {}", where(part), error.what());
    }
  };
  if (list.isList())
    for (const YamlNode& part : list.items()) add(part);
  else
    add(list);
  return result;
}

std::vector<YamlNode> YamlTables::list(const YamlNode& table, const char* key) const {
  const YamlNode list = table[key];
  if (!list.isList()) reject(table, fmt::format("the key {} is missing or no list", key));
  return list.items();
}

std::vector<std::uint32_t> YamlTables::coordinates(const YamlNode& table, const char* key, std::int64_t least) const {
  if (!table[key].isSaid()) reject(table, fmt::format("the key {} with x, y and z is missing", key));
  const YamlNode said = table[key];
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

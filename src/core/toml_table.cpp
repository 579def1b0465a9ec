#include "core/toml_table.hpp"

#include <algorithm>

#include "core/parse.hpp"

namespace tacc {

std::string TomlTable::place(const toml::node& node) const {
  return fmt::format("{}:{}:{}", origin_, node.source().begin.line, node.source().begin.column);
}

std::string TomlTable::where(std::string_view key) const {
  const toml::node* node = table_.get(key);
  return fmt::format("{}, {}{}{}", node == nullptr ? place(table_) : place(*node), name_, name_.empty() ? "" : " ",
                     key);
}

std::string TomlTable::where() const { return fmt::format("{}, {}", place(table_), name_.empty() ? "the top" : name_); }

void TomlTable::reject(std::string_view key, std::string_view what) const {
  fail(taccInvalidArgument, "{} must be {}", where(key), what);
}

const toml::node* TomlTable::get(std::string_view key) {
  asked_.push_back(key);
  return table_.get(key);
}

std::optional<std::string> TomlTable::text(std::string_view key) {
  const toml::node* node = get(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_string()) reject(key, "text in quotation marks");
  return node->as_string()->get();
}

std::optional<std::int64_t> TomlTable::number(std::string_view key, std::int64_t least, std::int64_t most) {
  const toml::node* node = get(key);
  if (node == nullptr) return std::nullopt;
  const std::optional<std::int64_t> value = node->is_integer() ? node->value<std::int64_t>() : std::nullopt;
  if (!value || *value < least || *value > most) reject(key, fmt::format("a whole number from {} to {}", least, most));
  return value;
}

std::optional<double> TomlTable::decimal(std::string_view key, double most) {
  const toml::node* node = get(key);
  if (node == nullptr) return std::nullopt;
  const std::optional<double> value = node->is_number() ? node->value<double>() : std::nullopt;
  if (!value || !(*value >= 0 && *value <= most)) reject(key, fmt::format("a number from 0 to {}", most));
  return value;
}

std::vector<std::string> TomlTable::texts(std::string_view key) {
  const toml::node* node = get(key);
  std::vector<std::string> result;
  if (node == nullptr) return result;
  if (node->is_string()) return {node->as_string()->get()};
  const toml::array* array = node->as_array();
  if (array == nullptr) reject(key, "text in quotation marks, or an array of such");
  for (const toml::node& element : *array) {
    if (!element.is_string()) reject(key, "text in quotation marks, or an array of such");
    result.push_back(element.as_string()->get());
  }
  return result;
}

std::vector<std::int64_t> TomlTable::numbers(std::string_view key, std::int64_t least, std::int64_t most) {
  const toml::node* node = get(key);
  std::vector<std::int64_t> result;
  if (node == nullptr) return result;
  const std::string right = fmt::format("an array of whole numbers from {} to {}", least, most);
  const toml::array* array = node->as_array();
  if (array == nullptr) reject(key, right);
  for (const toml::node& element : *array) {
    const std::optional<std::int64_t> value = element.is_integer() ? element.value<std::int64_t>() : std::nullopt;
    if (!value || *value < least || *value > most) reject(key, right);
    result.push_back(*value);
  }
  return result;
}

const toml::table* TomlTable::table(std::string_view key) {
  const toml::node* node = get(key);
  if (node != nullptr && !node->is_table()) reject(key, fmt::format("a table: [{}]", key));
  return node == nullptr ? nullptr : node->as_table();
}

std::vector<const toml::table*> TomlTable::tables(std::string_view key) {
  const toml::node* node = get(key);
  std::vector<const toml::table*> result;
  if (node == nullptr) return result;
  const toml::array* array = node->as_array();
  const std::string right = fmt::format("tables, each under [[{}]]", key);
  if (array == nullptr) reject(key, right);
  for (const toml::node& element : *array) {
    if (!element.is_table()) reject(key, right);
    result.push_back(element.as_table());
  }
  return result;
}

void TomlTable::finish() const {
  for (const auto& [key, node] : table_) {
    const std::string_view name = key.str();
    if (std::find(asked_.begin(), asked_.end(), name) != asked_.end()) continue;
    const std::string_view meant = nearest(name, asked_);
    fail(taccInvalidArgument, "{}: unknown key \"{}\"{} (allowed{}: {})", place(node), shownText(name),
         meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant),
         name_.empty() ? std::string(" at the top") : " in " + name_, listOf(asked_));
  }
}

toml::table parseToml(std::string_view text, const std::string& origin) {
  try {
    return toml::parse(text, origin);
  } catch (const toml::parse_error& error) {
    fail(taccInvalidArgument, "{}:{}:{}: no TOML: {}", origin, error.source().begin.line, error.source().begin.column,
         error.description());
  } catch (const Error& error) {
    fail(error.result(), "{}: {}", origin, error.what());
  }
}

}  // namespace tacc

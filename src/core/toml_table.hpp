// Reading tables of a TOML file: typed keys, with messages that say where and what would be right.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

#define TOML_EXCEPTIONS 1
// Some damaged files break what the parser takes for granted. That must be an error, not the end of the process.
#define TOML_ASSERT(expression)        \
  ((expression) ? static_cast<void>(0) \
                : ::tacc::fail(taccInvalidArgument, "no TOML: the parser cannot make sense of it"))
#include <toml++/toml.h>

namespace tacc {

/// The file's text, parsed. Throws taccInvalidArgument with origin, line and column where it is no TOML.
toml::table parseToml(std::string_view text, const std::string& origin);

/// One table of a file. Keys are asked for; finish() then refuses all that nobody asked for, so a misspelt key is
/// found.
class TomlTable {
 public:
  /// `name` stands in messages: "[node]". The table must outlive this.
  TomlTable(const toml::table& table, std::string name, const std::string& origin)
      : table_(table), name_(std::move(name)), origin_(origin) {}

  std::optional<std::string> text(std::string_view key);
  std::optional<std::int64_t> number(std::string_view key, std::int64_t least, std::int64_t most);
  /// With or without a decimal point; from 0 to `most`.
  std::optional<double> decimal(std::string_view key, double most);
  /// A string or an array of strings.
  std::vector<std::string> texts(std::string_view key);
  std::vector<std::int64_t> numbers(std::string_view key, std::int64_t least, std::int64_t most);
  const toml::table* table(std::string_view key);
  /// The tables of [[key]].
  std::vector<const toml::table*> tables(std::string_view key);
  bool has(std::string_view key) const { return table_.contains(key); }

  /// Throws for the first key that was not asked for, with the nearest of those that were.
  void finish() const;

  /// "FILE:LINE:COLUMN, [node] latency": for messages about a key.
  std::string where(std::string_view key) const;
  /// The same for the table as a whole.
  std::string where() const;

  const toml::table& raw() const noexcept { return table_; }

 private:
  const toml::node* get(std::string_view key);
  [[noreturn]] void reject(std::string_view key, std::string_view what) const;
  std::string place(const toml::node& node) const;

  const toml::table& table_;
  std::string name_;
  const std::string& origin_;
  std::vector<std::string_view> asked_;
};

}  // namespace tacc

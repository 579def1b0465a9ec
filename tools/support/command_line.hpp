// Reading a program's arguments: what they may be wrong in ends it with a sentence.
#pragma once

#include <fmt/format.h>
#include <tacc/tacc.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include "support/output.hpp"

namespace tacc::tools {

/// A check whose sentence names the value, as CLI11's own tell the limits of a double.
template <class Holds>
CLI::Validator numberThat(const char* name, const char* wanted, const Holds& holds) {
  return {[=](std::string& text) {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && holds(value)) return std::string();
            return fmt::format("\"{}\" is not {}", text, wanted);
          },
          name};
}

inline const CLI::Validator isPositive =
    numberThat("POSITIVE", "a number above 0", [](double value) { return value > 0; });
inline const CLI::Validator isNotNegative =
    numberThat("NONNEGATIVE", "a number from 0 up", [](double value) { return value >= 0; });

/// An empty value is a variable of a script that is not set: taken for none, what was asked for would be missing
/// without a word.
inline void refuseEmptyValues(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_expected_min() < 1 || option->get_items_expected_min() < 1) continue;
    for (const std::string& value : option->results())
      if (value.empty()) throw std::invalid_argument(fmt::format("{} has an empty value", option->get_name()));
  }
  for (const CLI::App* command : app.get_subcommands()) refuseEmptyValues(*command);
}

/// Parses, then calls `understand`, which may throw what it does not like. --help and --version end the process with 0;
/// anything wrong ends it with 2 and a sentence. `program` stands before the sentence.
template <class Understand>
void parseCommandLine(CLI::App& app, std::string_view program, int argc, char** argv, const Understand& understand) {
  const auto refuse = [&](const std::exception& error) {
    complain("{0}: {1}\nTry {0} --help.\n", program, error.what());
    std::exit(2);
  };
  app.set_version_flag("--version", fmt::format("{} {}.{}.{}", program, TACC_MAJOR, TACC_MINOR, TACC_PATCH),
                       "show the version and end");
  try {
    app.parse(argc, argv);
    refuseEmptyValues(app);
    understand();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) std::exit(app.exit(error));
    refuse(error);
  } catch (const std::exception& error) {
    refuse(error);
  }
}

}  // namespace tacc::tools

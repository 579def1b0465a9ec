// Reading a program's arguments: what they may be wrong in ends it with the usage.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <string_view>

namespace tacc::tools {

/// Parses, then calls `understand`, which may throw what it does not like. --help ends the process with 0; anything
/// wrong ends it with 2, the sentence and the usage. `program` stands before the sentence.
template <class Understand>
void parseCommandLine(CLI::App& app, std::string_view program, int argc, char** argv, const Understand& understand) {
  try {
    app.parse(argc, argv);
    understand();
    return;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) std::exit(app.exit(error));
    fmt::print(stderr, "{}: {}\n\n{}", program, error.what(), app.help());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n\n{}", program, error.what(), app.help());
  }
  std::exit(2);
}

}  // namespace tacc::tools

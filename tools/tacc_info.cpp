// tacc_info: what this build of tacc has, what it finds on this machine, and which settings it takes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "compute/simd/isa.hpp"
#include "core/environment.hpp"
#include "core/error.hpp"
#include "support/command_line.hpp"
#include "support/output.hpp"
#include "tacc/tacc.h"
#include "transports/network_transport.hpp"

namespace {

using namespace tacc;
using Json = nlohmann::ordered_json;

/// Most machines lack the library of some transport, which is no reason to say nothing of the others.
std::string stateOf(const NetworkTransportKind& kind) {
  if (kind.make == nullptr) return fmt::format("not in this build; install {} and build again", kind.library);
  try {
    return kind.describe();
  } catch (const Error& error) {
    return fmt::format("of no use here: {}", error.what());
  }
}

/// A bad TACC_ISA must not hide the list of what is allowed.
std::string isaInUse() {
  try {
    return std::string(chooseIsa().name);
  } catch (const Error& error) {
    return fmt::format("none ({})", error.what());
  }
}

Json collect() {
  Json info;
  info["version"] = fmt::format("{}.{}.{}", TACC_MAJOR, TACC_MINOR, TACC_PATCH);
  for (const Isa& isa : availableIsas()) info["instructionSets"].push_back(isa.name);
  info["instructionSet"] = isaInUse();
  for (const NetworkTransportKind& kind : networkTransports()) {
    info["transports"].push_back(
        {{"name", kind.name}, {"summary", kind.summary}, {"built", kind.make != nullptr}, {"state", stateOf(kind)}});
  }
  for (const EnvironmentVariable& variable : environmentVariables()) {
    const char* value = std::getenv(std::string(variable.name).c_str());
    info["environment"].push_back({{"name", variable.name},
                                   {"allowed", variable.allowed},
                                   {"default", variable.defaultValue},
                                   {"documentation", variable.documentation},
                                   {"value", value == nullptr ? Json() : Json(value)}});
  }
  return info;
}

std::string textOf(const Json& value) { return value.get<std::string>(); }

void print(const Json& info) {
  std::string isas;
  for (const Json& isa : info["instructionSets"]) isas += (isas.empty() ? "" : ", ") + textOf(isa);
  fmt::print("tacc {}\n\nReductions use {} (this machine and build have {}).\n", textOf(info["version"]),
             textOf(info["instructionSet"]), isas);
  fmt::print("\nBetween hosts, in the order of preference:\n");
  for (const Json& transport : info["transports"]) {
    fmt::print("  {:<5} {}\n        {}\n", textOf(transport["name"]), textOf(transport["summary"]),
               textOf(transport["state"]));
  }
  fmt::print("\nEnvironment variables:\n");
  for (const Json& variable : info["environment"]) {
    fmt::print("  {}{}\n      {}\n      allowed: {}; default: {}\n", textOf(variable["name"]),
               variable["value"].is_null() ? "" : " = \"" + textOf(variable["value"]) + "\"",
               textOf(variable["documentation"]), textOf(variable["allowed"]), textOf(variable["default"]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  tools::requireStandardOutput("tacc_info");
  CLI::App app("Shows what this build of tacc has, what it finds on this machine, and which settings it takes.");
  bool asJson = false;
  app.add_flag("--json", asJson, "for programs: one JSON object");
  tools::parseCommandLine(app, "tacc_info", argc, argv, [] {});
  try {
    const Json info = collect();
    if (asJson)
      fmt::print("{}\n", info.dump(2));
    else
      print(info);
    checkEnvironment();  // last, so that a misspelt variable is reported below the list of those that exist
  } catch (const std::exception& error) {
    tools::complain("tacc_info: {}\n", error.what());
    return 1;
  }
  return 0;
}

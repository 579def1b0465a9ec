// tacc_topo: what tacc knows of the network and of this machine, who said it, and files about it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "core/environment.hpp"
#include "core/error.hpp"
#include "core/text_file.hpp"
#include "drawing.hpp"
#include "json.hpp"
#include "probe.hpp"
#include "support/command_line.hpp"
#include "support/output.hpp"
#include "topology/model/compare.hpp"
#include "topology/model/saved.hpp"
#include "topology/model/tree_text.hpp"
#include "topology/sources/source_registry.hpp"
#include "topology/toml/toml.hpp"

namespace {

using namespace tacc;

struct Options {
  std::vector<std::string> files;
  std::string source, svg, tomlFile;
  std::vector<std::string> compared;
  bool toml = false, json = false, digest = false, sources = false, probe = false, save = false;
  std::size_t most = 12;
};

std::string contents(const std::string& path) {
  if (path != "-") return readText(path);
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

Finding read(const std::string& path, const std::string& source) { return findingOfFile(contents(path), path, source); }

Survey survey(const Options& options) {
  if (!options.files.empty()) {
    std::vector<Finding> findings;
    for (const std::string& file : options.files) findings.push_back(read(file, options.source));
    sortByWeight(findings);
    return {merge(findings), {}};
  }
  const Environment environment = checkEnvironment();
  SourceContext context;
  context.files = environment.topologyFiles;
  context.hosts = {gatherClues(context.surroundings, true)};
  return discoverTopology(std::move(context), options.source.empty() ? environment.topologySource : options.source);
}

void printSources(const Survey& survey) {
  fmt::print("\nWho said what:\n");
  for (const Fact& fact : survey.discovery.facts) fmt::print("  {}: {}  <- {}\n", fact.what, fact.value, fact.who);
  if (!survey.discovery.contradictions.empty()) fmt::print("\nContradictions:\n");
  for (const std::string& sentence : survey.discovery.contradictions) fmt::print("  {}\n", sentence);
  if (!survey.states.empty()) fmt::print("\nSources, in the order of their weight:\n");
  for (const SourceState& state : survey.states) fmt::print("  {:<7} {}\n", state.source, state.state);
}

int compare(const std::vector<std::string>& paths, const std::string& source) {
  const Finding a = read(paths[0], source), b = read(paths[1], source);
  const std::vector<std::string> found = differences(a.topology, b.topology, paths[0], paths[1]);
  for (const std::string& sentence : found) fmt::print("{}\n", sentence);
  if (found.empty()) fmt::print("equal, digest {}\n", digestText(a.topology));
  return found.empty() ? 0 : 1;
}

void listSources() {
  for (const TopologySource& source : topologySources()) {
    fmt::print("{:<7} {}{}\n", source.name, source.summary,
               source.library.empty() ? "" : fmt::format(" (not wholly in this build: {})", source.library));
  }
}

void writeFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) failErrno("{} cannot be written", path);
}

void show(const Survey& found, const Options& options) {
  const Topology& topology = found.discovery.topology;
  if (!options.svg.empty()) writeFile(options.svg, drawing(topology));
  if (options.toml && options.tomlFile.empty()) {
    fmt::print("{}", topologyToToml(topology));
  } else if (options.json) {
    fmt::print("{}", topologyToJson(topology));
  } else if (options.digest) {
    fmt::print("{}\n", digestText(topology));
  } else if (!options.toml) {
    fmt::print("{}", treeText(topology, options.most));
    if (!options.probe) printSources(found);
  }
}

int probe(const Options& options) {
  const ProbedNetwork network = probeNetwork([&] {
    if (!options.tomlFile.empty()) requireSavable(options.tomlFile);
    if (options.save) requireKeepable();
    tools::requireWritable(options.svg);
  });
  if (network.rank != 0) return 0;
  if (!options.tomlFile.empty()) writeTo(options.tomlFile, network);
  if (options.save) tools::complain("tacc_topo: kept as {}\n", keep(network));
  Survey found;
  found.discovery.topology = *network.topology;
  show(found, options);
  return 0;
}

int run(const Options& options) {
  for (const std::string& file : {options.svg, options.tomlFile}) tools::refuseDash(file);
  if (options.sources) return listSources(), 0;
  if (!options.compared.empty()) return compare(options.compared, options.source);
  if (options.probe) return probe(options);
  const Survey found = survey(options);
  if (!options.tomlFile.empty()) writeFile(options.tomlFile, topologyToToml(found.discovery.topology));
  show(found, options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  tools::requireStandardOutput("tacc_topo");
  CLI::App app(
      "Shows the topology: levels of the network with latency and bandwidth, groups of hosts, the inside of hosts.");
  Options options;
  auto* const files = app.add_option("--file,-f", options.files,
                                     "read this file (- for standard input) instead of looking around; any source's "
                                     "kind; several times: files that complement each other");
  files->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--source", options.source, "ask only this source, or: what kind the file is");
  app.add_option("--svg", options.svg, "also draw it into this file");
  auto* const toml =
      app.add_option("--toml", options.tomlFile, "write it as TOML, for TACC_TOPO_FILE: into this file, or here")
          ->expected(0, 1);
  auto* const probing = app.add_flag("--probe", options.probe,
                                     "measure the network between the ranks that a launcher starts, one on every host")
                            ->excludes(files);
  app.add_flag("--save", options.save, "keep what was measured, so that jobs on these hosts need not measure")
      ->needs(probing);
  app.add_flag("--json", options.json, "write all of it as JSON, for other programs");
  app.add_flag("--digest", options.digest, "write only the digest, by which ranks compare topologies");
  app.add_flag("--sources", options.sources, "list the sources");
  app.add_option("--most", options.most, "groups side by side before some are left out")
      ->check(CLI::Range(2, 1'000'000));
  app.add_option("--diff", options.compared, "two files: say what is different; status 1 if anything is")->expected(2);
  tools::parseCommandLine(app, "tacc_topo", argc, argv, [&] { options.toml = toml->count() > 0; });
  try {
    return run(options);
  } catch (const std::exception& error) {
    tools::complain("tacc_topo: {}\n", error.what());
    return 2;
  }
}

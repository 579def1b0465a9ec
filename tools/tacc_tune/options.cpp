#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "comm/launch/launch_id.hpp"
#include "support/command_line.hpp"
#include "support/process.hpp"
#include "support/sizes.hpp"
#include "support/words.hpp"

namespace tacc::tune {
namespace {

const std::vector<std::string> usualCollectives = {"allreduce", "broadcast", "reduce", "allgather", "reducescatter"};
const std::vector<std::string> usualSizes = {"8", "32", "128", "512", "2K", "8K", "32K", "128K", "512K", "2M", "8M"};

struct Words {
  std::vector<std::string> collectives, sizes;
  std::string cluster;
};

std::string allNames() {
  std::string names;
  for (int c = 0; c < collectiveCount; ++c)
    names += (c == 0 ? "" : ", ") + std::string(nameOf(static_cast<Collective>(c)));
  return names;
}

void declare(CLI::App& app, Words& words, Options& options) {
  app.add_option("COLLECTIVES", words.collectives,
                 fmt::format("of {} ({})", allNames(), tools::joinWords(usualCollectives, " ")));
  app.add_option("-o,--output", options.output, "the tuning file; what FILE.part holds already is not measured again");
  app.add_option("--sizes", words.sizes,
                 fmt::format("bytes of the larger buffer, with K, M or G ({})", tools::joinWords(usualSizes, ",")))
      ->delimiter(',');
  app.add_option("--budget", options.minutes, "minutes for all of it (5)")->check(CLI::Range(0.01, 10000.0));
  app.add_option("--json", options.json, "write all that was measured to this file");
  app.add_option("--check", options.checked, "measure how good the choices of this tuning file are");
  app.add_flag(
      "--regret", options.measuresRegret,
      "measure how good the choices are that calls make freely, after some hundred of them; no file is written");
  app.add_option("--regrets", options.regrets)->group("");
  app.add_flag("--restart", options.restart, "measure all again, whatever FILE.part holds");
  app.add_option("--ranks", options.ranks, "ranks to start (one for each CPU allowed, at least 2)")
      ->check(CLI::Range(2, 4096));
  app.add_option(
      "--cluster", words.cluster,
      "SUPERNODES,HOSTS,HOST_MBIT,UPLINK_MBIT: on the hosts of a virtual cluster, one rank on each by default");
  app.add_option("--place", options.placements,
                 "ranks on its hosts: block, cyclic or random[:SEED] (block); with --regret several, with commas")
      ->delimiter(',');
  app.add_flag("--rank", options.isRank)->group("");
}

void understand(const Words& words, Options& options) {
  for (const std::string& name : words.collectives.empty() ? usualCollectives : words.collectives) {
    const Collective known = requireCollective(name);
    if (std::ranges::find(options.collectives, known) == options.collectives.end())
      options.collectives.push_back(known);
  }
  for (const std::string& size : words.sizes.empty() ? usualSizes : words.sizes) {
    options.sizes.push_back(tools::parseSize(size));
    if (options.sizes.back() == 0) throw std::invalid_argument("--sizes: a size is at least 1 byte");
  }
  std::ranges::sort(options.sizes);
  if (options.measuresRegret && !(options.output + options.checked).empty())
    throw std::invalid_argument("--regret writes no file and checks none");
  if (options.placements.size() > 1 && !options.measuresRegret)
    throw std::invalid_argument("--place takes several placements with --regret only: a file is for one of them");
  for (std::string* path : {&options.output, &options.json, &options.checked, &options.regrets})
    if (!path->empty()) *path = std::filesystem::absolute(*path);
  if (options.isRank) return;
  const bool starts = options.ranks > 0 || !words.cluster.empty();
  if (starts && isLaunched())
    throw std::invalid_argument("--ranks and --cluster start ranks, but a launcher has started this one already");
  if (!words.cluster.empty()) options.cluster = tools::ClusterShape::parse(words.cluster);
  if (options.ranks == 0)
    options.ranks = options.cluster ? options.cluster->totalHosts() : std::max(2, tools::allowedCpus());
}

}  // namespace

std::vector<std::string> Options::ofRank() const {
  std::vector<std::string> words = {"--rank", "--budget", fmt::format("{}", minutes)};
  for (const std::size_t size : sizes) words.insert(words.end(), {"--sizes", std::to_string(size)});
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {name, value});
  };
  add("--output", output);
  add("--json", json);
  add("--check", checked);
  add("--regrets", regrets);
  if (measuresRegret) words.emplace_back("--regret");
  if (restart) words.emplace_back("--restart");
  words.emplace_back("--");  // --sizes would take what follows
  for (const Collective collective : collectives) words.emplace_back(nameOf(collective));
  return words;
}

Options parseOptions(int argc, char** argv) {
  CLI::App app(
      "Measures which algorithms are the fastest between these ranks, and writes it into a file for TACC_TUNE_FILE. "
      "Under mpiexec, srun or torchrun every process takes part; else it starts ranks itself.",
      "tacc_tune");
  Words words;
  Options options;
  declare(app, words, options);
  tools::parseCommandLine(app, "tacc_tune", argc, argv, [&] { understand(words, options); });
  return options;
}

}  // namespace tacc::tune

// tacc_sim: plays plans on machines that are only described, in SimGrid, and compares with what the cost model says.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <list>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/parse.hpp"
#include "core/text_file.hpp"
#include "inside.hpp"
#include "report.hpp"
#include "support/command_line.hpp"
#include "support/output.hpp"
#include "topology/sources/source_registry.hpp"

namespace {

using namespace tacc;
using namespace tacc::sim;

struct Options {
  std::vector<std::string> topologies, algorithms, collectives = {"allreduce"}, sizes = {"8", "1K", "64K", "1M", "16M"};
  int ranks = 64, ranksPerHost = 1;
  std::string place = "block";
  NetworkSpeed fallback;
  double mostWork = 4e6;
  int jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::string json;
  bool isBrief = false, isInside = false;
};

Topology read(const std::string& path) {
  const std::string text = readText(path);
  return sourceOfFile(text, path).read(text, path);
}

Place placeNamed(const std::string& name) {
  return name == "cyclic" ? Place::cyclic : name == "random" ? Place::random : Place::block;
}

double sizeOf(const std::string& text) {
  const std::optional<std::size_t> bytes = parseSize(text);
  if (!bytes || *bytes == 0) fail(taccInvalidArgument, "--sizes: \"{}\" is no size, such as 8, 64K or 1M", text);
  return static_cast<double>(*bytes);
}

std::vector<const Algorithm*> serving(const Options& options, const PlanRequest& request) {
  std::vector<const Algorithm*> found;
  for (const std::string& name : options.algorithms)
    if (findAlgorithm(name) == nullptr)
      fail(taccInvalidArgument, "there is no algorithm \"{}\"; see: tacc_plan list", name);
  for (const Algorithm& algorithm : algorithms()) {
    const bool isWanted =
        options.algorithms.empty() || std::ranges::find(options.algorithms, algorithm.name) != options.algorithms.end();
    if (isWanted && algorithm.serves(request)) found.push_back(&algorithm);
  }
  return found;
}

std::vector<Point> pointsOf(const Options& options, std::list<Machine>& machines) {
  std::vector<Point> points;
  for (Machine& machine : machines) {
    for (const std::string& name : options.collectives) {
      const Collective collective = requireCollective(name);
      const auto serve = serving(options, machine.selector().request(collective, 0));
      for (const std::string& size : options.sizes) points.push_back({&machine, collective, sizeOf(size), serve, {}});
    }
  }
  return points;
}

void performAll(const Options& options, std::vector<Point>& points) {
  std::vector<Trial> trials;
  for (const Point& point : points)
    for (const Algorithm* algorithm : point.algorithms)
      trials.push_back({point.machine, point.collective, point.bytes, algorithm});
  const bool isWatched = ::isatty(STDERR_FILENO) != 0;
  const std::vector<Outcome> outcomes =
      sim::performAll(trials, options.mostWork, options.jobs, [&](std::size_t finished) {
        if (isWatched) tools::complain("\r{} of {} simulations ", finished, trials.size());
      });
  if (isWatched) tools::complain("\r{:40}\r", "");
  auto next = outcomes.begin();
  for (Point& point : points) {
    point.outcomes.assign(next, next + static_cast<std::ptrdiff_t>(point.algorithms.size()));
    next += static_cast<std::ptrdiff_t>(point.algorithms.size());
    judge(point);
  }
}

std::vector<Collective> collectivesOf(const Options& options) {
  std::vector<Collective> collectives;
  for (const std::string& name : options.collectives) collectives.push_back(requireCollective(name));
  return collectives;
}

/// Of the first host of each topology whose inside is known.
void runInside(const Options& options) {
  for (const std::string& path : options.topologies) {
    const Topology topology = read(path);
    if (topology.hosts() == 0 || topology.node(0) == nullptr)
      fail(taccInvalidArgument, "{}: does not tell of the inside of a host", path);
    InsideQuestion question{topology.host(0),  *topology.node(0), options.ranks, collectivesOf(options), {},
                            options.algorithms};
    for (const std::string& size : options.sizes) question.sizes.push_back(sizeOf(size));
    fmt::print("{}\n", playInside(question));
  }
}

void run(const Options& options) {
  if (options.isInside) return runInside(options);
  tools::requireWritable(options.json);
  std::list<Machine> machines;
  for (const std::string& path : options.topologies)
    machines.emplace_back(read(path), options.ranks, placeNamed(options.place), options.fallback, options.ranksPerHost);
  std::vector<Point> points = pointsOf(options, machines);
  performAll(options, points);
  const Machine* last = nullptr;
  for (const Point& point : points) {
    if (options.isBrief) break;
    if (point.machine != last) {
      fmt::print("=== {}: {} ranks, {} a host\n{}", point.machine->topology().name(), point.machine->ranks(),
                 point.machine->ranksPerHost() == 1 ? "one" : std::to_string(point.machine->ranksPerHost()),
                 describeMachine(point.machine->selector().machine()));
      last = point.machine;
    }
    fmt::print("\n{}", table(point));
  }
  if (!options.isBrief) fmt::print("\n");
  fmt::print("{}", summary(points));
  if (options.json.empty()) return;
  std::ostringstream text;
  writeJson(text, points);
  tools::writeOutput(options.json, text.str());
}

}  // namespace

int main(int argc, char** argv) {
  tools::requireStandardOutput("tacc_sim");
  CLI::App app(
      "Plays the plans of collectives in SimGrid on machines that are described in files, and compares with the cost "
      "model. The arrow marks what the library chooses; the last columns are the bytes that are sent "
      "between hosts which meet at each level.");
  Options options;
  app.add_option("--topology,-f", options.topologies, "files of any kind that tacc_topo reads")->required();
  app.add_option("--ranks,-n", options.ranks, "on the first hosts of each topology")->check(CLI::Range(2, 65536));
  app.add_option("--ranks-per-host", options.ranksPerHost,
                 "so many on each host, which meet in its memory and share its card; the last may have fewer")
      ->check(CLI::Range(1, 65536));
  app.add_option("--collective,-c", options.collectives, "allreduce, broadcast, ...")->delimiter(',');
  app.add_option("--size,-s", options.sizes, "bytes of the vector, or of all blocks together: 8,1K,1M")->delimiter(',');
  app.add_option("--algo,-a", options.algorithms, "only these algorithms")->delimiter(',');
  app.add_option("--place", options.place,
                 "how the plans' ranks stand on the hosts: block, in order, as tacc puts them; cyclic or random, as "
                 "without it (the model's times are always of ranks in order)")
      ->check(CLI::IsMember({"block", "cyclic", "random"}));
  app.add_option("--latency", options.fallback.latency, "seconds, where the topology does not say");
  app.add_option("--bandwidth", options.fallback.bytesPerSecond, "bytes/s, where the topology does not say");
  app.add_option(
      "--most", options.mostWork,
      "plans whose messages times the partners of a rank are more are not played; a million takes some seconds");
  app.add_option("--jobs,-j", options.jobs, "simulations side by side")->check(CLI::Range(1, 1024));
  app.add_option("--json", options.json, "also write everything into this file");
  app.add_flag("--inside", options.isInside,
               "calls inside one host, the first of each topology: a rank on each of so many cores, over shared memory")
      ->excludes("--json");
  app.add_flag("--brief", options.isBrief, "only the summary");
  tools::parseCommandLine(app, "tacc_sim", argc, argv, [] {});
  try {
    run(options);
    return 0;
  } catch (const std::exception& error) {
    tools::complain("tacc_sim: {}\n", error.what());
    return 2;
  }
}

#include "inside.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/error.hpp"
#include "node_replay.hpp"
#include "selection/node_selector.hpp"
#include "selection/selection.hpp"

namespace tacc::sim {
namespace {

constexpr double playedWithin = 4;
constexpr double cacheBytes = 1 << 20;
constexpr std::size_t arenaOf(int ranks) {
  return std::size_t{ranks <= 16 ? 2048U : 1024U} * 1024;
}  // as comm/membership.cpp

NodePlaces placesIn(const NodeDescription& node, int ranks) {
  std::vector<cpu_set_t> sets;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::size_t core = static_cast<std::size_t>(rank) * node.cores.size() / static_cast<std::size_t>(ranks);
    const std::uint32_t cpu = node.cores[core].front();
    if (cpu >= CPU_SETSIZE)
      fail(taccInvalidArgument, "a core has the number {}, and the kernel's sets end at {}", cpu, CPU_SETSIZE);
    CPU_ZERO(&sets.emplace_back());
    CPU_SET(cpu, &sets.back());
  }
  return placesOf(node, sets);
}

std::string table(NodeSelector& selector, const InsideQuestion& question, Collective collective, double size) {
  const int ranks = selector.machine().ranks();
  const bool isSplit = partitionOf(collective) == Partition::split;
  NodeQuestion asked{collective, 0, static_cast<std::size_t>(isSplit ? size : size / ranks)};
  const std::vector<NodeCandidate>& candidates = selector.explain(asked);
  double least = candidates.front().cost.seconds;
  for (const NodeCandidate& one : candidates)
    if (one.isPossible) least = std::min(least, one.cost.seconds);
  std::string text = fmt::format("\n{} of {:.0f} bytes\n   {:34} {:>12} {:>12} {:>7}\n", nameOf(collective), size, "",
                                 "SimGrid us", "model us", "ratio");
  const double entry = priceEntry(selector.machine());
  double chosen = 0, best = 0;
  for (const NodeCandidate& one : candidates) {
    if (!one.isPossible) continue;
    const std::string& groups = selector.layouts()[static_cast<std::size_t>(one.layout)].name;
    const std::string name = std::string(one.algorithm->name) + (groups.empty() ? "" : " (" + groups + ")");
    const bool isWanted = question.algorithms.empty() ? one.cost.seconds <= playedWithin * least
                                                      : std::ranges::find(question.algorithms, one.algorithm->name) !=
                                                            question.algorithms.end();
    std::string played = "not played", ratio = "-";
    if (isWanted) {
      const PlanRequest& request = selector.request(collective, 0, one.layout);
      const NodeWork work(makePlan(*one.algorithm, request), false);
      const NodeCall call{static_cast<double>(asked.bytes), stagingChunk({request, asked.bytes, false, {}}),
                          arenaOf(ranks)};
      const double seconds = playApart(work, selector.machine(), call, name) + entry;
      played = fmt::format("{:.1f}", seconds * 1e6);
      ratio = fmt::format("{:.3f}", one.cost.seconds / seconds);
      if (&one == candidates.data()) chosen = seconds;
      best = best == 0 ? seconds : std::min(best, seconds);
    }
    text += fmt::format("{:2} {:34} {:>12} {:>12.1f} {:>7}\n", &one == candidates.data() ? "->" : "", name, played,
                        one.cost.seconds * 1e6, ratio);
  }
  if (chosen > 0) text += fmt::format("   regret of the choice: {:.1f} %\n", (chosen / best - 1) * 100);
  return text;
}

}  // namespace

double playApart(const NodeWork& work, const NodeMachine& machine, const NodeCall& call, std::string_view name) {
  int ends[2];
  if (::pipe(ends) != 0) failErrno("a pipe to a simulation cannot be made");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) failErrno("a process for a simulation cannot be started");
  if (child == 0) {
    int status = 1;
    try {
      const double seconds = replayOnNode(work, machine, call);
      status = ::write(ends[1], &seconds, sizeof seconds) == sizeof seconds ? 0 : 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    ::_exit(status);
  }
  ::close(ends[1]);
  double seconds = 0;
  const bool told = ::read(ends[0], &seconds, sizeof seconds) == sizeof seconds;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!told || status != 0) fail(taccInternalError, "the simulation of {} failed", name);
  return seconds;
}

std::string playInside(const InsideQuestion& question) {
  const int ranks =
      static_cast<int>(std::min<std::size_t>(question.node.cores.size(), static_cast<std::size_t>(question.ranks)));
  const NodePlaces places = placesIn(question.node, ranks);
  NodeSelector selector(NodeMachine(places, assumedFigures(places), cacheBytes), arenaOf(ranks), false);
  std::string text = fmt::format("=== {}: {}; {} ranks\n{}", question.host, question.node.summary(), ranks,
                                 selector.machine().describe());
  for (const Collective collective : question.collectives)
    for (const double size : question.sizes) text += table(selector, question, collective, size);
  return text;
}

}  // namespace tacc::sim

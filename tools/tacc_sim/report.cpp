#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

namespace tacc::sim {
namespace {

std::string shownBytes(double bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  return fmt::format("{:.4g} {}", bytes, units[unit]);
}

double share(std::size_t part, std::size_t whole) {
  return 100 * static_cast<double>(part) / static_cast<double>(std::max<std::size_t>(1, whole));
}

/// Of sorted values.
double quantile(const std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  return values[static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

}  // namespace

void judge(Point& point) {
  point.fastest = point.chosen = point.algorithms.size();
  for (std::size_t i = 0; i < point.algorithms.size(); ++i) {
    if (!point.outcomes[i].isReplayed) continue;
    if (point.fastest == point.algorithms.size() || point.outcomes[i].seconds < point.outcomes[point.fastest].seconds)
      point.fastest = i;
  }
  const bool split = partitionOf(point.collective) == Partition::split;
  const auto bytes = static_cast<std::size_t>(split ? point.bytes : point.bytes / point.machine->ranks());
  const Algorithm* chosen = &point.machine->selector().choose(point.collective, 0, bytes, {});
  const auto found = std::ranges::find(point.algorithms, chosen);
  const auto place = static_cast<std::size_t>(found - point.algorithms.begin());
  if (found != point.algorithms.end() && point.outcomes[place].isReplayed) point.chosen = place;
}

std::string table(const Point& point) {
  const std::vector<int> levels = point.machine->levels();
  std::string text = fmt::format("{} of {}\n   {:22} {:>12} {:>12} {:>7} {:>7} {:>7}", nameOf(point.collective),
                                 shownBytes(point.bytes), "", "SimGrid us", "model us", "ratio", "chunks", "rounds");
  for (const int level : levels) text += fmt::format(" {:>16}", point.machine->topology().level(level).name);
  text += '\n';
  std::vector<std::size_t> order(point.algorithms.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {},
                    [&](std::size_t i) { return std::pair(!point.outcomes[i].isReplayed, point.outcomes[i].seconds); });
  for (const std::size_t i : order) {
    const Outcome& outcome = point.outcomes[i];
    const std::string seconds = outcome.isReplayed ? fmt::format("{:.1f}", outcome.seconds * 1e6) : "too long";
    const std::string ratio = outcome.isReplayed ? fmt::format("{:.3f}", outcome.predicted / outcome.seconds) : "-";
    text +=
        fmt::format("{:2} {:22} {:>12} {:>12.1f} {:>7} {:>7} {:>7}", i == point.chosen ? "->" : "",
                    point.algorithms[i]->name, seconds, outcome.predicted * 1e6, ratio, outcome.chunks, outcome.rounds);
    for (const int level : levels) text += fmt::format(" {:>16}", shownBytes(outcome.bytesAt[level]));
    text += '\n';
  }
  if (point.isComparable()) text += fmt::format("   regret of the choice: {:.1f} %\n", 100 * point.regret());
  return text;
}

std::string summary(const std::vector<Point>& points) {
  std::vector<double> ratios, regrets;
  double processor = 0;
  for (const Point& point : points) {
    for (const Outcome& outcome : point.outcomes) {
      processor += outcome.processorSeconds;
      if (outcome.isReplayed) ratios.push_back(outcome.predicted / outcome.seconds);
    }
    if (point.isComparable()) regrets.push_back(point.regret());
  }
  std::ranges::sort(ratios);
  std::ranges::sort(regrets);
  const auto within = [&](double most) {
    return static_cast<std::size_t>(
        std::ranges::count_if(ratios, [&](double ratio) { return ratio <= 1 + most && ratio >= 1 / (1 + most); }));
  };
  const auto near = static_cast<std::size_t>(std::ranges::count_if(regrets, [](double r) { return r <= 0.1; }));
  return fmt::format(
      "model / SimGrid, {} plans: {:.1f} % within 5 %, {:.1f} % within 15 %, {:.1f} % within 50 %; least {:.3f}, 5 % "
      "{:.3f}, median {:.3f}, 95 % {:.3f}, most {:.3f}\n"
      "choice, {} calls: within 10 % of the fastest in {} of them ({:.1f} %); median {:.1f} %, 95 % {:.1f} %, worst "
      "{:.1f} % longer\n"
      "{:.0f} s of processor for the simulations\n",
      ratios.size(), share(within(0.05), ratios.size()), share(within(0.15), ratios.size()),
      share(within(0.5), ratios.size()), quantile(ratios, 0), quantile(ratios, 0.05), quantile(ratios, 0.5),
      quantile(ratios, 0.95), quantile(ratios, 1), regrets.size(), near, share(near, regrets.size()),
      100 * quantile(regrets, 0.5), 100 * quantile(regrets, 0.95), 100 * quantile(regrets, 1), processor);
}

void writeJson(std::ostream& out, const std::vector<Point>& points) {
  nlohmann::json all = nlohmann::json::array();
  for (const Point& point : points) {
    nlohmann::json one{{"topology", point.machine->topology().name()},
                       {"ranks", point.machine->ranks()},
                       {"collective", nameOf(point.collective)},
                       {"bytes", point.bytes}};
    if (point.isComparable()) one["regret"] = point.regret();
    for (std::size_t i = 0; i < point.algorithms.size(); ++i) {
      const Outcome& outcome = point.outcomes[i];
      nlohmann::json row{{"algorithm", point.algorithms[i]->name},
                         {"predicted_s", outcome.predicted},
                         {"messages", outcome.messages},
                         {"chunks", outcome.chunks},
                         {"rounds", outcome.rounds},
                         {"chosen", i == point.chosen}};
      if (outcome.isReplayed) row["simulated_s"] = outcome.seconds;
      if (outcome.isReplayed) row["took_s"] = outcome.processorSeconds;
      for (const int level : point.machine->levels())
        row["bytes"][point.machine->topology().level(level).name] = outcome.bytesAt[level];
      one["algorithms"].push_back(std::move(row));
    }
    all.push_back(std::move(one));
  }
  out << all.dump(1) << '\n';
}

}  // namespace tacc::sim

#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "support/sizes.hpp"

namespace tacc::tune {
namespace {

double shareWithin(const std::vector<double>& regrets, double most) {
  const auto good = std::ranges::count_if(regrets, [&](double regret) { return regret <= most; });
  return regrets.empty() ? 1 : static_cast<double>(good) / static_cast<double>(regrets.size());
}

std::string topologyOf(const TuningPlace& place) {
  return place.isMeasured ? "measured" : fmt::format("{:016x}", place.topology);
}

nlohmann::ordered_json entrantAsJson(const Entrant& entrant) {
  nlohmann::ordered_json json;
  json["name"] = entrant.route.name;
  if (entrant.route.seconds) json["model_us"] = *entrant.route.seconds * 1e6;
  if (entrant.seconds() > 0) json["us"] = entrant.seconds() * 1e6;
  json["rounds"] = entrant.blocks.size();
  for (const double block : entrant.blocks) json["rounds_us"].push_back(block * 1e6);
  if (!entrant.dropped.empty()) json["dropped"] = entrant.dropped;
  return json;
}

}  // namespace

Excess Row::regret() const {
  if (!entrants.empty()) return regretOf(entrants);
  return {result.seconds > 0 ? result.untunedSeconds / result.seconds - 1 : 0, 0};
}

std::string headerOf(const TuningPlace& place, std::size_t points) {
  std::string text = fmt::format("# tacc_tune {}: {} rank{} on {} host{}, {}", place.version, place.ranks(),
                                 place.ranks() == 1 ? "" : "s", place.ranksOfHost.size(),
                                 place.ranksOfHost.size() == 1 ? "" : "s", place.transport);
  if (place.ranksOfHost.size() > 1)
    text += fmt::format(", {:.1f} us, {:.4g} MB/s", place.speed.latency * 1e6, place.speed.bytesPerSecond * 1e-6);
  text += fmt::format("; topology {}; {} points, times in us\n", topologyOf(place), points);
  return text + fmt::format("# {:>13} {:>9}  {:22} {:>11}  {:22} {:>11}  {:22} {:>11} {:>8} {:>6}\n", "collective",
                            "size", "chosen", "time", "best", "time", "next", "time", "regret", "+-");
}

std::string lineOf(const Row& row) {
  const TunedSize& result = row.result;
  const Excess regret = row.regret();
  return fmt::format("{:>15} {:>9}  {:22} {:>11.1f}  {:22} {:>11.1f}  {:22} {:>11.1f} {:>6.1f} % {:>4.1f} %\n",
                     nameOf(row.point.collective), tools::formatSize(row.point.total), result.untuned,
                     result.untunedSeconds * 1e6, result.algorithm, result.seconds * 1e6, result.next,
                     result.nextSeconds * 1e6, regret.share * 100, regret.error * 100);
}

std::vector<double> regretsOf(const std::vector<Row>& rows) {
  std::vector<double> regrets;
  for (const Row& row : rows) regrets.push_back(row.regret().share);
  return regrets;
}

std::string summaryOf(const std::vector<double>& regrets, std::string_view what) {
  double worst = 0, sum = 0;
  for (const double regret : regrets) {
    worst = std::max(worst, regret);
    sum += std::log1p(regret);
  }
  const double mean = regrets.empty() ? 0 : std::expm1(sum / static_cast<double>(regrets.size()));
  return fmt::format(
      "# {}: within 5 % of the fastest at {:.0f} % of {} points, within 10 % at {:.0f} %; geometric mean {:.1f} %, "
      "worst {:.1f} %\n",
      what, shareWithin(regrets, 0.05) * 100, regrets.size(), shareWithin(regrets, 0.1) * 100, mean * 100, worst * 100);
}

std::string jsonOf(const TuningPlace& place, const std::vector<Row>& rows) {
  nlohmann::ordered_json json;
  json["version"] = place.version;
  json["transport"] = place.transport;
  json["topology"] = topologyOf(place);
  json["ranks_of_hosts"] = place.ranksOfHost;
  json["latency_us"] = place.speed.latency * 1e6;
  json["megabytes_per_second"] = place.speed.bytesPerSecond * 1e-6;
  const std::vector<double> regrets = regretsOf(rows);
  json["within_5_percent"] = shareWithin(regrets, 0.05);
  json["within_10_percent"] = shareWithin(regrets, 0.1);
  json["points"] = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json point;
    point["collective"] = nameOf(row.point.collective);
    point["size"] = row.point.total;
    point["bytes"] = row.result.bytes;
    point["chosen"] = row.result.untuned;
    point["chosen_us"] = row.result.untunedSeconds * 1e6;
    point["best"] = row.result.algorithm;
    point["best_us"] = row.result.seconds * 1e6;
    point["regret"] = row.regret().share;
    point["regret_error"] = row.regret().error;
    for (const Entrant& entrant : row.entrants) point["candidates"].push_back(entrantAsJson(entrant));
    json["points"].push_back(std::move(point));
  }
  return json.dump(1) + "\n";
}

std::string barOf(double done) {
  constexpr std::size_t width = 20;
  const auto filled = static_cast<std::size_t>(std::clamp(done, 0.0, 1.0) * width);
  return std::string(filled, '#') + std::string(width - filled, '.');
}

}  // namespace tacc::tune

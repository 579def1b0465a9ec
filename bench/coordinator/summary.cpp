#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "coordinator/reports.hpp"
#include "support/sizes.hpp"
#include "worker/element.hpp"

namespace tacc::bench {
namespace {

/// Geometric mean and minimum of ratios.
class Ratios {
 public:
  void add(double ratio, size_t bytes) {
    if (count_ == 0 || ratio < worst_) {
      worst_ = ratio;
      worstBytes_ = bytes;
    }
    logarithms_ += std::log(ratio);
    ++count_;
  }

  std::string describe(const std::string& name) const {
    if (count_ == 0) return fmt::format("{} not comparable", name);
    const double mean = std::exp(logarithms_ / static_cast<double>(count_));
    if (count_ == 1) return fmt::format("{:.2f} x {}", mean, name);
    return fmt::format("{:.2f} x {} (worst {:.2f} at {})", mean, name, worst_, tools::formatSize(worstBytes_));
  }

 private:
  double logarithms_ = 0;
  double worst_ = 0;
  size_t worstBytes_ = 0;
  size_t count_ = 0;
};

template <typename T, typename Name>
std::string joinNames(const std::vector<T>& values, Name name) {
  std::string text;
  for (const T value : values) text += fmt::format("{}{}", text.empty() ? "" : "+", name(value));
  return text;
}

std::string compare(const Options& options, const std::vector<Row>& rows) {
  std::string text;
  Ratios fastest;
  for (size_t i = 0; i < options.peers.size(); ++i) {
    Ratios ratios;
    for (const Row& row : rows)
      if (row.peers[i].outcome) ratios.add(row.ratio(*row.peers[i].outcome), row.bytes);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ratios.describe(options.peers[i]));
  }
  for (const Row& row : rows) {
    double best = 0;
    for (const PeerOutcome& peer : row.peers)
      if (peer.outcome && (best == 0 || row.ratio(*peer.outcome) < best)) best = row.ratio(*peer.outcome);
    if (best > 0) fastest.add(best, row.bytes);
  }
  if (options.peers.size() > 1) text += fmt::format(", {}", fastest.describe("the fastest of them"));
  return text;
}

std::string describeAlone(const std::vector<Row>& rows) {
  double least = 0;
  double bandwidth = 0;
  for (const Row& row : rows) {
    const double time = row.outOfPlace.microseconds;
    if (least == 0 || time < least) least = time;
    bandwidth = std::max(bandwidth, row.busBandwidth(time));
  }
  return fmt::format("least time {:.2f} us, highest bus bandwidth {:.2f} GB/s", least, bandwidth);
}

/// Less cannot be told from noise.
constexpr double worthTelling = 0.02;

std::string warnOfStolenTime(const std::vector<Row>& rows) {
  const auto worst =
      std::max_element(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.stolen < b.stolen; });
  if (worst->stolen < worthTelling) return "";
  return fmt::format(
      "# the hypervisor gave up to {:.0f} % of this machine's processor time to others (at {}): times are longer\n",
      100 * worst->stolen, tools::formatSize(worst->bytes));
}

}  // namespace

std::string summarize(const Options& options, const std::vector<Row>& rows) {
  if (rows.empty()) return "# summary: nothing was measured\n";
  std::string text = warnOfStolenTime(rows);
  text += fmt::format("# summary: {} rank{}, {} {}", options.ranks, options.ranks == 1 ? "" : "s",
                      options.collective->name, joinNames(options.types, typeName));
  if (options.collective->reduces) text += fmt::format(" {}", joinNames(options.ops, opName));
  text += fmt::format(
      ", {} memory: {}", options.memoryName(),
      options.peers.empty() ? describeAlone(rows) : fmt::format("geometric mean {}", compare(options, rows)));
  Ratios bound;
  for (const Row& row : rows)
    if (row.bound) bound.add(row.ratio(*row.bound), row.bytes);
  if (options.bound)
    text += fmt::format(", {}", bound.describe(options.cluster ? "the network bound" : "the memory bound"));
  return text + '\n';
}

}  // namespace tacc::bench

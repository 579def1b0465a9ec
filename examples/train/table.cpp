#include "table.hpp"

#include <algorithm>

namespace tacc::train {
namespace {

std::string tauOf(const Run& run) { return run.tau > 0 ? fmt::format("{}", run.tau) : "-"; }

/// How many times faster than "original" with the same tau; "-" where there was none.
std::string speedup(const Curve& curve, const std::vector<Curve>& curves) {
  const auto original = std::ranges::find_if(
      curves, [&](const Curve& other) { return other.run.mode == "original" && other.run.tau == curve.run.tau; });
  if (original == curves.end()) return "-";
  return fmt::format("{:.2f}", original->records.back().seconds / curve.records.back().seconds);
}

}  // namespace

double Curve::waitedShare() const {
  double waited = 0, before = 0;
  for (const EpochRecord& record : records) {
    waited += record.waitedShare * (record.seconds - before);
    before = record.seconds;
  }
  return before > 0 ? waited / before : 0;
}

std::string tableHead(const std::string& title) {
  return fmt::format(
      "# {}\n"
      "# loss and train: of the epoch's batches; test: of the center; waited: share of the time waiting for\n"
      "# communication; hidden: share of communication that ran beside computation\n"
      "# {:<20} {:>4} {:>5} {:>9} {:>8} {:>7} {:>9} {:>8} {:>8}\n"
      "# {:<20} {:>4} {:>5} {:>9} {:>8} {:>7} {:>9} {:>8} {:>8}\n",
      title, "mode", "tau", "epoch", "loss", "train", "test", "time", "waited", "hidden", "", "", "", "", "(%)", "(%)",
      "(s)", "(%)", "(%)");
}

std::string tableLine(const Run& run, const EpochRecord& record) {
  return fmt::format("  {:<20} {:>4} {:>5} {:>9.4f} {:>8.2f} {:>7.2f} {:>9.3f} {:>8.1f} {:>8.1f}\n", run.mode,
                     tauOf(run), record.epoch, record.loss, 100 * record.trainAccuracy, 100 * record.testAccuracy,
                     record.seconds, 100 * record.waitedShare, 100 * record.hiddenShare);
}

std::string summaryTable(const std::vector<Curve>& curves) {
  if (curves.size() < 2) return "";
  std::string text = fmt::format("#\n# {:<20} {:>4} {:>9} {:>7} {:>9} {:>8} {:>20}\n", "summary", "tau", "loss", "test",
                                 "time", "waited", "times original's");
  text += fmt::format("# {:<20} {:>4} {:>9} {:>7} {:>9} {:>8} {:>20}\n", "", "", "", "(%)", "(s)", "(%)", "speed");
  for (const Curve& curve : curves) {
    const EpochRecord& last = curve.records.back();
    text += fmt::format("# {:<20} {:>4} {:>9.4f} {:>7.2f} {:>9.3f} {:>8.1f} {:>20}\n", curve.run.mode, tauOf(curve.run),
                        last.loss, 100 * last.testAccuracy, last.seconds, 100 * curve.waitedShare(),
                        speedup(curve, curves));
  }
  return text;
}

}  // namespace tacc::train

#include "comparison.hpp"

#include <algorithm>

#include "errors.hpp"

namespace tacc::train {

Comparison::Row& Comparison::rowOf(const Run& run) {
  const auto known = std::ranges::find_if(rows_, [&](const Row& row) { return row.run.label() == run.label(); });
  if (known != rows_.end()) return *known;
  rows_.push_back({run, {}});
  return rows_.back();
}

void Comparison::add(const Run& run, std::uint64_t seed, double accuracy, std::size_t images) {
  std::vector<Tested>& seeds = rowOf(run).seeds;
  auto tested = std::ranges::find(seeds, seed, &Tested::seed);
  if (tested == seeds.end()) tested = seeds.insert(seeds.end(), Tested{.seed = seed});
  tested->correct += accuracy * static_cast<double>(images);
  tested->images += static_cast<double>(images);
}

std::string Comparison::behind(const Row& row) const {
  const auto serial = std::ranges::find_if(rows_, [](const Row& other) { return other.run.mode == "serial"; });
  if (serial == rows_.end()) return "-";
  double most = -100;
  for (std::size_t i = 0; i < row.seeds.size(); ++i)
    most = std::max(most, serial->seeds[i].percent() - row.seeds[i].percent());
  return fmt::format("{:.2f}", most + 0.0);
}

std::string Comparison::table() const {
  if (rows_.empty()) return "";
  std::string head = fmt::format("#\n# {:<20} {:>4}", "accuracy (%)", "tau");
  for (const Tested& tested : rows_[0].seeds) head += fmt::format(" {:>9}", fmt::format("seed {}", tested.seed));
  std::string text = head + fmt::format(" {:>8}\n", "behind");
  for (const Row& row : rows_) {
    text += fmt::format("# {:<20} {:>4}", row.run.mode, row.run.tau > 0 ? fmt::format("{}", row.run.tau) : "-");
    for (const Tested& tested : row.seeds) text += fmt::format(" {:>9.2f}", tested.percent());
    text += fmt::format(" {:>8}\n", behind(row));
  }
  return text;
}

}  // namespace tacc::train

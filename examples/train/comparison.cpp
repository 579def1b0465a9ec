#include "comparison.hpp"

#include <algorithm>

#include "errors.hpp"

namespace tacc::train {

Comparison::Way& Comparison::wayOf(const Run& run) {
  const auto known = std::ranges::find_if(ways_, [&](const Way& way) { return way.run.label() == run.label(); });
  if (known != ways_.end()) return *known;
  ways_.push_back({run, {}});
  return ways_.back();
}

void Comparison::add(const Run& run, std::uint64_t seed, double accuracy, std::size_t images) {
  std::vector<Tested>& seeds = wayOf(run).seeds;
  auto tested = std::ranges::find(seeds, seed, &Tested::seed);
  if (tested == seeds.end()) tested = seeds.insert(seeds.end(), Tested{.seed = seed});
  tested->correct += accuracy * static_cast<double>(images);
  tested->images += static_cast<double>(images);
}

std::string Comparison::behind(const Way& way) const {
  const auto serial = std::ranges::find_if(ways_, [](const Way& other) { return other.run.mode == "serial"; });
  if (serial == ways_.end()) return "-";
  double most = -100;
  for (std::size_t i = 0; i < way.seeds.size(); ++i)
    most = std::max(most, serial->seeds[i].percent() - way.seeds[i].percent());
  return fmt::format("{:.2f}", most + 0.0);
}

std::string Comparison::table() const {
  if (ways_.empty()) return "";
  std::string head = fmt::format("#\n# {:<20} {:>4}", "accuracy (%)", "tau");
  for (const Tested& tested : ways_[0].seeds) head += fmt::format(" {:>9}", fmt::format("seed {}", tested.seed));
  std::string text = head + fmt::format(" {:>8}\n", "behind");
  for (const Way& way : ways_) {
    text += fmt::format("# {:<20} {:>4}", way.run.mode, way.run.tau > 0 ? fmt::format("{}", way.run.tau) : "-");
    for (const Tested& tested : way.seeds) text += fmt::format(" {:>9.2f}", tested.percent());
    text += fmt::format(" {:>8}\n", behind(way));
  }
  return text;
}

}  // namespace tacc::train

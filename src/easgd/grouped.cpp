#include "easgd/grouped.hpp"

#include <algorithm>
#include <vector>

#include "easgd/fused_update.hpp"

namespace tacc {
namespace {

/// Of a rank: equal in a group, different in different ones.
int colorOf(const Standing& standing, const EasgdSettings& settings) {
  constexpr int mostDomains = 1024;  // of a host
  switch (settings.group) {
    case taccEasgdGroupHost:
      return standing.host;
    case taccEasgdGroupNuma:
      return standing.host * mostDomains + standing.numaDomain % mostDomains;
    case taccEasgdGroupNetwork:
      return standing.networkGroup;
    case taccEasgdGroupColor:
      break;
  }
  return settings.color;
}

}  // namespace

GroupedExchange::GroupedExchange(const ExchangeParts& parts) {
  Communicator& all = parts.communicator;
  const int mine = colorOf(all.standing(), parts.settings);
  std::vector<int> colors(static_cast<std::size_t>(all.ranks()));
  all.run(
      {.collective = Collective::allGather, .send = &mine, .receive = colors.data(), .count = 1, .type = taccInt32});
  const auto together = std::ranges::count(colors, mine);
  std::ranges::sort(colors);
  groups_ = static_cast<int>(std::unique(colors.begin(), colors.end()) - colors.begin());
  if (groups_ > 1) group_ = all.split(mine, all.rank(), all.config());
  inner_ = group_ ? group_.get() : &all;
  between_ = std::make_unique<AveragedExchange>(parts, 1.0f / static_cast<float>(together));
}

void GroupedExchange::exchange(const LocalStep& step, float alpha) {
  LocalStep pulled = step;
  pulled.gradient = nullptr;
  between_->exchange(pulled, alpha);
  if (step.gradient != nullptr) stepAlone(step, between_->count());
}

void GroupedExchange::stepAlone(const LocalStep& step, std::size_t count) { allReduceUpdate(*inner_, step, count); }

}  // namespace tacc

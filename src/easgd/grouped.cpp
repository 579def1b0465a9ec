#include "easgd/grouped.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/error.hpp"
#include "easgd/fused_update.hpp"
#include "easgd/group_color.hpp"

namespace tacc {
namespace {

/// Which ranks those of a part are outside, for messages.
std::string namesOf(const std::vector<int>& members) {
  constexpr std::size_t most = 8;
  std::string text = "; counted among those that exchange here: ";
  for (std::size_t i = 0; i < std::min(members.size(), most); ++i)
    text += fmt::format("{}{} is rank {}", i == 0 ? "" : ", ", i, members[i]);
  return members.size() > most ? text + " ..." : text;
}

}  // namespace

GroupedExchange::GroupedExchange(const ExchangeParts& parts) : count_(parts.count) {
  Communicator& all = parts.communicator;
  const std::vector<int> colors = gatherGroupColors(all, parts.settings);
  const auto rank = static_cast<std::size_t>(all.rank());
  const auto sizeOf = [&](int color) { return std::ranges::count(colors, color); };
  const auto size = sizeOf(colors[rank]);
  const auto index = std::count(colors.begin(), colors.begin() + all.rank(), colors[rank]);
  std::vector<int> distinct = colors;
  std::ranges::sort(distinct);
  groups_ = static_cast<int>(std::unique(distinct.begin(), distinct.end()) - distinct.begin());
  const bool areEqual = std::ranges::all_of(colors, [&](int color) { return sizeOf(color) == size; });

  // The n-th rank of each group, and the ranks of this one's.
  std::map<int, std::ptrdiff_t> met;
  for (std::size_t r = 0; r < colors.size(); ++r) {
    if (met[colors[r]]++ == index) laneMembers_.push_back(static_cast<int>(r));
    if (colors[r] == colors[rank]) groupMembers_.push_back(static_cast<int>(r));
  }
  if (groups_ > 1) group_ = all.split(colors[rank], all.rank(), all.config());
  inner_ = group_ ? group_.get() : &all;
  isSliced_ = areEqual && size > 1;
  if (!isSliced_) {
    between_ = std::make_unique<AveragedExchange>(parts, 1.0f / static_cast<float>(size));
    return;
  }
  lane_ = all.split(static_cast<int>(index), all.rank(), all.config());
  const std::size_t each = count_ / static_cast<std::size_t>(size);
  mine_ = {static_cast<std::size_t>(index) * each, each};
  if (index == size - 1) mine_.count = count_ - mine_.begin;
  between_ = std::make_unique<AveragedExchange>(
      ExchangeParts{*lane_, parts.background, parts.settings, parts.weights + mine_.begin, mine_.count, mine_.begin});
}

template <class Work>
void GroupedExchange::callOn(const Communicator* part, const std::vector<int>& members, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    const Error told(error.result(), part == nullptr ? error.what() : error.what() + namesOf(members));
    if (group_) group_->failWith(told);
    if (lane_) lane_->failWith(told);
    throw told;
  }
}

void GroupedExchange::gather(float* numbers) {
  const auto size = static_cast<std::size_t>(inner_->ranks());
  const std::size_t each = count_ / size, rest = count_ % size;
  const int last = inner_->ranks() - 1;
  callOn(group_.get(), groupMembers_, [&] {
    if (each > 0)
      inner_->run({.collective = Collective::allGather,
                   .send = numbers + static_cast<std::size_t>(inner_->rank()) * each,
                   .receive = numbers,
                   .count = each,
                   .type = taccFloat32});
    if (rest > 0)
      inner_->run({.collective = Collective::broadcast,
                   .send = inner_->rank() == last ? numbers + each * size : nullptr,
                   .receive = numbers + each * size,
                   .count = rest,
                   .type = taccFloat32,
                   .root = last});
  });
}

void GroupedExchange::exchange(const LocalStep& step, float alpha) {
  LocalStep pulled = step;
  pulled.gradient = nullptr;
  pulled.velocity = nullptr;
  pulled.weights = step.weights + mine_.begin;
  callOn(lane_.get(), laneMembers_, [&] { between_->exchange(pulled, alpha); });
  if (isSliced_) gather(step.weights);
  if (step.gradient != nullptr) stepAlone(step, count_);
}

void GroupedExchange::stepAlone(const LocalStep& step, std::size_t count) {
  callOn(group_.get(), groupMembers_, [&] { allReduceUpdate(*inner_, step, count); });
}

void GroupedExchange::readCenter(float* to) {
  callOn(lane_.get(), laneMembers_, [&] { between_->readCenter(to + mine_.begin); });
  if (isSliced_) gather(to);
}

}  // namespace tacc

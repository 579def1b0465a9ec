#include "tag_ranges.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace tacc::mpi {
namespace {

constexpr int bitsOfWord = 64;

std::size_t wordOf(int range) { return static_cast<std::size_t>(range / bitsOfWord); }
std::uint64_t bitOf(int range) { return std::uint64_t{1} << (range % bitsOfWord); }

}  // namespace

void TagRanges::open(int ranges) {
  const std::lock_guard lock(mutex_);
  ranges_ = ranges;
  next_ = 0;
  taken_.assign(wordOf(ranges + bitsOfWord - 1), 0);
}

/// One that was free on all ranks when they were asked.
std::optional<int> TagRanges::find(const RangeAgreement& ranks) {
  int next = 0;
  {
    const std::lock_guard lock(mutex_);
    next = next_;
  }
  const int fresh = ranks.most(next);
  if (fresh < ranges_) return fresh;
  std::vector<std::uint64_t> taken;
  {
    const std::lock_guard lock(mutex_);
    taken = taken_;
  }
  ranks.join(taken);
  const auto word = std::ranges::find_if(taken, [](std::uint64_t bits) { return bits != ~std::uint64_t{0}; });
  if (word == taken.end()) return std::nullopt;
  const int found = static_cast<int>(word - taken.begin()) * bitsOfWord + std::countr_one(*word);
  if (found >= ranges_) return std::nullopt;
  return found;
}

bool TagRanges::claim(int range) {
  const std::lock_guard lock(mutex_);
  if ((taken_[wordOf(range)] & bitOf(range)) != 0) return false;
  taken_[wordOf(range)] |= bitOf(range);
  next_ = std::max(next_, range + 1);
  return true;
}

/// Other threads of some of the ranks may look for one at the same time, and take what was found first: then all look
/// again.
std::optional<int> TagRanges::take(const RangeAgreement& ranks) {
  for (;;) {
    const std::optional<int> found = find(ranks);
    if (!found) return std::nullopt;
    const bool isMine = claim(*found);
    if (ranks.all(isMine)) return found;
    if (isMine) giveBack(*found);
  }
}

void TagRanges::giveBack(int range) {
  const std::lock_guard lock(mutex_);
  taken_[wordOf(range)] &= ~bitOf(range);
}

}  // namespace tacc::mpi

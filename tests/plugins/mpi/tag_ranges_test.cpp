// Ranks that take ranges of tags together and give them back each at its own time: drawn, against who has which.
#include "tag_ranges.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace tacc::mpi {
namespace {

/// Some ranks, a thread each, that agree on something again and again.
class Meeting {
 public:
  explicit Meeting(std::size_t ranks) : given_(ranks), arrived_(static_cast<std::ptrdiff_t>(ranks)) {}

  RangeAgreement of(std::size_t member) {
    using Words = std::vector<std::uint64_t>;
    const auto all = [this, member](Words mine) {
      given_[member] = std::move(mine);
      arrived_.arrive_and_wait();
      const std::vector<Words> given = given_;
      arrived_.arrive_and_wait();
      return given;
    };
    return {[all](int mine) {
              std::uint64_t most = 0;
              for (const Words& one : all({static_cast<std::uint64_t>(mine)})) most = std::max(most, one[0]);
              return static_cast<int>(most);
            },
            [all](bool mine) {
              bool are = true;
              for (const Words& one : all({mine ? std::uint64_t{1} : 0})) are = are && one[0] != 0;
              return are;
            },
            [all](Words& words) {
              for (const Words& one : all(words))
                for (std::size_t i = 0; i < words.size(); ++i) words[i] |= one[i];
            }};
  }

 private:
  std::vector<std::vector<std::uint64_t>> given_;
  std::barrier<> arrived_;
};

using Members = std::vector<std::size_t>;

/// What each of them got.
std::vector<std::optional<int>> takeTogether(std::deque<TagRanges>& ranks, const Members& members) {
  Meeting meeting(members.size());
  std::vector<std::optional<int>> found(members.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < members.size(); ++i)
    threads.emplace_back([&, i] { found[i] = ranks[members[i]].take(meeting.of(i)); });
  for (std::thread& thread : threads) thread.join();
  return found;
}

TEST(TagRanges, AreHadByOneGroupAtATimeAndAllCanBeHad) {
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    std::mt19937 engine(seed);
    const auto upTo = [&engine](std::size_t most) { return static_cast<std::size_t>(engine() % (most + 1)); };
    const std::size_t number = 2 + upTo(3);
    const int ranges = std::vector<int>{1, 7, 64, 130}[seed - 1];
    std::deque<TagRanges> ranks;
    for (std::size_t r = 0; r < number; ++r) ranks.emplace_back(ranges);
    std::vector<std::set<int>> had(number), everHad(number);
    for (int round = 0; round < 3 * ranges + 60; ++round) {
      Members members;
      for (std::size_t r = 0; r < number; ++r)
        if (upTo(2) != 0) members.push_back(r);
      if (members.empty()) continue;
      std::set<int> taken, used;
      for (const std::size_t r : members) {
        taken.insert(had[r].begin(), had[r].end());
        used.insert(everHad[r].begin(), everHad[r].end());
      }
      const auto found = takeTogether(ranks, members);
      for (const auto& one : found) ASSERT_EQ(one, found[0]) << "seed " << seed << ", round " << round;
      ASSERT_EQ(found[0].has_value(), taken.size() < static_cast<std::size_t>(ranges));
      if (found[0]) {
        ASSERT_GE(*found[0], 0);
        ASSERT_LT(*found[0], ranges);
        ASSERT_FALSE(taken.contains(*found[0])) << "one of the ranks has it";
        // One that was had comes only when the last one has been had, too.
        ASSERT_TRUE(!used.contains(*found[0]) || used.contains(ranges - 1));
        for (const std::size_t r : members) {
          had[r].insert(*found[0]);
          everHad[r].insert(*found[0]);
        }
      }
      for (std::size_t r = 0; r < number; ++r)
        while (!had[r].empty() && upTo(2) == 0) {
          const auto one = std::next(had[r].begin(), static_cast<std::ptrdiff_t>(upTo(had[r].size() - 1)));
          ranks[r].giveBack(*one);
          had[r].erase(one);
        }
    }
  }
}

TEST(TagRanges, AreOthersForGroupsThatTakeThemAtTheSameTime) {
  constexpr int ranges = 12, rounds = 200;
  std::deque<TagRanges> ranks;
  for (int r = 0; r < 3; ++r) ranks.emplace_back(ranges);
  for (int round = 0; round < rounds; ++round) {
    const std::vector<Members> groups{{0, 1}, {1, 2}, {2, 0}};
    std::vector<std::vector<std::optional<int>>> found(groups.size());
    std::vector<std::thread> threads;
    for (std::size_t g = 0; g < groups.size(); ++g)
      threads.emplace_back([&, g] { found[g] = takeTogether(ranks, groups[g]); });
    for (std::thread& thread : threads) thread.join();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      ASSERT_TRUE(found[g][0].has_value());
      ASSERT_EQ(found[g][0], found[g][1]);
      for (std::size_t other = 0; other < g; ++other) ASSERT_NE(found[g][0], found[other][0]) << "round " << round;
    }
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (const std::size_t r : groups[g]) ranks[r].giveBack(*found[g][0]);
  }
}

}  // namespace
}  // namespace tacc::mpi

// Tables in call lines: what fits is read as it was written.
#include "engine/short_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace tacc::test {
namespace {

using Place = ShortTable::Place;

TEST(ShortTable, isReadAsItWasWritten) {
  constexpr std::size_t slotBytes = 1000;
  for (std::size_t words = 2; words <= 24; ++words) {
    const ShortTable shortTable(words);
    ASSERT_EQ(shortTable.isPossible(), 1 + 2 * (words - 1) <= lineBesideEager) << words;
    std::vector<std::uint64_t> table{1};
    for (std::size_t w = 1; w < words; ++w) table.push_back(w % 2 == 0 ? UINT16_MAX : w);
    alignas(cacheLine) std::array<std::byte, linePayload> line{};
    std::vector<std::byte> slot(slotBytes);
    const auto expectTable = [&](Place place, const std::byte* data) {
      const PostedTable posted(words, line.data(), slot.data());
      EXPECT_EQ(posted.place(), place) << words;
      EXPECT_EQ(posted.data(), data) << words;
      for (std::size_t w = 0; w < words; ++w) EXPECT_EQ(posted.word(w), table[w]) << words << ", word " << w;
    };
    if (shortTable.isPossible()) {
      const std::size_t data = linePayload - 1 - 2 * (words - 1);
      ASSERT_EQ(shortTable.placeOf(table, data, slotBytes), Place::line) << words;
      std::byte* const to = shortTable.write(table, Place::line, line.data());
      ASSERT_EQ(to + data, line.data() + line.size()) << words;
      std::memset(to, 5, data);
      expectTable(Place::line, to);
      ASSERT_EQ(shortTable.placeOf(table, data + 1, slotBytes), Place::apart) << words;
      ASSERT_EQ(shortTable.placeOf(table, slotBytes, slotBytes), Place::apart) << words;
      ASSERT_LE(shortTable.write(table, Place::apart, line.data()), line.data() + lineBesideEager) << words;
      expectTable(Place::apart, slot.data());
    }
    EXPECT_EQ(shortTable.placeOf(table, slotBytes + 1, slotBytes), Place::slot) << words;
    table.back() = UINT16_MAX + 1;
    EXPECT_EQ(shortTable.placeOf(table, 0, slotBytes), Place::slot) << words;
    if (shortTable.isPossible()) ShortTable::writeNone(line.data());
    std::memcpy(slot.data(), table.data(), words * sizeof table[0]);
    expectTable(Place::slot, slot.data() + words * sizeof table[0]);
  }
}

}  // namespace
}  // namespace tacc::test

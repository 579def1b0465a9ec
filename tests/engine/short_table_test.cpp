// Tables in call lines: what fits is read as it was written.
#include "engine/short_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace tacc::test {
namespace {

TEST(ShortTable, isReadAsItWasWritten) {
  for (std::size_t words = 2; words <= 24; ++words) {
    const ShortTable shortTable(words);
    ASSERT_EQ(shortTable.isPossible(), 1 + 2 * (words - 1) < linePayload) << words;
    if (!shortTable.isPossible()) continue;
    const std::size_t data = linePayload - 1 - 2 * (words - 1);
    std::vector<std::uint64_t> table{1}, found(words, 77);
    for (std::size_t w = 1; w < words; ++w) table.push_back(w % 2 == 0 ? UINT16_MAX : w);
    ASSERT_TRUE(shortTable.holds(table, data)) << words;
    EXPECT_FALSE(shortTable.holds(table, data + 1)) << words;
    alignas(cacheLine) std::array<std::byte, linePayload> line;
    std::byte* const to = shortTable.write(table, line.data());
    ASSERT_EQ(to + data, line.data() + line.size()) << words;
    std::memset(to, 5, data);
    ASSERT_TRUE(ShortTable::isIn(line.data()));
    EXPECT_EQ(shortTable.read(line.data(), found), to) << words;
    EXPECT_EQ(found, table) << words;
    ShortTable::writeNone(line.data());
    EXPECT_FALSE(ShortTable::isIn(line.data()));
    table.back() = UINT16_MAX + 1;
    EXPECT_FALSE(shortTable.holds(table, 0)) << words;
  }
}

}  // namespace
}  // namespace tacc::test

#include "core/parse.hpp"

#include <gtest/gtest.h>

#include <array>

namespace tacc {
namespace {

TEST(ParseSize, TakesBinarySuffixes) {
  EXPECT_EQ(parseSize("0"), 0u);
  EXPECT_EQ(parseSize("4097"), 4097u);
  EXPECT_EQ(parseSize("8k"), 8192u);
  EXPECT_EQ(parseSize("100M"), 104'857'600u);
  EXPECT_EQ(parseSize("2G"), 2'147'483'648u);
  EXPECT_EQ(parseSize("18446744073709551615"), 18'446'744'073'709'551'615u);
}

TEST(ParseSize, RefusesWhatIsNoSize) {
  for (const char* text : {"", "K", "-1", "+1", " 1", "1 ", "1KB", "1T", "1.5M", "0x10", "18446744073709551616",
                           "18014398509481984K", "17179869184G"}) {
    EXPECT_EQ(parseSize(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(ParseSeconds, TakesUnits) {
  EXPECT_DOUBLE_EQ(parseSeconds("30").value(), 30.0);
  EXPECT_DOUBLE_EQ(parseSeconds("0.5").value(), 0.5);
  EXPECT_DOUBLE_EQ(parseSeconds("2s").value(), 2.0);
  EXPECT_DOUBLE_EQ(parseSeconds("250ms").value(), 0.25);
  EXPECT_DOUBLE_EQ(parseSeconds("10us").value(), 1e-5);
  EXPECT_DOUBLE_EQ(parseSeconds("0").value(), 0.0);
  EXPECT_DOUBLE_EQ(parseSeconds("1e9").value(), longestSeconds);
}

TEST(ParseSeconds, RefusesWhatIsNoDuration) {
  for (const char* text : {"", "s", "-1", "1 s", "1h", "nan", "inf", "1e10", "1e400", "1,5", "1sms"}) {
    EXPECT_EQ(parseSeconds(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(ParseInteger, KeepsTheRange) {
  EXPECT_EQ(parseInteger("0", 0, 10), 0);
  EXPECT_EQ(parseInteger("10", 0, 10), 10);
  EXPECT_EQ(parseInteger("-3", -3, 10), -3);
  for (const char* text : {"", "11", "-1", "1x", "1.0", "99999999999999999999"}) {
    EXPECT_EQ(parseInteger(text, 0, 10), std::nullopt) << '"' << text << '"';
  }
}

TEST(Nearest, FindsTheFewestEdits) {
  constexpr std::array<std::string_view, 3> words = {"ring", "twoshot", "oneshot"};
  EXPECT_EQ(nearest("rign", words), "ring");
  EXPECT_EQ(nearest("twosho", words), "twoshot");
  EXPECT_EQ(nearest("oneshots", words), "oneshot");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest("butterfly", words), "");
}

TEST(ListOf, SeparatesByCommas) {
  constexpr std::array<std::string_view, 2> words = {"a", "b"};
  EXPECT_EQ(listOf(words), "a, b");
  EXPECT_EQ(listOf({}), "");
}

}  // namespace
}  // namespace tacc

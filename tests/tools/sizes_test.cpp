#include "support/sizes.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace tacc::tools {
namespace {

using Sizes = std::vector<size_t>;

TEST(Sizes, unitsAreBinary) {
  EXPECT_EQ(parseSize("0"), 0U);
  EXPECT_EQ(parseSize("8"), 8U);
  EXPECT_EQ(parseSize("4K"), 4096U);
  EXPECT_EQ(parseSize("100M"), 104857600U);
  EXPECT_EQ(parseSize("2g"), size_t{2} << 30);
}

TEST(Sizes, anythingElseIsRefused) {
  for (const char* text : {"", "K", "-8", "8Q", "8KB", "1.5M", "8 K", "99999999999999999999", "9999999999999G"})
    EXPECT_THROW(parseSize(text), std::invalid_argument) << text;
}

TEST(Sizes, goUpByAFactorOrAStep) {
  EXPECT_EQ((SizeRange{8, 128, 4, 0}.list()), (Sizes{8, 32, 128}));
  EXPECT_EQ((SizeRange{8, 127, 4, 0}.list()), (Sizes{8, 32}));
  EXPECT_EQ((SizeRange{0, 25, 0, 10}.list()), (Sizes{0, 10, 20}));
  EXPECT_EQ((SizeRange{64, 64, 2, 0}.list()), (Sizes{64}));
  EXPECT_EQ((SizeRange{0, 0, 2, 0}.list()), (Sizes{0}));
  EXPECT_EQ((SizeRange{0, 0, 0, 8}.list()), (Sizes{0}));
  EXPECT_EQ((SizeRange{size_t{1} << 62, SIZE_MAX, 2, 0}.list()), (Sizes{size_t{1} << 62, size_t{1} << 63}));
}

/// Each rank's part is the longest that is whole lines of 16 bytes, or shorter than one, and at least an element.
TEST(Sizes, partsAreWholeLinesOrShorterThanOne) {
  for (const size_t elementSize : {1, 2, 4, 8, 16})
    for (int ranks = 1; ranks <= 40; ranks += 3)
      for (size_t elements = 0; elements < 3000; elements += 1 + elements / 16) {
        SCOPED_TRACE(testing::Message() << elements << " of " << elementSize << " bytes on " << ranks << " ranks");
        const size_t part = partOf(elements, elementSize, ranks), line = 16 / elementSize;
        const auto parts = static_cast<size_t>(ranks);
        if (elements < parts) {
          EXPECT_EQ(part, elements == 0 ? 0U : 1U);
          continue;
        }
        EXPECT_LE(part * parts, elements);
        EXPECT_TRUE(part % line == 0 || part < line) << part;
        const size_t longer = part < line ? part + 1 : part + line;
        EXPECT_GT(longer * parts, elements) << "a part of " << longer << " would fit";
      }
}

TEST(Sizes, areShownInTheirUnit) {
  EXPECT_EQ(formatSize(8), "8 B");
  EXPECT_EQ(formatSize(4096), "4 KiB");
  EXPECT_EQ(formatSize(104857600), "100 MiB");
  EXPECT_EQ(formatSize(size_t{3} << 40), "3072 GiB");
}

}  // namespace
}  // namespace tacc::tools

#include "worker/element.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>

namespace tacc::bench {
namespace {

uint16_t bitsOf(taccDataType_t type, double value) {
  uint16_t bits = 0;
  storeElement(type, value, &bits);
  return bits;
}

TEST(Element, namesGoBothWays) {
  for (int i = 0; i < numTypes; ++i) {
    const auto type = static_cast<taccDataType_t>(i);
    EXPECT_EQ(typeFromName(typeName(type)), type);
  }
  for (int i = 0; i < numOps; ++i) {
    const auto op = static_cast<taccRedOp_t>(i);
    EXPECT_EQ(opFromName(opName(op)), op);
  }
  EXPECT_FALSE(typeFromName("float32"));
  EXPECT_FALSE(opFromName("mean"));
}

TEST(Element, wholeNumbersSurviveInEveryType) {
  for (int i = 0; i < numTypes; ++i) {
    const auto type = static_cast<taccDataType_t>(i);
    for (const double value : {0.0, 1.0, 2.0, 17.0, 100.0, 127.0}) {
      char bytes[8] = {};
      storeElement(type, value, bytes);
      EXPECT_EQ(loadElement(type, bytes), value) << typeName(type);
    }
  }
}

TEST(Element, halfHasTheBitsOfBinary16) {
  EXPECT_EQ(bitsOf(taccFloat16, 1.0), 0x3c00);
  EXPECT_EQ(bitsOf(taccFloat16, -2.0), 0xc000);
  EXPECT_EQ(bitsOf(taccFloat16, 65504.0), 0x7bff);
  EXPECT_EQ(bitsOf(taccFloat16, 1e6), 0x7c00);
  // Ties go to the even neighbour, and a carry reaches the exponent.
  EXPECT_EQ(bitsOf(taccFloat16, 2049.0), bitsOf(taccFloat16, 2048.0));
  EXPECT_EQ(bitsOf(taccFloat16, 2051.0), bitsOf(taccFloat16, 2052.0));
  EXPECT_EQ(bitsOf(taccFloat16, 4095.0), bitsOf(taccFloat16, 4096.0));
  EXPECT_EQ(bitsOf(taccFloat16, 1.0 / 3), 0x3555);
}

TEST(Element, bfloat16IsTheUpperHalfRounded) {
  EXPECT_EQ(bitsOf(taccBfloat16, 1.0), 0x3f80);
  EXPECT_EQ(bitsOf(taccBfloat16, 257.0), bitsOf(taccBfloat16, 256.0));
  EXPECT_EQ(bitsOf(taccBfloat16, 259.0), bitsOf(taccBfloat16, 260.0));
}

TEST(Element, integersWrap) {
  int8_t element = 0;
  storeElement(taccInt8, 130, &element);
  EXPECT_EQ(element, -126);
}

}  // namespace
}  // namespace tacc::bench

#include <gtest/gtest.h>

extern "C" int headerIsC(void);

TEST(Header, WorksFromC) { EXPECT_EQ(headerIsC(), 0); }

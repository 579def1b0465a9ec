// The C functions of centers: arguments that are wrong, configurations of all versions, threads and forks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <thread>
#include <vector>

#include "support/child_process.hpp"
#include "tacc/center.h"

extern "C" int centerHeaderIsC(void);

namespace tacc::test {
namespace {

using testing::HasSubstr;

TEST(CenterHeader, WorksFromC) { EXPECT_EQ(centerHeaderIsC(), 0) << taccGetLastError(nullptr); }

void expectRefused(taccResult_t result, const char* text) {
  EXPECT_EQ(result, taccInvalidArgument) << text;
  EXPECT_THAT(taccGetLastError(nullptr), HasSubstr(text));
}

class CenterApi : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(taccCenterCreate(&kept_, &id_, 4, nullptr, nullptr), taccSuccess); }
  void TearDown() override { EXPECT_EQ(taccCenterDestroy(kept_), taccSuccess); }

  taccCenter_t kept_ = nullptr;
  taccUniqueId id_{};
};

TEST_F(CenterApi, WrongArgumentsAreNamed) {
  taccCenter_t center = nullptr;
  taccUniqueId id;
  float numbers[5] = {};
  expectRefused(taccCenterCreate(nullptr, &id, 4, nullptr, nullptr), "center is NULL");
  expectRefused(taccCenterCreate(&center, nullptr, 4, nullptr, nullptr), "id is NULL");
  expectRefused(taccCenterCreate(&center, &id, 0, nullptr, nullptr), "count is 0");
  expectRefused(taccCenterCreate(&center, &id, SIZE_MAX / 2, nullptr, nullptr), "address space");
  const auto* odd = reinterpret_cast<const float*>(reinterpret_cast<const char*>(numbers) + 1);
  expectRefused(taccCenterCreate(&center, &id, 4, odd, nullptr), "misaligned");
  expectRefused(taccCenterConnect(&center, nullptr, 4, nullptr), "id is NULL");
  expectRefused(taccCenterConnect(nullptr, &id_, 4, nullptr), "center is NULL");
  expectRefused(taccCenterConnect(&center, &id_, 0, nullptr), "count is 0");
  EXPECT_EQ(center, nullptr);
  expectRefused(taccCenterExchange(nullptr, numbers, 0.5f), "center is NULL");
  expectRefused(taccCenterExchange(kept_, nullptr, 0.5f), "weights is NULL");
  expectRefused(taccCenterExchange(kept_, const_cast<float*>(odd), 0.5f), "misaligned");
  for (const float alpha : {-0.5f, static_cast<float>(INFINITY), static_cast<float>(NAN)})
    expectRefused(taccCenterExchange(kept_, numbers, alpha), "alpha is ");
  expectRefused(taccCenterRead(kept_, nullptr), "values is NULL");
  expectRefused(taccCenterWrite(kept_, nullptr), "values is NULL");
  expectRefused(taccCenterInfo(kept_, nullptr), "info is NULL");
  taccCenterInfo_t info{};
  expectRefused(taccCenterInfo(kept_, &info), "info: size 0");
  info.size = sizeof info + 1;
  expectRefused(taccCenterInfo(kept_, &info), "no version");
  int other = 0;
  expectRefused(taccCenterRead(reinterpret_cast<taccCenter_t>(&other), numbers), "is not a center");
  EXPECT_EQ(taccCenterExchange(kept_, numbers, 0.5f), taccSuccess);
}

TEST_F(CenterApi, WrongConfigurationsAreNamed) {
  taccCenter_t center = nullptr;
  const taccCenterConfig_t good = TACC_CENTER_CONFIG_INITIALIZER;
  const auto expect = [&](const taccCenterConfig_t& config, const char* text) {
    expectRefused(taccCenterConnect(&center, &id_, 4, &config), text);
    EXPECT_EQ(center, nullptr);
  };
  taccCenterConfig_t config = good;
  config.size = 4;
  expect(config, "config: size 4");
  config.size = sizeof config + 1;
  expect(config, "of no version");
  config = good;
  config.version = 10000 * (TACC_MAJOR + 1);
  expect(config, "config: version 10000");
  config = good;
  config.locked = 2;
  expect(config, "config: locked is 2");
  config = good;
  config.servesHosts = -1;
  expect(config, "config: servesHosts is -1");
  config = good;
  config.timeout = -1;
  expect(config, "config: timeout is -1");
  config.timeout = NAN;
  expect(config, "config: timeout is nan");
}

TEST_F(CenterApi, FieldsThatAnOlderHeaderLacksGetTheirDefaults) {
  taccCenter_t center = nullptr;
  taccUniqueId id;
  taccCenterConfig_t config = TACC_CENTER_CONFIG_INITIALIZER;
  config.locked = 0;
  config.servesHosts = 77;
  config.timeout = -5;
  config.size = offsetof(taccCenterConfig_t, servesHosts);
  ASSERT_EQ(taccCenterCreate(&center, &id, 4, nullptr, &config), taccSuccess) << taccGetLastError(nullptr);
  taccCenterInfo_t info{};
  info.size = offsetof(taccCenterInfo_t, remote);
  info.remote = 4711;
  EXPECT_EQ(taccCenterInfo(center, &info), taccSuccess);
  EXPECT_EQ(info.locked, 0);
  EXPECT_EQ(info.remote, 4711) << "behind the end of what the program knows";
  EXPECT_EQ(taccCenterDestroy(center), taccSuccess);
}

TEST_F(CenterApi, AHandleIsNoneAfterItsEnd) {
  taccCenter_t center = nullptr;
  ASSERT_EQ(taccCenterConnect(&center, &id_, 4, nullptr), taccSuccess);
  EXPECT_EQ(taccCenterDestroy(center), taccSuccess);
  expectRefused(taccCenterDestroy(center), "has been destroyed");
}

TEST_F(CenterApi, ACenterIsUsedByOneThreadAtATime) {
  constexpr std::size_t count = 1 << 22;
  taccCenter_t large = nullptr;
  taccUniqueId id;
  ASSERT_EQ(taccCenterCreate(&large, &id, count, nullptr, nullptr), taccSuccess);
  std::atomic<bool> isOver{false};
  std::thread other([&] {
    std::vector<float> weights(count);
    while (!isOver) {
      const taccResult_t result = taccCenterExchange(large, weights.data(), 0.5f);
      EXPECT_TRUE(result == taccSuccess || result == taccInvalidUsage) << taccGetLastError(nullptr);
    }
  });
  std::vector<float> values(count);
  bool isRefused = false;
  for (int i = 0; i < 10000 && !isRefused; ++i) isRefused = taccCenterRead(large, values.data()) == taccInvalidUsage;
  EXPECT_TRUE(isRefused);
  EXPECT_THAT(taccGetLastError(nullptr), HasSubstr("another thread is inside"));
  isOver = true;
  other.join();
  EXPECT_EQ(taccCenterDestroy(large), taccSuccess);
}

TEST_F(CenterApi, AChildConnectsItself) {
  ChildProcess child([&] {
    float numbers[4] = {2, 2, 2, 2};
    EXPECT_EQ(taccCenterExchange(kept_, numbers, 0.5f), taccInvalidUsage);
    EXPECT_THAT(taccGetLastError(nullptr), HasSubstr("from which this process was forked"));
    EXPECT_EQ(taccCenterDestroy(kept_), taccInvalidUsage);
    taccCenter_t own = nullptr;
    EXPECT_EQ(taccCenterConnect(&own, &id_, 4, nullptr), taccSuccess) << taccGetLastError(nullptr);
    EXPECT_EQ(taccCenterExchange(own, numbers, 0.5f), taccSuccess);
    EXPECT_EQ(numbers[3], 1.0f);
    EXPECT_EQ(taccCenterDestroy(own), taccSuccess);
    return !testing::Test::HasFailure();
  });
  EXPECT_EQ(child.wait(), 0);
  float numbers[4];
  EXPECT_EQ(taccCenterRead(kept_, numbers), taccSuccess);
  EXPECT_EQ(numbers[0], 1.0f);
}

}  // namespace
}  // namespace tacc::test

#include "core/log.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

namespace tacc {
namespace {

std::string hostAndProcess() {
  std::array<char, 256> host{};
  EXPECT_EQ(gethostname(host.data(), host.size() - 1), 0);
  return fmt::format("{}:{}", host.data(), getpid());
}

/// What `action` writes to standard error at the given level.
template <class Action>
std::string written(LogLevel level, Action action) {
  const LogLevel before = logLevel();
  setLogLevel(level);
  testing::internal::CaptureStderr();
  action();
  setLogLevel(before);
  return testing::internal::GetCapturedStderr();
}

TEST(Log, WritesOneLineWithHostProcessRankAndLevel) {
  EXPECT_EQ(written(LogLevel::info, [] { log(LogLevel::info, 3, "{} of {}", 1, 2); }),
            fmt::format("tacc {} rank 3 info: 1 of 2\n", hostAndProcess()));
  EXPECT_EQ(written(LogLevel::warn, [] { log(LogLevel::warn, noRank, "two\nlines"); }),
            fmt::format("tacc {} warn: two; lines\n", hostAndProcess()));
}

TEST(Log, EachLevelIncludesThoseBeforeIt) {
  const auto all = [] {
    log(LogLevel::warn, noRank, "w");
    log(LogLevel::info, noRank, "i");
    log(LogLevel::trace, noRank, "t");
  };
  const std::string start = "tacc " + hostAndProcess();
  EXPECT_EQ(written(LogLevel::none, all), "");
  EXPECT_EQ(written(LogLevel::warn, all), start + " warn: w\n");
  EXPECT_EQ(written(LogLevel::info, all), start + " warn: w\n" + start + " info: i\n");
  EXPECT_EQ(written(LogLevel::trace, all), start + " warn: w\n" + start + " info: i\n" + start + " trace: t\n");
}

TEST(Log, AsksTheEnvironmentOnce) {
  const auto firstUse = [](const char* value) {
    setenv("TACC_DEBUG", value, 1);
    const bool first = logs(LogLevel::info) && !logs(LogLevel::trace);
    setenv("TACC_DEBUG", "none", 1);
    _exit(first && logs(LogLevel::info) ? 0 : 1);
  };
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // runs in a new process, where nothing has asked yet
  EXPECT_EXIT(firstUse("info"), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(firstUse("malformed"), testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace tacc

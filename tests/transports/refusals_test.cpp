// What is told of refused connections: all of them in errors, each stranger once in the log.
#include "transports/refusals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/log.hpp"

namespace tacc {
namespace {

using testing::HasSubstr;

template <class Action>
std::string logged(Action action) {
  const LogLevel before = logLevel();
  setLogLevel(LogLevel::warn);
  testing::internal::CaptureStderr();
  action();
  setLogLevel(before);
  return testing::internal::GetCapturedStderr();
}

auto lines(const std::string& text) { return std::ranges::count(text, '\n'); }

TEST(Refusals, AreCountedAndTheLastIsNamed) {
  Refusals refusals(3);
  EXPECT_EQ(refusals.describe(), "");
  refusals.note("192.0.2.2:4711", true, "it is silent");
  refusals.note("process 17 of this host", false, "it is of another user");
  EXPECT_EQ(refusals.describe(),
            "; 2 connections were refused, the last from process 17 of this host: it is of another user");
}

TEST(Refusals, OneHostIsLoggedOnceForEachReason) {
  Refusals refusals(3);
  const std::string text = logged([&] {
    for (int port = 1000; port < 2000; ++port) refusals.note("192.0.2.2:" + std::to_string(port), true, "it is silent");
    refusals.note("192.0.2.2:5", true, "it does not know the secret");
    refusals.note("192.0.2.3:5", true, "it is silent");
  });
  EXPECT_EQ(lines(text), 3) << text;
  EXPECT_THAT(text, HasSubstr("rank 3 warn: refused a connection from 192.0.2.2:1000: it is silent"));
  EXPECT_THAT(refusals.describe(), HasSubstr("1002 connections"));
}

TEST(Refusals, ManyHostsDoNotFillTheLog) {
  Refusals refusals(3);
  const std::string text = logged([&] {
    for (int host = 0; host < 5000; ++host)
      refusals.note("process " + std::to_string(host) + " of this host", false, "it is of another user");
  });
  EXPECT_LE(lines(text), 256);
  EXPECT_GE(lines(text), 100);
}

}  // namespace
}  // namespace tacc

#include "comm/control/flight_recorder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/log.hpp"
#include "engine/signature.hpp"

namespace tacc {
namespace {

std::uint64_t allReduceOf(std::size_t count) {
  return makeSignature(Collective::allReduce, taccFloat32, taccSum, 0, count);
}

/// What a recorder writes at its end goes away with this.
class TraceFiles {
 public:
  const std::string base = testing::TempDir() + "flight-" + std::to_string(::getpid()) + ".";
  ~TraceFiles() {
    for (const auto& file : std::filesystem::directory_iterator(testing::TempDir()))
      if (file.path().string().rfind(base, 0) == 0) std::filesystem::remove(file.path());
  }
};

TEST(FlightRecorder, KeepsTheLastOfATraceInOrder) {
  const TraceFiles files;
  FlightRecorder recorder(3, files.base);
  for (std::size_t i = 1; i <= 1500; ++i) {
    recorder.begin(allReduceOf(i));
    recorder.end();
  }
  const std::string text = recorder.text();
  EXPECT_EQ(text.find("(count 476,"), std::string::npos);
  EXPECT_NE(text.find("(count 477,"), std::string::npos);
  EXPECT_LT(text.find("(count 477,"), text.find("(count 1500,"));
  EXPECT_NE(text.find("the last 1024 of 1500"), std::string::npos);
}

TEST(FlightRecorder, TheChromeTraceIsJsonWithTimesThatFollowEachOther) {
  const TraceFiles files;
  FlightRecorder recorder(1, files.base);
  for (std::size_t i = 1; i <= 3; ++i) {
    recorder.begin(i == 2 ? 0 : allReduceOf(i));
    recorder.end();
  }
  recorder.begin(allReduceOf(4));
  recorder.fail(taccTimeout, "rank 2 \"stopped\"\nand that is all");
  const auto trace = nlohmann::json::parse(recorder.chromeTrace());
  const auto& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[1]["name"], "sends and receives");
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_GE(events[i]["dur"].get<double>(), 0);
    if (i == 0) continue;
    EXPECT_GE(events[i]["ts"].get<double>(), events[i - 1]["ts"].get<double>());
  }
  EXPECT_NE(events[4]["name"].get<std::string>().find("rank 2 \"stopped\""), std::string::npos);
  EXPECT_NE(recorder.text().find("failed"), std::string::npos);
}

TEST(FlightRecorder, WithoutATraceItLogsTheLastFew) {
  const LogLevel before = logLevel();
  setLogLevel(LogLevel::warn);
  testing::internal::CaptureStderr();
  {
    FlightRecorder recorder(2, "");
    for (std::size_t i = 1; i <= 20; ++i) {
      recorder.begin(allReduceOf(i));
      recorder.end();
    }
    recorder.fail(taccTimeout, "too late");
    recorder.fail(taccTimeout, "said once");
  }
  const std::string line = testing::internal::GetCapturedStderr();
  setLogLevel(before);
  EXPECT_EQ(line.find("(count 12,"), std::string::npos) << line;
  EXPECT_NE(line.find("too late (last operations: allreduce(count 13, float, sum), "), std::string::npos) << line;
  EXPECT_NE(line.find("(count 20, float, sum); TACC_TRACE=FILE writes the last 1024)"), std::string::npos) << line;
  EXPECT_EQ(line.find("said once"), std::string::npos) << line;
}

TEST(FlightRecorder, WritesBothFilesAtItsEnd) {
  const std::string base = testing::TempDir() + "flight";
  { FlightRecorder(7, base).begin(allReduceOf(5)); }
  int found = 0;
  for (int number = 0; number < 10; ++number)
    for (const char* kind : {".txt", ".json"}) {
      const std::string name = base + "." + std::to_string(number) + ".rank7" + kind;
      std::ifstream file(name);
      if (!file) continue;
      const std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      EXPECT_NE(content.find("allreduce(count 5"), std::string::npos) << content;
      std::remove(name.c_str());
      ++found;
    }
  EXPECT_EQ(found, 2);
}

TEST(FlightRecorder, FollowsNoLinkAndIsForTheUserAlone) {
  const std::string base = testing::TempDir() + "flight-" + std::to_string(::getpid());
  const std::string precious = base + ".precious";
  const std::string kept = "worth keeping";
  std::ofstream(precious) << kept;
  std::vector<std::string> names;
  for (int number = 0; number < 20; ++number) names.push_back(base + "." + std::to_string(number) + ".rank7.txt");
  for (const std::string& name : names) ASSERT_EQ(::symlink(precious.c_str(), name.c_str()), 0);
  { FlightRecorder(7, base).begin(allReduceOf(5)); }
  std::ifstream file(precious);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), kept);
  int written = 0;
  for (const std::string& name : names) {
    struct stat info {};
    ASSERT_EQ(::lstat(name.c_str(), &info), 0);
    if (S_ISREG(info.st_mode)) {
      EXPECT_EQ(info.st_mode & 0777, 0600U);
      ++written;
    }
    std::remove(name.c_str());
    std::remove((name.substr(0, name.size() - 3) + "json").c_str());
  }
  EXPECT_EQ(written, 1);
  std::remove(precious.c_str());
}

}  // namespace
}  // namespace tacc

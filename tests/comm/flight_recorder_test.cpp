#include "comm/flight_recorder.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/signature.hpp"

namespace tacc {
namespace {

std::uint64_t allReduceOf(std::size_t count) {
  return makeSignature(Collective::allReduce, taccFloat32, taccSum, 0, count);
}

TEST(FlightRecorder, KeepsTheLastThousandInOrder) {
  FlightRecorder recorder(3, "");
  for (std::size_t i = 1; i <= 1500; ++i) {
    recorder.begin(allReduceOf(i));
    recorder.end();
  }
  const std::string text = recorder.text();
  EXPECT_EQ(text.find("(count 500,"), std::string::npos);
  EXPECT_NE(text.find("(count 501,"), std::string::npos);
  EXPECT_LT(text.find("(count 501,"), text.find("(count 1500,"));
  EXPECT_NE(text.find("the last 1000 of 1500"), std::string::npos);
}

TEST(FlightRecorder, TheChromeTraceIsJsonWithTimesThatFollowEachOther) {
  FlightRecorder recorder(1, "");
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

}  // namespace
}  // namespace tacc

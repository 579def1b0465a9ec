#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "coordinator/reports.hpp"

namespace tacc::bench {
namespace {

Options twoPeers() {
  Options options;
  options.collective = findCollective("allreduce");
  options.types = {taccFloat32};
  options.ops = {taccSum};
  options.roots = {0};
  options.ranks = 4;
  options.peers = {"mpich", "gloo"};
  return options;
}

Row row(size_t bytes, double microseconds) {
  Row row;
  row.collective = findCollective("allreduce");
  row.bytes = bytes;
  row.count = bytes / 4;
  row.ranks = 4;
  row.outOfPlace = {microseconds, 0, "ring", 0.001};
  row.inPlace = Outcome{2 * microseconds, 3, "ring", 0};
  row.peers = {{"mpich", Outcome{3 * microseconds, 0, "", 0.002}}, {"gloo", std::nullopt}};
  return row;
}

TEST(Table, numbersLoseDecimalsAsTheyGrow) {
  EXPECT_EQ(fitNumber(0, 7), "   0.00");
  EXPECT_EQ(fitNumber(9999.994, 7), "9999.99");
  EXPECT_EQ(fitNumber(12345.67, 7), "12345.7");
  EXPECT_EQ(fitNumber(1234567.8, 7), "1234568");
  EXPECT_EQ(fitNumber(123456789.0, 7), "1.2e+08");
  EXPECT_EQ(fitNumber(12345678.0, 6), " 1e+07");
}

TEST(Table, rowsAreThoseOfNcclTests) {
  Options options = twoPeers();
  options.peers.clear();
  Row plain = row(1048576, 100);
  plain.peers.clear();
  char expected[256];
  std::snprintf(expected, sizeof(expected), "%12li  %12li  %8s  %6s  %6s", 1048576L, 262144L, "float", "sum", "    -1");
  std::string line = expected;
  std::snprintf(expected, sizeof(expected), "  %7s  %6s  %6s  %6g", " 100.00", " 10.49", " 15.73", 0.0);
  line += expected;
  std::snprintf(expected, sizeof(expected), "  %7s  %6s  %6s  %6g", " 200.00", "  5.24", "  7.86", 3.0);
  EXPECT_EQ(tableRow(options, plain), line + expected + "\n");
  options.check = false;
  EXPECT_NE(tableRow(options, plain).find("  15.73     N/A  "), std::string::npos);
}

TEST(Table, headerIsThatOfNcclTests) {
  Options options = twoPeers();
  options.peers.clear();
  const std::string header = tableHeader(options, {{11, "one"}, {12, "one"}, {13, "two"}, {14, "two"}}, 100);
  char expected[512];
  std::snprintf(expected, sizeof(expected),
                "# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          \n", "", "",
                "", "", "");
  EXPECT_NE(header.find(expected), std::string::npos);
  std::snprintf(expected, sizeof(expected), "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s %*s\n",
                "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw",
                "#wrong", 0, "");
  EXPECT_NE(header.find(expected), std::string::npos);
  std::snprintf(expected, sizeof(expected), "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s %*s\n",
                "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "", 0, "");
  EXPECT_NE(header.find(expected), std::string::npos);
  EXPECT_NE(header.find("#  Rank  3 Group  0 Pid     14 on        two "), std::string::npos);
}

TEST(Table, peersComeAfterTheInPlaceColumns) {
  const std::string line = tableRow(twoPeers(), row(1048576, 100));
  EXPECT_NE(line.find("       3     300.00    3.00        N/A     N/A\n"), std::string::npos) << line;
}

TEST(Table, footerCountsWrongElementsOfAll) {
  const std::string footer = tableFooter(twoPeers(), {row(1048576, 100)});
  EXPECT_NE(footer.find("# Out of bounds values : 3 FAILED\n"), std::string::npos) << footer;
  EXPECT_NE(footer.find("# Avg bus bandwidth    : 11.7965 \n#\n# Collective test concluded: allreduce\n"),
            std::string::npos)
      << footer;
}

TEST(Summary, givesMeanAndWorst) {
  Row slow = row(8, 1);
  slow.peers[0].outcome->microseconds = 12;
  const std::string text = summarize(twoPeers(), {slow, row(1048576, 100)});
  EXPECT_NE(
      text.find("# summary: 4 ranks, allreduce float sum, private memory: geometric mean 6.00 x mpich (worst 3.00 "
                "at 1 MiB), gloo not comparable"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find('\n'), text.size() - 1);
}

TEST(Summary, saysWhatTheHypervisorTook) {
  Row slow = row(8, 1);
  slow.stolen = 0.123;
  const std::string text = summarize(twoPeers(), {row(1048576, 100), slow});
  EXPECT_NE(text.find("gave up to 12 % of this machine's processor time to others (at 8 B)"), std::string::npos)
      << text;
  EXPECT_LT(text.find("12 %"), text.find("# summary: "));
  EXPECT_EQ(summarize(twoPeers(), {row(8, 1)}).find("# summary: "), 0U);
}

const RunFacts facts{"then", "now", 100, {{11, "one"}, {12, "one"}, {13, "two"}, {14, "two"}}};

TEST(Json, hasExactlyTheDocumentedKeys) {
  Options options = twoPeers();
  options.arguments = "allreduce -n 3";
  Row stolen = row(1000000, 100);
  stolen.stolen = 0.125;
  ::setenv("TACC_DEBUG", "warn", 1);
  ::setenv("TACC_JOB_SECRET", "hidden", 1);
  const auto report = nlohmann::ordered_json::parse(jsonReport(options, facts, {stolen}));
  ::unsetenv("TACC_DEBUG");
  ::unsetenv("TACC_JOB_SECRET");
  auto environment = report["environment"];
  environment.erase("TACC_TEST_QUICK");  // as sanitizers' runs set it
  EXPECT_EQ(environment.dump(), R"({"TACC_DEBUG":"warn"})");
  auto head = report;
  for (const char* key : {"environment", "results"}) head.erase(key);
  EXPECT_EQ(
      head.dump(),
      fmt::format(R"({{"version":"{}.{}.{}","library_version":100,"start_time":"then","end_time":"now",)"
                  R"("arguments":"allreduce -n 3","launcher":null,"hosts":["one","one","two","two"],)"
                  R"("collective":"allreduce","ranks":4,"load":0,"memory":"private","average":"mean","aggregate":1,)"
                  R"("streams":0,"registered":false,"cpu_time":false,"reference":"tacc","cluster":null}})",
                  TACC_MAJOR, TACC_MINOR, TACC_PATCH));
  EXPECT_EQ(report["results"].dump(),
            R"([{"size":1000000,"count":250000,)"
            R"("type":"float","redop":"sum","root":-1,"time":100.0,"alg_bw":10.0,"bus_bw":15.0,"wrong":3,)"
            R"("algorithm":"ring","cpu_seconds":0.001,"stolen":0.125,"peers":{"mpich":{"time":300.0,"ratio":3.0,)"
            R"("cpu_seconds":0.002},"gloo":null},"in_place":{"time":200.0,"alg_bw":5.0,"bus_bw":7.5,"wrong":3,)"
            R"("cpu_seconds":0.0}}])");
  options.check = false;
  EXPECT_TRUE(nlohmann::json::parse(jsonReport(options, facts, {row(8, 1)}))["results"][0]["wrong"].is_null());
  options.cluster = tools::ClusterShape::parse("2,4,200,100");
  EXPECT_EQ(nlohmann::ordered_json::parse(jsonReport(options, facts, {}))["cluster"].dump(),
            R"({"shape":"2,4,200,100","place":"block"})");
  options.job = Job{"Hydra", 0, 4};
  EXPECT_EQ(nlohmann::json::parse(jsonReport(options, facts, {}))["launcher"], "Hydra");
  Row alone = row(8, 1);
  alone.inPlace.reset();
  EXPECT_TRUE(nlohmann::json::parse(jsonReport(options, facts, {alone}))["results"][0]["in_place"].is_null());
}

TEST(Json, isOneLineToAppend) {
  Options options = twoPeers();
  options.appends = true;
  const std::string text = jsonReport(options, facts, {row(8, 1)});
  EXPECT_EQ(text.find('\n'), text.size() - 1);
}

TEST(CallTimes, areThoseOfTheSortedCalls) {
  std::vector<double> seconds;
  for (int i = 100; i > 0; --i) seconds.push_back(i * 1e-6);
  const CallTimes times = CallTimes::of(seconds);
  EXPECT_NEAR(times.least, 1, 1e-9);
  EXPECT_NEAR(times.most, 100, 1e-9);
  EXPECT_NEAR(times.mean, 50.5, 1e-9);
  EXPECT_NEAR(times.median, 50, 1e-9);
  EXPECT_NEAR(times.percentile90, 90, 1e-9);
  EXPECT_NEAR(times.percentile99, 99, 1e-9);
  EXPECT_NEAR(times.variation, 100 * std::sqrt((100 * 100 - 1) / 12.0) / 50.5, 1e-6);
  EXPECT_NEAR(CallTimes::of({2e-6}).percentile99, 2, 1e-9);
  EXPECT_EQ(CallTimes::of({}).most, 0);
}

TEST(Table, callsComeAfterTheInPlaceColumns) {
  Options options = twoPeers();
  options.peers.clear();
  options.perCall = true;
  Row timed = row(8, 1);
  timed.peers.clear();
  timed.outOfPlace.calls = CallTimes::of({1e-6, 3e-6});
  EXPECT_NE(tableRow(options, timed).find("       3     1.00     3.00     3.00    50.00\n"), std::string::npos)
      << tableRow(options, timed);
  EXPECT_NE(tableHeader(options, facts.members, 100).find("#wrong     i_min    i_max    i_p99     i_cv"),
            std::string::npos);
}

TEST(Plot, drawsALineForEachContestant) {
  const Options options = twoPeers();
  const auto series = collectSeries(options, {row(8, 1), row(1048576, 100)});
  ASSERT_EQ(series.size(), 2U);
  EXPECT_EQ(series[1].label, "mpich");
  EXPECT_EQ(series[1].points.size(), 2U);
  const std::string svg = drawPlot("a < b", series);
  EXPECT_EQ(svg.rfind("<svg ", 0), 0U);
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
  EXPECT_NE(svg.find(">tacc</text>"), std::string::npos);
}

TEST(Plot, survivesOnePointAndNone) {
  EXPECT_EQ(drawPlot("none", {}).find("nan"), std::string::npos);
  EXPECT_EQ(drawPlot("one", {{"tacc", {{64, 1}}}}).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace tacc::bench

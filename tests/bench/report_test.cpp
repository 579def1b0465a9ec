#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "coordinator/json_report.hpp"
#include "coordinator/plot.hpp"
#include "coordinator/summary.hpp"
#include "coordinator/table.hpp"

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

TEST(Json, hasExactlyTheDocumentedKeys) {
  Options options = twoPeers();
  Row stolen = row(1000000, 100);
  stolen.stolen = 0.125;
  const auto report = nlohmann::ordered_json::parse(jsonReport(options, {stolen}));
  EXPECT_EQ(
      report.dump(),
      R"({"collective":"allreduce","ranks":4,"memory":"private","reference":"tacc","cluster":null,"results":[)"
      R"({"size":1000000,"count":250000,)"
      R"("type":"float","redop":"sum","root":-1,"time":100.0,"alg_bw":10.0,"bus_bw":15.0,"wrong":3,)"
      R"("algorithm":"ring","cpu_seconds":0.001,"stolen":0.125,"peers":{"mpich":{"time":300.0,"ratio":3.0,"cpu_seconds":0.002},)"
      R"("gloo":null}}]})");
  options.check = false;
  EXPECT_TRUE(nlohmann::json::parse(jsonReport(options, {row(8, 1)}))["results"][0]["wrong"].is_null());
  options.cluster = ClusterShape::parse("2,4,200,100");
  EXPECT_EQ(nlohmann::ordered_json::parse(jsonReport(options, {}))["cluster"].dump(),
            R"({"shape":"2,4,200,100","place":"block"})");
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

// What tacc_bench gemm times is right, and what it writes about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "compute/draws.hpp"
#include "compute/gemm_bench.hpp"
#include "compute/wider_core.hpp"
#include "coordinator/bars.hpp"

namespace tacc::bench {
namespace {

using testing::HasSubstr;

TEST(GemmBench, ReadsShapes) {
  const GemmShape shape = parseGemmShape("12x3x456", 2);
  EXPECT_EQ(shape.m, 12);
  EXPECT_EQ(shape.n, 3);
  EXPECT_EQ(shape.k, 456);
  EXPECT_EQ(shape.operations(), 2.0 * 2 * 12 * 3 * 456);
  for (const char* wrong :
       {"", "12", "12x3", "12x3x", "12x3x4x5", "x3x4", "0x1x1", "-1x1x1", "1x1x1 ", "axbxc", "1x1x99999999999"}) {
    EXPECT_THROW(parseGemmShape(wrong, 1), std::invalid_argument) << wrong;
  }
}

TEST(GemmBench, OpenblasIsStartedAgainWhereItsVectorsAreNarrower) {
  for (const char* wide : {"avx512", "amx"}) {
    for (const char* known : {"SkylakeX", "Cooperlake"}) EXPECT_EQ(widerCore(known, wide), "") << wide;
    for (const char* narrow : {"Haswell", "Zen", "Prescott"}) EXPECT_EQ(widerCore(narrow, wide), "SkylakeX") << wide;
  }
  for (const char* known : {"SkylakeX", "Haswell", "Zen", "Excavator"}) EXPECT_EQ(widerCore(known, "avx2"), "");
  EXPECT_EQ(widerCore("Prescott", "avx2"), "Haswell");
  EXPECT_EQ(widerCore("Prescott", "portable"), "");
}

TEST(GemmBench, ResultsAreRightForEveryPeer) {
  for (const GemmShape& shape : {GemmShape{7, 33, 19, 1},
                                 {64, 64, 300, 1},
                                 {5, 16, 9, 4},
                                 {7, 33, 19, 2, true, false},
                                 {7, 33, 19, 2, false, true},
                                 {7, 33, 19, 1, true, true}}) {
    const GemmProblem problem(shape);
    const auto own = makeTaccGemm(problem, 1);
    own->run();
    EXPECT_EQ(problem.countWrong(own->result()), 0U) << shape.text();
    for (const GemmPeer& peer : gemmPeers()) {
      const auto contestant = peer.make(problem, 1);
      contestant->pack();
      contestant->run();
      EXPECT_EQ(problem.countWrong(contestant->result()), 0U) << peer.name << " " << shape.text();
    }
  }
}

TEST(GemmBench, DrawsTheSameShapesForASeed) {
  const std::vector<GemmShape> shapes = drawGemmShapes(200, 7), same = drawGemmShapes(200, 7);
  int few = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    EXPECT_EQ(shapes[i].text(), same[i].text());
    EXPECT_GE(shapes[i].operations(), 4e4);
    EXPECT_LE(shapes[i].operations(), 4e9);
    few += std::min({shapes[i].m, shapes[i].n, shapes[i].k}) <= 8 ? 1 : 0;
  }
  EXPECT_GE(few, 20);
  EXPECT_NE(shapes[0].text(), drawGemmShapes(1, 8)[0].text());
  EXPECT_EQ((GemmShape{2, 3, 4, 1, true, false}.text()), "2x3x4 TN");
}

TEST(GemmBench, ReadsDrawnSets) {
  EXPECT_EQ(parseDrawnSet("12").count, 12);
  EXPECT_EQ(parseDrawnSet("12:345").seed, 345U);
  for (const char* wrong : {"", "0", "-1", "x", "5:", "5:x", "5:1x", ":5", "5 "})
    EXPECT_THROW(parseDrawnSet(wrong), std::invalid_argument) << wrong;
}

TEST(GemmBench, NoticesWrongResults) {
  const GemmProblem problem({8, 8, 8, 2});
  const auto own = makeTaccGemm(problem, 1);
  own->run();
  std::vector<float> c(own->result(), own->result() + problem.resultSize());
  c.front() += 1;
  EXPECT_GT(problem.countWrong(c.data()), 0U);
  c.front() = NAN;
  EXPECT_GT(problem.countWrong(c.data()), 0U);
  c.front() = own->result()[0];
  c.back() += 1;
  EXPECT_GT(problem.countWrong(c.data()), 0U);
}

GemmReport someReport() {
  GemmReport report;
  report.options.peers = {"other"};
  report.isa = "avx2";
  report.peak = 2e9;
  report.results = {{{10, 10, 10, 1}, {2e-6, "avx2 6x1", 0}, {{"other", {4e-6, "<kernel>", 0}}}},
                    {{20, 10, 10, 1}, {4e-6, "avx2 6x1", 0}, {{"other", {2e-6, "<kernel>", 3}}}}};
  return report;
}

TEST(GemmBench, ReportsWhatWasMeasured) {
  const GemmReport report = someReport();
  const auto json = nlohmann::json::parse(gemmJson(report));
  const auto& first = json["results"][0];
  EXPECT_EQ(json["peak_gflops"], 2.0);
  EXPECT_EQ(first["m"], 10);
  EXPECT_DOUBLE_EQ(first["gflops"], 1.0);
  EXPECT_DOUBLE_EQ(first["peak_fraction"], 0.5);
  EXPECT_EQ(first["kernel"], "avx2 6x1");
  EXPECT_EQ(first["peers"]["other"]["ratio"], 2.0);
  EXPECT_EQ(json["results"][1]["peers"]["other"]["wrong"], 3);
  EXPECT_THAT(gemmLine(report, report.results[1]), HasSubstr("x0.50 <kernel> WRONG 3"));
  EXPECT_THAT(gemmSummary(report), HasSubstr("x1.000 of other (least x0.50)"));
}

TEST(GemmBench, DrawsBars) {
  const std::string svg = gemmPlot(someReport());
  EXPECT_THAT(svg, HasSubstr("20x10x10"));
  EXPECT_THAT(svg, HasSubstr("other"));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  const std::string empty = drawBars({"a < b", "axis", {"tacc"}, {}, 0, ""});
  EXPECT_THAT(empty, HasSubstr("a &lt; b"));
  EXPECT_EQ(empty.find("nan"), std::string::npos);
  // The higher bar is twice as high.
  const std::string two = drawBars({"", "", {"tacc"}, {{"one", {50}}, {"two", {100}}}, 0, ""});
  EXPECT_THAT(two, HasSubstr("height=\"180.0\""));
  EXPECT_THAT(two, HasSubstr("height=\"360.0\""));
}

}  // namespace
}  // namespace tacc::bench

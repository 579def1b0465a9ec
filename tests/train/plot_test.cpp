// The drawing and the tables.
#include "plot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "axis.hpp"

namespace tacc::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<Curve> someCurves() {
  std::vector<Curve> curves;
  for (const auto& [mode, tau, speed] : {std::tuple{"serial", 0, 1.0}, {"original", 4, 4.0}, {"sync2", 4, 1.0}}) {
    Curve curve{{mode, tau}, {}};
    for (int epoch = 1; epoch <= 5; ++epoch) {
      EpochRecord record;
      record.epoch = epoch;
      record.images = static_cast<std::uint64_t>(2000 * epoch);
      record.loss = 2.0 / (epoch * epoch);
      record.testAccuracy = 1 - 0.5 / epoch;
      record.seconds = 0.5 * epoch * speed;
      record.waitedShare = 0.1 * epoch;
      curve.records.push_back(record);
    }
    curves.push_back(curve);
  }
  return curves;
}

TEST(AxisTest, PlacesNumbers) {
  const Axis linear(0, 10, 100, 200, false);
  EXPECT_DOUBLE_EQ(linear.at(5), 150);
  EXPECT_DOUBLE_EQ(linear.at(20), 200);
  const Axis logarithmic(0.01, 1, 300, 100, true);
  EXPECT_DOUBLE_EQ(logarithmic.at(0.1), 200);
  EXPECT_DOUBLE_EQ(logarithmic.at(0), 300);
}

TEST(AxisTest, WritesRoundNumbers) {
  EXPECT_THAT(Axis(0, 12.3, 0, 1, false).ticks(), ElementsAre(0, 2, 4, 6, 8, 10, 12));
  EXPECT_THAT(Axis(0.09, 2.5, 0, 1, true).ticks(),
              testing::Pointwise(testing::DoubleNear(1e-9), {0.1, 0.2, 0.5, 1.0, 2.0}));
  EXPECT_THAT(Axis(1e-5, 2, 0, 1, true).ticks(),
              testing::Pointwise(testing::DoubleNear(1e-9), {1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0}));
  // Whatever the range, some and not too many.
  for (double range = 1e-3; range < 1e6; range *= 1.37) {
    const std::size_t count = Axis(0, range, 0, 1, false).ticks().size();
    EXPECT_TRUE(count >= 3 && count <= 9) << range << ": " << count;
  }
  EXPECT_FALSE(Axis(3, 3, 0, 1, false).ticks().empty());
}

TEST(DrawTraining, NamesAxesUnitsAndCurves) {
  const std::string svg = drawTraining("a <model>; 2 ranks", someCurves());
  for (const char* word : {"time (s)", "(thousands)", "accuracy on the test images (%)", "loss in training",
                           ">original, tau 4<", ">serial<", "a &lt;model&gt;", ">2 ranks<"})
    EXPECT_THAT(svg, HasSubstr(word));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(DrawTraining, KeepsEveryPointInsideAndInOrder) {
  const std::string svg = drawTraining("title", someCurves());
  const std::regex polyline("<polyline points=\"([^\"]*)\"");
  int lines = 0;
  for (std::sregex_iterator match(svg.begin(), svg.end(), polyline), end; match != end; ++match, ++lines) {
    std::istringstream points((*match)[1]);
    double x = 0, y = 0, before = 0;
    char comma = 0;
    int count = 0;
    for (; points >> x >> comma >> y; before = x, ++count) {
      EXPECT_GT(x, before);
      EXPECT_TRUE(x > 60 && x < 900 && y > 60 && y < 700) << x << "," << y;
    }
    EXPECT_EQ(count, 5);
  }
  EXPECT_EQ(lines, 4 * 3);  // four panels of three curves
}

/// Epochs count by their time: of 0.1, 0.2 ... 0.5 over equal ones the mean is 30 %.
TEST(DrawTraining, HasABarForTheShareOfCommunication) {
  const std::string svg = drawTraining("title", someCurves());
  EXPECT_THAT(svg, HasSubstr("waited for communication (%)"));
  const std::regex bar("width=\"([0-9.]+)\" height=\"14.0\" fill=\"#0072b2\"");
  int bars = 0;
  for (std::sregex_iterator match(svg.begin(), svg.end(), bar), end; match != end; ++match, ++bars)
    EXPECT_NEAR(std::stod((*match)[1]), 0.3 * (800 - 180), 1);
  EXPECT_EQ(bars, 3);
  EXPECT_THAT(svg, HasSubstr(">30<"));
}

TEST(Tables, CompareWithTheOriginal) {
  const std::vector<Curve> curves = someCurves();
  const std::string summary = summaryTable(curves);
  EXPECT_THAT(summary, testing::ContainsRegex("sync2 +4 +0.0800 +90.00 +2.500 +30.0 +4.00\n"));
  EXPECT_THAT(summary, testing::ContainsRegex("serial +- .* -\n"));
  EXPECT_EQ(summaryTable({curves[0]}), "");
  EXPECT_THAT(tableLine(curves[2].run, curves[2].records[1]), testing::ContainsRegex("sync2 +4 +2 +0.5000 "));
}

}  // namespace
}  // namespace tacc::train

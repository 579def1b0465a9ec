// Files of measured choices: what they do, and what is said about those that are of no use.
#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>
#include <random>

#include "../conv/conv_case.hpp"
#include "compute/conv/tuning.hpp"
#include "core/error.hpp"

namespace tacc::conv::test {
namespace {

using testing::HasSubstr;

const ConvTuningPlace here{"A \"fast\" CPU", "avx2"};

constexpr const char* head = "format = 1\ncpu = \"A \\\"fast\\\" CPU\"\nisa = \"avx2\"\n";
constexpr const char* layer =
    "[[layer]]\n"
    "pass = \"forward\"\n"
    "input = [2, 64, 14, 15]\n"
    "output_channels = 32\n"
    "kernel = [3, 3]\n"
    "stride = [1, 1]\n"
    "pad = [1, 1]\n"
    "dilation = [1, 1]\n"
    "groups = 1\n"
    "layout = \"nchw16c\"\n"
    "type = \"float32\"\n"
    "winograd = 0\n"
    "workers = 1\n"
    "algorithm = \"reference\"\n"
    "microseconds = { reference = 1.5, direct = 2 }\n";

taccConvDesc_t described() { return convolution(taccConvForward, 2, 64, 14, 15, 32, 3, 1, 1); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string refusal(const std::string& text) {
  try {
    tuningFromToml(text, "file.toml", here);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ConvTuning, FindsWhatWasMeasured) {
  const ConvTuning tuning = tuningFromToml(std::string(head) + layer, "file.toml", here);
  taccConvDesc_t desc = described();
  EXPECT_EQ(tuning.find(understand(desc)), "reference");
  desc.bias = desc.relu = 1;
  desc.weightLayout = taccWeightsBlocked;
  EXPECT_EQ(tuning.find(understand(desc)), "reference");
  for (const auto& [member, value] : {std::pair(&taccConvDesc_t::batch, 3),
                                      {&taccConvDesc_t::width, 16},
                                      {&taccConvDesc_t::padWidth, 0},
                                      {&taccConvDesc_t::maxWorkers, 2},
                                      {&taccConvDesc_t::winograd, 1}}) {
    desc = described();
    desc.*member = value;
    EXPECT_EQ(tuning.find(understand(desc)), "");
  }
  desc = described();
  desc.activationType = taccBfloat16;
  EXPECT_EQ(tuning.find(understand(desc)), "");
}

TEST(ConvTuning, RefusesAnotherPlaceAndSaysWhich) {
  const std::string good = std::string(head) + layer;
  EXPECT_EQ(refusal(good), "accepted");
  EXPECT_THAT(refusal(replaced(good, "fast", "slow")),
              HasSubstr("measured on \"A \"slow\" CPU\", but this CPU is \"A \"fast\" CPU\""));
  EXPECT_THAT(refusal(replaced(good, "avx2", "sse2")), HasSubstr("measured with sse2, but this process runs avx2"));
  EXPECT_THAT(refusal(replaced(good, "format = 1", "format = 2")), HasSubstr("this library knows 1 alone"));
}

TEST(ConvTuning, SaysWhereAFileIsWrong) {
  const std::string good = std::string(head) + layer;
  EXPECT_THAT(refusal(replaced(good, "\"reference\"", "\"fastest\"")),
              HasSubstr("file.toml:17:13, [[layer]] algorithm is \"fastest\", which this library does not have"));
  EXPECT_THAT(refusal(replaced(good, "\"reference\"", "\"depthwise\"")), HasSubstr("these it has: direct"));
  EXPECT_THAT(refusal(replaced(good, "\"forward\"", "\"sideways\"")), HasSubstr("must be one of forward, backward"));
  EXPECT_THAT(refusal(replaced(good, "[3, 3]", "[3]")), HasSubstr("kernel has 1 numbers; it must have 2"));
  EXPECT_THAT(refusal(replaced(good, "[3, 3]", "[3, 30]")), HasSubstr("reaches over 30 of the width"));
  EXPECT_THAT(refusal(replaced(good, "groups", "gruops")), HasSubstr("gro"));
  EXPECT_THAT(refusal(replaced(good, "direct = 2", "direct = true")), HasSubstr("direct is no number"));
  EXPECT_THAT(refusal(good + layer), HasSubstr("a second time"));
  EXPECT_THAT(refusal("format = "), HasSubstr("no TOML"));
}

TEST(ConvTuning, NeedsEveryLine) {
  std::vector<std::string> lines;
  const std::string text = std::string(head) + layer;
  for (std::size_t from = 0; from < text.size(); from = text.find('\n', from) + 1) {
    lines.push_back(text.substr(from, text.find('\n', from) + 1 - from));
  }
  for (const std::string& line : lines) {
    if (line.starts_with("microseconds")) continue;  // for people
    EXPECT_NE(refusal(replaced(text, line, "")), "accepted") << line;
  }
}

TEST(ConvTuning, SurvivesDamagedFiles) {
  const std::string good = std::string(head) + layer;
  std::size_t refused = 0;
  for (std::size_t length = 0; length < good.size(); ++length) refused += refusal(good.substr(0, length)) != "accepted";
  // Whole are: a file without layers, one that ends behind the algorithm, and one without its last line end.
  EXPECT_GE(refused, good.size() - 5);
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (int changes = 0; changes < 3; ++changes) {
      text[random() % text.size()] = static_cast<char>(random() % 256);
    }
    refused += refusal(text) != "accepted";
  }
  EXPECT_GT(refused, good.size() + 1500);
}

/// A file that is gone afterwards, and with it what was loaded.
class Loaded {
 public:
  explicit Loaded(const std::string& text) : name_(testing::TempDir() + "conv_tuning_test.toml") {
    std::ofstream(name_) << text;
  }
  ~Loaded() {
    std::remove(name_.c_str());
    EXPECT_EQ(taccConvLoadTuning(nullptr), taccSuccess);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  taccResult_t load() { return taccConvLoadTuning(name_.c_str()); }

 private:
  std::string name_;
};

std::string chosen(const taccConvDesc_t& desc) {
  taccConvPlan_t plan = nullptr;
  taccConvInfo_t info{};
  EXPECT_EQ(taccConvPlanCreate(&plan, &desc), taccSuccess) << taccGetLastError(nullptr);
  EXPECT_EQ(taccConvPlanGetInfo(plan, &info), taccSuccess);
  const std::string algorithm = info.algorithm;
  EXPECT_EQ(taccConvPlanDestroy(plan), taccSuccess);
  return algorithm;
}

std::string escaped(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' || text[i] == '\\') text.insert(i++, 1, '\\');
  }
  return text;
}

TEST(ConvTuning, IsFollowedOnlyWhenItIsLoaded) {
  const std::string byModel = chosen(described());
  EXPECT_NE(byModel, "reference");
  std::string text = replaced(std::string(head) + layer, "A \\\"fast\\\" CPU", escaped(taccComputeCpu()));
  text = replaced(text, "avx2", taccComputeIsa());
  {
    Loaded file(text);
    ASSERT_EQ(file.load(), taccSuccess) << taccGetLastError(nullptr);
    EXPECT_EQ(chosen(described()), "reference");
    taccConvDesc_t other = described();
    other.batch = 3;
    EXPECT_EQ(chosen(other), byModel);
    other = described();
    other.algorithm = "direct";
    EXPECT_EQ(chosen(other), "direct");
    Loaded damaged(text.substr(0, text.size() - 20));
    EXPECT_EQ(damaged.load(), taccInvalidArgument);
    EXPECT_EQ(chosen(described()), "reference");  // a failed load changes nothing
  }
  EXPECT_EQ(chosen(described()), byModel);
  Loaded elsewhere(replaced(text, "cpu = \"", "cpu = \"Another "));
  EXPECT_EQ(elsewhere.load(), taccInvalidUsage);
  EXPECT_THAT(taccGetLastError(nullptr), HasSubstr("but this CPU is"));
  EXPECT_NE(taccConvLoadTuning("/no/such/file.toml"), taccSuccess);
  EXPECT_THAT(taccGetLastError(nullptr), HasSubstr("/no/such/file.toml"));
}

TEST(ConvTuning, KnowsTheCpu) {
  const std::string model = taccComputeCpu();
  EXPECT_FALSE(model.empty());
  EXPECT_EQ(model.find_first_of("\n\t"), std::string::npos);
  EXPECT_NE(model.front(), ' ');
  EXPECT_NE(model.back(), ' ');
}

}  // namespace
}  // namespace tacc::conv::test

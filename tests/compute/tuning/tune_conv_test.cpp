// tacc_tune conv: what it measures, and that the library follows the file.
#include "tacc_tune/tune_conv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tacc::tune {
namespace {

taccConvDesc_t described(int channels, int size) {
  taccConvDesc_t desc = TACC_CONV_INITIALIZER;
  desc.inChannels = desc.outChannels = channels;
  desc.height = desc.width = size;
  desc.kernelHeight = desc.kernelWidth = 3;
  desc.padHeight = desc.padWidth = 1;
  return desc;
}

TEST(TuneConv, MeasuresTheAlgorithmsThatServe) {
  taccConvDesc_t desc = described(64, 28);
  desc.winograd = 1;
  const TunedConv tuned = measureConv(desc, 0.05, *taccSerialExecutor());
  ASSERT_FALSE(tuned.candidates.empty());
  EXPECT_TRUE(std::is_sorted(tuned.candidates.begin(), tuned.candidates.end(),
                             [](const ConvCandidate& a, const ConvCandidate& b) { return a.seconds < b.seconds; }));
  for (const ConvCandidate& candidate : tuned.candidates) {
    EXPECT_GT(candidate.seconds, 0);
    EXPECT_NE(candidate.algorithm, "reference");  // tens of times slower, so not worth a run
    EXPECT_FALSE(candidate.kernel.empty());
  }
}

TEST(TuneConv, RefusesWhatIsNoConvolution) {
  taccConvDesc_t desc = described(64, 28);
  desc.groups = 7;
  try {
    measureConv(desc, 0.05, *taccSerialExecutor());
    ADD_FAILURE() << "accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("7 groups do not divide"));
  }
}

TEST(TuneConv, WritesAFileThatTheLibraryFollows) {
  const std::string layers = testing::TempDir() + "tune_conv_layers.txt";
  const std::string file = testing::TempDir() + "tune_conv_test.toml";
  std::ofstream(layers) << "plain 32 14 14 32 3 1 1\nproduct 64 14 14 32 1 2 0\nfirst 3 30 30 16 5 2 2\n"
                           "again 32 14 14 32 3 1 1\n";
  std::string arguments[] = {"conv",      "--net", layers,       "--batch", "1,2",
                             "--seconds", "0.01",  "--winograd", "--out",   file};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  ASSERT_EQ(tuneConv(static_cast<int>(argv.size()), argv.data()), 0);
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  ASSERT_EQ(taccConvLoadTuning(file.c_str()), taccSuccess) << taccGetLastError(nullptr);
  // Each convolution once: two layers with three passes, one with two, for two batches.
  std::size_t count = 0;
  for (std::size_t at = text.str().find("[[layer]]"); at != std::string::npos;
       at = text.str().find("[[layer]]", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, 16U);
  taccConvDesc_t desc = described(32, 14);
  desc.winograd = 1;
  taccConvPlan_t plan = nullptr;
  taccConvInfo_t info{};
  ASSERT_EQ(taccConvPlanCreate(&plan, &desc), taccSuccess);
  ASSERT_EQ(taccConvPlanGetInfo(plan, &info), taccSuccess);
  const std::size_t at = text.str().find("input = [1, 32, 14, 14]");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(text.str().find("algorithm = \"" + std::string(info.algorithm) + "\"", at),
            text.str().find("algorithm", at));
  EXPECT_EQ(taccConvPlanDestroy(plan), taccSuccess);
  EXPECT_EQ(taccConvLoadTuning(nullptr), taccSuccess);
  std::remove(layers.c_str());
  std::remove(file.c_str());
}

}  // namespace
}  // namespace tacc::tune

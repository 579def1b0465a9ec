// tacc_train as people use it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "support/run_program.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;

Ran run(const std::string& arguments, const std::string& environment = "") {
  return runProgram(TACC_TEST_TRAIN, arguments, environment);
}

class Program : public testing::Test {
 protected:
  Program() {
    char name[] = "/tmp/tacc_train_XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Program() override { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string read(const std::string& name) const {
    std::ifstream in(file(name));
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  std::string path_;
};

/// Test accuracies (%) of the epochs of a mode.
std::vector<double> accuracies(const std::string& output, const std::string& mode) {
  std::vector<double> found;
  const std::regex line("\n  " + mode + " +[0-9-]+ +[0-9]+ +[0-9.]+ +[0-9.]+ +([0-9.]+)");
  for (std::sregex_iterator match(output.begin(), output.end(), line), end; match != end; ++match)
    found.push_back(std::stod((*match)[1]));
  return found;
}

const std::string quick = "--images 600 --side 12 --epochs 3 ";

TEST_F(Program, TrainsOnForkedRanksAndDraws) {
  const Ran ran = run(quick + "--mode serial,allreduce --ranks 2 --lr 0.03 --svg " + file("train.svg"));
  ASSERT_EQ(ran.status, 0) << ran.output;
  for (const char* mode : {"serial", "allreduce"}) {
    const std::vector<double> found = accuracies(ran.output, mode);
    ASSERT_EQ(found.size(), 3U) << ran.output;
    EXPECT_GT(found.back(), 60) << ran.output;
  }
  EXPECT_THAT(ran.output, HasSubstr("2 ranks"));
  EXPECT_THAT(read("train.svg"), testing::StartsWith("<svg"));
  EXPECT_THAT(read("train.svg"), testing::EndsWith("</svg>\n"));
}

TEST_F(Program, RunsEveryModeWithEveryTau) {
  const Ran ran =
      run("--mode all --tau 1,3 --ranks 2 --model softmax --images 300 --side 8 --epochs 2 --svg " + file("all.svg"));
  ASSERT_EQ(ran.status, 0) << ran.output;
  const std::string svg = read("all.svg");
  for (const char* mode : {"serial", "allreduce", "allreduce-fused"}) {
    EXPECT_EQ(accuracies(ran.output, mode).size(), 2U) << ran.output;
    EXPECT_THAT(svg, HasSubstr(">" + std::string(mode) + "<"));
  }
  for (const char* mode : {"original", "async", "hogwild", "sync1", "sync2", "sync3", "decentralized",
                           "decentralized-stale", "hierarchical"}) {
    EXPECT_EQ(accuracies(ran.output, mode).size(), 4U) << mode << "\n" << ran.output;
    for (const char* tau : {", tau 1<", ", tau 3<"}) EXPECT_THAT(svg, HasSubstr(">" + std::string(mode) + tau));
  }
}

TEST_F(Program, SaysTheSameWithTheSameSeed) {
  const std::string arguments = quick + "--mode serial --model softmax --ranks 1 --seed ";
  const std::vector<double> once = accuracies(run(arguments + "5").output, "serial");
  EXPECT_EQ(once.size(), 3U);
  EXPECT_EQ(once, accuracies(run(arguments + "5").output, "serial"));
  EXPECT_NE(once, accuracies(run(arguments + "6").output, "serial"));
}

TEST_F(Program, ComparesOverSeedsAndFolds) {
  const std::string arguments =
      "--model softmax --images 300 --side 8 --epochs 2 --batch 16 --ranks 2 --mode serial,sync2 ";
  const Ran ran = run(arguments + "--seed 4,5 --folds 2");
  ASSERT_EQ(ran.status, 0) << ran.output;
  // The last epoch of each run, seed by seed and fold by fold.
  const std::vector<double> serial = accuracies(ran.output, "serial"), sync2 = accuracies(ran.output, "sync2");
  ASSERT_EQ(serial.size(), 4U) << ran.output;
  ASSERT_EQ(sync2.size(), 4U) << ran.output;
  EXPECT_EQ(serial[0], accuracies(run(arguments + "--seed 4").output, "serial").back());
  const auto mean = [](double one, double other) { return (one + other) / 2; };
  const double first = mean(sync2[0], sync2[1]), second = mean(sync2[2], sync2[3]);
  const double behind = std::max(mean(serial[0], serial[1]) - first, mean(serial[2], serial[3]) - second);
  std::smatch row;
  ASSERT_TRUE(std::regex_search(ran.output, row, std::regex("\n# sync2 +4 +([0-9.]+) +([0-9.]+) +(-?[0-9.]+)\n")))
      << ran.output;
  EXPECT_NEAR(std::stod(row[1]), first, 0.011) << ran.output;
  EXPECT_NEAR(std::stod(row[2]), second, 0.011) << ran.output;
  EXPECT_NEAR(std::stod(row[3]), behind, 0.021) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("# seed 5, tested on part 2\n"));
}

TEST_F(Program, IsARankOfALauncher) {
  const std::string command = "WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 TACC_JOB_SECRET=c0ffee" + std::to_string(::getpid());
  const std::string arguments = quick + "--mode allreduce --launched";
  const std::string other = command + " RANK=1 '" TACC_TEST_TRAIN "' " + arguments + " >" + file("one") + " 2>&1 &";
  const Ran ran = run(arguments, other + " " + command + " RANK=0");
  ASSERT_EQ(ran.status, 0) << ran.output << read("one");
  EXPECT_EQ(accuracies(ran.output, "allreduce").size(), 3U) << ran.output;
  EXPECT_EQ(read("one"), "");  // rank 0 speaks for all
}

TEST_F(Program, SaysWhatIsWrong) {
  const auto expectError = [](const std::string& arguments, int status, const std::string& sentence) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.status, status) << arguments;
    EXPECT_THAT(ran.output, HasSubstr(sentence)) << arguments;
  };
  expectError("--mode telepathy", 2,
              "tacc_train: --mode: unknown mode \"telepathy\"; there are all, serial, allreduce");
  expectError("--model alexnet", 2, "--model");
  expectError("--side 10", 2, "--side is 10; it has to be a multiple of 4 from 8 to 64");
  expectError("--tau 0", 2, "--tau");
  expectError(quick + "--mode hierarchical --group trio --ranks 1", 1, "unknown group \"trio\"; there are host, numa");
  expectError("--momentum 1", 2, "--momentum");
  expectError("--folds 6", 2, "--folds");
  expectError("--schedule steep", 2, "--schedule");
  expectError("--data " + file("nothing"), 1, "tacc_train: cannot read " + file("nothing"));
  expectError("--images 100 --ranks 4 --batch 32", 1,
              "tacc_train: a batch of 32 images is more than the 20 that each of 4 ranks has");
  std::ofstream(file("bad.txt")) << "images 1 side 8 classes 2 largest 1\n0 1 2\n";
  expectError("--data " + file("bad.txt"), 1, "bad.txt:2: pixel 1 is \"2\"");
  expectError(quick + "--mode serial --ranks 1 --svg " + file("no/such/folder.svg"), 1, "cannot write");
}

TEST_F(Program, ReadsTheDigitsOfScikitLearn) {
  const Ran exported = runProgram(TACC_TEST_EXPORT, file("digits.txt"), "");
  if (exported.status == 77) GTEST_SKIP() << exported.output;
  ASSERT_EQ(exported.status, 0) << exported.output;
  const Ran ran = run("--mode serial,allreduce --ranks 2 --epochs 8 --lr 0.03 --data " + file("digits.txt"));
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("1438 images of 8 x 8"));
  for (const char* mode : {"serial", "allreduce"}) {
    const std::vector<double> found = accuracies(ran.output, mode);
    ASSERT_EQ(found.size(), 8U) << ran.output;
    EXPECT_GT(found.back(), 95) << ran.output;
  }
}

}  // namespace
}  // namespace tacc::test

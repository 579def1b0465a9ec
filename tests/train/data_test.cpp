// Images: from files, good and bad, drawn, and in parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "dataset.hpp"
#include "errors.hpp"
#include "shapes.hpp"
#include "shard.hpp"

namespace tacc::train {
namespace {

using testing::HasSubstr;

/// A line of an image of 8 x 8: the label, then pixels 0, 1, ... of `largest` in turn.
std::string imageLine(int label, int largest) {
  std::string line = std::to_string(label);
  for (int pixel = 0; pixel < 64; ++pixel) line += " " + std::to_string(pixel % (largest + 1));
  return line + "\n";
}

Dataset read(const std::string& text) {
  std::istringstream in(text);
  return readDataset(in, "digits.txt");
}

std::string errorOf(const std::string& text) {
  try {
    read(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

const std::string header = "images 2 side 8 classes 3 largest 16\n";

TEST(ReadDataset, ReadsLabelsAndPixels) {
  const Dataset data = read(header + imageLine(2, 16) + imageLine(0, 3) + "\n  \n");
  EXPECT_EQ(data.side, 8);
  EXPECT_EQ(data.classes, 3);
  EXPECT_THAT(data.labels, testing::ElementsAre(2, 0));
  EXPECT_EQ(data.image(0)[0], 0.0F);
  EXPECT_EQ(data.image(0)[16], 1.0F);
  EXPECT_EQ(data.image(1)[6], 2.0F / 16);
}

TEST(ReadDataset, SaysWhereAndWhatIsWrong) {
  const std::string good = imageLine(1, 16);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "digits.txt:1: nothing stands where \"images\" has to"},
      {"pictures 2", "digits.txt:1: \"pictures\" stands where \"images\" has to"},
      {"images -2 side 8", "digits.txt:1: the number of images is \"-2\"; it has to be a whole number from 1"},
      {"images 2 side 10 classes 3 largest 16", "digits.txt:1: the side is 10; it has to be a multiple of 4"},
      {"images 2 side 4096 classes 3", "digits.txt:1: the side is \"4096\"; it has to be a whole number from 8 to 64"},
      {"images 2 side 8 classes 1 largest 16", "digits.txt:1: the number of classes is \"1\""},
      {"images 2 side 8 classes 3 largest 0", "digits.txt:1: the largest value of a pixel is \"0\""},
      {"images 2 side 8 classes 3 largest 16 more", "digits.txt:1: \"more\" stands after the largest value"},
      {header, "digits.txt: ends after 0 images; its first line promises 2"},
      {header + good, "digits.txt: ends after 1 images"},
      {header + good + imageLine(3, 16), "digits.txt:3: the label is \"3\"; it has to be a whole number from 0 to 2"},
      {header + good + imageLine(0, 17), "digits.txt:3: pixel 17 is \"17\"; it has to be a whole number from 0 to 16"},
      {header + good + "1 2 3\n", "digits.txt:3: pixel 2 is nothing"},
      {header + good + "1 2.5\n", "digits.txt:3: pixel 0 is \"2.5\""},
      {header + good + "1 0x7\n", "digits.txt:3: pixel 0 is \"0x7\""},
      {header + good + "1 99999999999999999999\n", "digits.txt:3: pixel 0 is \"99999999999999999999\""},
      {header + "1 \xff\x01" + std::string(400, 'x') + "\n", "digits.txt:2: pixel 0 is \"?\?xxxxxxxxxxxxxxxxxx...\""},
      {header + good.substr(0, good.size() - 1) + " 7\n", "digits.txt:2: \"7\" stands after the last pixel"},
      {header + good + good + good, "digits.txt:4: \"1\" stands after the 2 images that the first line promises"}};
  for (const auto& [text, error] : cases) EXPECT_THAT(errorOf(text), HasSubstr(error)) << text;
}

TEST(ReadDataset, SaysHowToGetAFile) {
  try {
    readDatasetFile("/nowhere/digits.txt");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot read /nowhere/digits.txt; examples/train/export_digits.py writes"));
  }
}

TEST(DrawShapes, FollowFromTheSeed) {
  const Dataset one = drawShapes(40, 12, 5);
  EXPECT_EQ(one.pixels, drawShapes(40, 12, 5).pixels);
  EXPECT_NE(one.pixels, drawShapes(40, 12, 6).pixels);
  EXPECT_THROW(drawShapes(40, 10, 5), std::runtime_error);
}

TEST(DrawShapes, HaveEveryClassAndInkOfAnyStrength) {
  const Dataset data = drawShapes(200, 16, 1);
  EXPECT_EQ(data.classes, 10);
  for (int label = 0; label < 10; ++label) EXPECT_EQ(std::ranges::count(data.labels, label), 20);
  for (const float pixel : data.pixels) ASSERT_TRUE(pixel >= 0 && pixel <= 1);
  // A disc is full, a cross is not.
  std::map<int, double> ink;
  for (std::size_t i = 0; i < data.size(); ++i)
    for (std::size_t pixel = 0; pixel < data.pixelsEach(); ++pixel) ink[data.labels[i]] += data.image(i)[pixel];
  EXPECT_GT(ink[6], 1.2 * ink[3]);
}

/// Images that can be told apart: every pixel of image i is i.
Dataset numbered(int images) {
  Dataset data;
  data.side = 8;
  data.classes = 10;
  for (int i = 0; i < images; ++i) data.add(std::vector<float>(64, static_cast<float>(i)).data(), i % 10);
  return data;
}

std::multiset<int> numbersOf(const Dataset& data) {
  std::multiset<int> numbers;
  for (std::size_t i = 0; i < data.size(); ++i) {
    numbers.insert(static_cast<int>(data.image(i)[63]));
    EXPECT_EQ(data.labels[i], static_cast<int>(data.image(i)[0]) % 10);
  }
  return numbers;
}

TEST(SplitDataset, CutsInTwoByTheSeed) {
  const Dataset all = numbered(53);
  const Split split = splitDataset(all, 3);
  EXPECT_EQ(split.test.size(), 10U);
  EXPECT_EQ(split.train.size(), 43U);
  std::multiset<int> both = numbersOf(split.train);
  both.merge(numbersOf(split.test));
  EXPECT_EQ(both, numbersOf(all));
  EXPECT_EQ(split.test.pixels, splitDataset(all, 3).test.pixels);
  EXPECT_NE(split.test.pixels, splitDataset(all, 4).test.pixels);
  EXPECT_THROW(splitDataset(numbered(4), 3), std::runtime_error);
}

TEST(SplitDataset, TestsOnEveryImageInOneOfItsFolds) {
  const Dataset all = numbered(53);
  std::multiset<int> tested;
  for (int fold = 0; fold < foldCount; ++fold) {
    const Split split = splitDataset(all, 3, fold);
    std::multiset<int> both = numbersOf(split.train);
    both.merge(numbersOf(split.test));
    EXPECT_EQ(both, numbersOf(all)) << fold;
    tested.merge(numbersOf(split.test));
  }
  EXPECT_EQ(tested, numbersOf(all));
}

TEST(Shard, IsTheRanksOwn) {
  const Dataset data = numbered(50);
  std::set<int> seen;
  for (int rank = 0; rank < 4; ++rank) {
    Shard shard(data, rank, 4, 3, 1);
    ASSERT_EQ(shard.steps(), 4);
    std::vector<std::vector<int>> epochs;
    for (int epoch = 1; epoch <= 2; ++epoch) {
      shard.beginEpoch(epoch);
      std::vector<int>& numbers = epochs.emplace_back();
      for (int step = 0; step < shard.steps(); ++step) {
        Batch batch;
        shard.take(step, batch);
        ASSERT_EQ(batch.pixels.size(), 3U * 64);
        for (std::size_t i = 0; i < 3; ++i) {
          numbers.push_back(static_cast<int>(batch.pixels[64 * i + 63]));
          EXPECT_EQ(batch.labels[i], numbers.back() % 10);
          EXPECT_EQ(numbers.back() % 4, rank);
        }
      }
      EXPECT_EQ(std::set<int>(numbers.begin(), numbers.end()).size(), numbers.size());
    }
    EXPECT_NE(epochs[0], epochs[1]);  // in another order
    seen.insert(epochs[0].begin(), epochs[0].end());
  }
  EXPECT_EQ(seen.size(), 48U);
  EXPECT_THROW(Shard(data, 0, 4, 13, 1), std::runtime_error);
}

}  // namespace
}  // namespace tacc::train

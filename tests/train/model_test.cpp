// The models' gradients against differences of their loss, and what else weights and scores promise.
#include "model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "random.hpp"
#include "shapes.hpp"

namespace tacc::train {
namespace {

constexpr int batch = 6;
constexpr std::uint64_t seed = 7;

class ModelTest : public testing::TestWithParam<std::string> {
 protected:
  ModelTest() {
    model_->initialize(weights_.data(), seed);
    Random random{seed};  // biases too are to be something
    for (const Tensor& tensor : model_->tensors())
      if (tensor.fanIn == 0)
        for (std::size_t i = 0; i < tensor.count; ++i)
          weights_[tensor.offset + i] = static_cast<float>(0.1 * random.normal());
  }

  double loss() {
    Floats unused(model_->parameterCount());
    return computeGradient(*model_, weights_.data(), data_.image(0), data_.labels.data(), unused.data()).loss;
  }

  const Dataset data_ = drawShapes(50, 8, seed);
  std::unique_ptr<Model> model_ = makeModel(GetParam(), batch, data_.side, data_.classes);
  Floats weights_{model_->parameterCount()};
  Floats gradient_{model_->parameterCount()};
};

TEST_P(ModelTest, GradientIsThatOfEachWeight) {
  const double middle =
      computeGradient(*model_, weights_.data(), data_.image(0), data_.labels.data(), gradient_.data()).loss;
  constexpr float step = 1e-3F;
  for (const Tensor& tensor : model_->tensors()) {
    double largest = 0;
    for (std::size_t i = 0; i < tensor.count; ++i)
      largest = std::max(largest, std::abs(double(gradient_[tensor.offset + i])));
    ASSERT_GT(largest, 0) << tensor.name;
    const std::size_t stride = std::max<std::size_t>(1, tensor.count / 23);
    for (std::size_t i = 0; i < tensor.count; i += stride) {
      float& weight = weights_[tensor.offset + i];
      const float kept = weight;
      weight = kept + step;
      const double above = loss();
      weight = kept - step;
      const double below = loss();
      weight = kept;
      // max(x, 0) and the largest of some pixels have kinks: then the gradient is that of one side.
      const double left = (middle - below) / step;
      const double right = (above - middle) / step;
      const double gradient = gradient_[tensor.offset + i];
      EXPECT_GE(gradient, std::min(left, right) - 0.01 * largest) << tensor.name << " " << i;
      EXPECT_LE(gradient, std::max(left, right) + 0.01 * largest) << tensor.name << " " << i;
    }
  }
}

TEST_P(ModelTest, GradientIsThatOfAllWeightsTogether) {
  computeGradient(*model_, weights_.data(), data_.image(0), data_.labels.data(), gradient_.data());
  double square = 0;
  for (std::size_t i = 0; i < gradient_.size(); ++i) square += double(gradient_[i]) * gradient_[i];
  const double length = std::sqrt(square);
  // Along the gradient the loss grows by its length; the way is short, so few kinks are on it.
  const double way = 1e-3;
  const auto go = [&](double by) {
    for (std::size_t i = 0; i < gradient_.size(); ++i) weights_[i] += static_cast<float>(by * gradient_[i] / length);
  };
  go(way);
  const double above = loss();
  go(-2 * way);
  const double below = loss();
  EXPECT_NEAR((above - below) / (2 * way), length, 0.02 * length);
}

TEST_P(ModelTest, WritesTheWholeGradientAndNothingBetweenTensors) {
  std::vector<bool> isTensor(gradient_.size());
  std::size_t end = 0;
  for (const Tensor& tensor : model_->tensors()) {
    EXPECT_EQ(tensor.offset % 16, 0U) << tensor.name;
    EXPECT_GE(tensor.offset, end) << tensor.name;
    end = tensor.offset + tensor.count;
    std::fill_n(isTensor.begin() + static_cast<std::ptrdiff_t>(tensor.offset), tensor.count, true);
  }
  ASSERT_LE(end, gradient_.size());
  constexpr float mark = 1e30F;
  std::fill_n(gradient_.data(), gradient_.size(), mark);
  computeGradient(*model_, weights_.data(), data_.image(0), data_.labels.data(), gradient_.data());
  for (std::size_t i = 0; i < gradient_.size(); ++i) EXPECT_EQ(gradient_[i] != mark, isTensor[i]) << i;
}

TEST_P(ModelTest, EvaluationCountsEveryImageOnce) {
  // 50 images are eight batches and a part of one.
  std::unique_ptr<Model> single = makeModel(GetParam(), 1, data_.side, data_.classes);
  double loss = 0;
  std::size_t correct = 0;
  for (std::size_t i = 0; i < data_.size(); ++i) {
    const Score one = computeGradient(*single, weights_.data(), data_.image(i), &data_.labels[i], gradient_.data());
    loss += one.loss;
    correct += one.correct;
  }
  const Score all = evaluate(*model_, weights_.data(), data_);
  EXPECT_NEAR(all.loss, loss / static_cast<double>(data_.size()), 1e-4);
  EXPECT_EQ(all.correct, correct);
}

TEST_P(ModelTest, FirstWeightsFollowFromTheSeed) {
  Floats same(weights_.size()), other(weights_.size());
  model_->initialize(weights_.data(), seed);
  model_->initialize(same.data(), seed);
  model_->initialize(other.data(), seed + 1);
  EXPECT_TRUE(std::equal(weights_.data(), weights_.data() + weights_.size(), same.data()));
  EXPECT_FALSE(std::equal(weights_.data(), weights_.data() + weights_.size(), other.data()));
}

INSTANTIATE_TEST_SUITE_P(Models, ModelTest, testing::ValuesIn(modelNames()));

TEST(MakeModel, RefusesUnknownNames) { EXPECT_THROW(makeModel("alexnet", 1, 8, 10), std::runtime_error); }

}  // namespace
}  // namespace tacc::train

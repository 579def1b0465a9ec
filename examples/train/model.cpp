#include "model.hpp"

#include <algorithm>
#include <cmath>

#include "layers.hpp"
#include "random.hpp"

namespace tacc::train {
namespace {

constexpr std::size_t tensorAlignment = 64 / sizeof(float);

class SoftmaxRegression : public Model {
 public:
  SoftmaxRegression(int batch, int side, int classes)
      : Model(batch, classes), layer_(batch, side * side, classes, false), scores_(layer_.outputCount()) {
    weights_ = add("weights", layer_.weightCount(), layer_.inputs());
    bias_ = add("bias", static_cast<std::size_t>(classes), 0);
  }

  const float* forward(const float* weights, const float* images) override {
    layer_.forward(images, weights + weights_, weights + bias_, scores_.data());
    return scores_.data();
  }
  void backward(const float* /*weights*/, const float* images, float* scoreGradient, float* gradient) override {
    layer_.backwardWeights(images, scores_.data(), scoreGradient, gradient + weights_, gradient + bias_);
  }

 private:
  FullyConnected layer_;
  Floats scores_;
  std::size_t weights_, bias_;
};

class LeNet : public Model {
 public:
  LeNet(int batch, int side, int classes)
      : Model(batch, classes),
        conv1_(batch, 1, side, channels1, kernel, true),
        pool1_(batch, channels1, side),
        conv2_(batch, channels1, side / 2, channels2, kernel, false),
        pool2_(batch, channels2, side / 2),
        full1_(batch, channels2 * (side / 4) * (side / 4), hidden, true),
        full2_(batch, hidden, classes, false) {
    conv1Weights_ = add("conv1 weights", conv1_.weightCount(), conv1_.fanIn());
    conv1Bias_ = add("conv1 bias", channels1, 0);
    conv2Weights_ = add("conv2 weights", conv2_.weightCount(), conv2_.fanIn());
    conv2Bias_ = add("conv2 bias", channels2, 0);
    full1Weights_ = add("full1 weights", full1_.weightCount(), full1_.inputs());
    full1Bias_ = add("full1 bias", hidden, 0);
    full2Weights_ = add("full2 weights", full2_.weightCount(), full2_.inputs());
    full2Bias_ = add("full2 bias", static_cast<std::size_t>(classes), 0);
  }

  const float* forward(const float* weights, const float* images) override {
    conv1_.forward(images, weights + conv1Weights_, weights + conv1Bias_, conv1Out_.data());
    pool1_.forward(conv1Out_.data(), pool1Out_.data());
    conv2_.forward(pool1Out_.data(), weights + conv2Weights_, weights + conv2Bias_, conv2Out_.data());
    pool2_.forward(conv2Out_.data(), pool2Out_.data());
    // The channels are whole blocks of 16, so an image's numbers lie behind each other: a row, in some order.
    full1_.forward(pool2Out_.data(), weights + full1Weights_, weights + full1Bias_, full1Out_.data());
    full2_.forward(full1Out_.data(), weights + full2Weights_, weights + full2Bias_, scores_.data());
    return scores_.data();
  }

  void backward(const float* weights, const float* images, float* scoreGradient, float* gradient) override {
    full2_.backwardWeights(full1Out_.data(), scores_.data(), scoreGradient, gradient + full2Weights_,
                           gradient + full2Bias_);
    full2_.backwardData(scoreGradient, weights + full2Weights_, full1Gradient_.data());
    full1_.backwardWeights(pool2Out_.data(), full1Out_.data(), full1Gradient_.data(), gradient + full1Weights_,
                           gradient + full1Bias_);
    full1_.backwardData(full1Gradient_.data(), weights + full1Weights_, pool2Gradient_.data());
    pool2_.backward(conv2Out_.data(), pool2Out_.data(), pool2Gradient_.data(), conv2Gradient_.data());
    conv2_.backwardWeights(pool1Out_.data(), conv2Out_.data(), conv2Gradient_.data(), gradient + conv2Weights_,
                           gradient + conv2Bias_);
    conv2_.backwardData(conv2Gradient_.data(), weights + conv2Weights_, pool1Gradient_.data());
    pool1_.backward(conv1Out_.data(), pool1Out_.data(), pool1Gradient_.data(), conv1Gradient_.data());
    conv1_.backwardWeights(images, conv1Out_.data(), conv1Gradient_.data(), gradient + conv1Weights_,
                           gradient + conv1Bias_);
  }

 private:
  static constexpr int channels1 = 16, channels2 = 32, kernel = 5, hidden = 128;

  Convolution conv1_;
  Pooling pool1_;
  Convolution conv2_;
  Pooling pool2_;
  FullyConnected full1_, full2_;
  std::size_t conv1Weights_, conv1Bias_, conv2Weights_, conv2Bias_;
  std::size_t full1Weights_, full1Bias_, full2Weights_, full2Bias_;
  Floats conv1Out_{conv1_.outputCount()}, conv1Gradient_{conv1_.outputCount()};
  Floats pool1Out_{pool1_.outputCount()}, pool1Gradient_{pool1_.outputCount()};
  Floats conv2Out_{conv2_.outputCount()}, conv2Gradient_{conv2_.outputCount()};
  Floats pool2Out_{pool2_.outputCount()}, pool2Gradient_{pool2_.outputCount()};
  Floats full1Out_{full1_.outputCount()}, full1Gradient_{full1_.outputCount()};
  Floats scores_{full2_.outputCount()};
};

std::size_t countCorrect(const float* scores, const int* labels, std::size_t rows, int classes) {
  std::size_t correct = 0;
  for (std::size_t row = 0; row < rows; ++row, scores += classes)
    correct += std::max_element(scores, scores + classes) - scores == labels[row] ? 1 : 0;
  return correct;
}

}  // namespace

std::size_t Model::add(const std::string& name, std::size_t count, int fanIn) {
  const std::size_t offset = parameterCount_;
  tensors_.push_back({name, offset, count, fanIn});
  parameterCount_ = (offset + count + tensorAlignment - 1) / tensorAlignment * tensorAlignment;
  return offset;
}

void Model::initialize(float* weights, std::uint64_t seed) const {
  std::fill_n(weights, parameterCount_, 0.0F);
  Random random{seed, 3};
  for (const Tensor& tensor : tensors_)
    if (tensor.fanIn > 0)
      for (std::size_t i = 0; i < tensor.count; ++i)
        weights[tensor.offset + i] = static_cast<float>(std::sqrt(2.0 / tensor.fanIn) * random.normal());
}

std::unique_ptr<Model> makeModel(const std::string& name, int batch, int side, int classes) {
  if (name == "softmax") return std::make_unique<SoftmaxRegression>(batch, side, classes);
  if (name == "lenet") return std::make_unique<LeNet>(batch, side, classes);
  fail("unknown model \"{}\"; there are {}", name, fmt::join(modelNames(), ", "));
}

std::vector<std::string> modelNames() { return {"softmax", "lenet"}; }

Score computeGradient(Model& model, const float* weights, const float* images, const int* labels, float* gradient) {
  const auto rows = static_cast<std::size_t>(model.batch());
  std::vector<float> scoreGradient(rows * static_cast<std::size_t>(model.classes()));
  const float* scores = model.forward(weights, images);
  Score score;
  check(taccSoftmaxLoss(scores, labels, &score.loss, scoreGradient.data(), model.batch(), model.classes()));
  score.correct = countCorrect(scores, labels, rows, model.classes());
  model.backward(weights, images, scoreGradient.data(), gradient);
  return score;
}

Score evaluate(Model& model, const float* weights, const Dataset& data) {
  const auto batch = static_cast<std::size_t>(model.batch());
  std::vector<float> last(batch * data.pixelsEach());  // what is no whole batch: the other images are empty
  Score all;
  for (std::size_t begin = 0; begin < data.size(); begin += batch) {
    const std::size_t count = std::min(batch, data.size() - begin);
    const float* images = data.image(begin);
    if (count < batch) {
      std::copy_n(images, count * data.pixelsEach(), last.begin());
      images = last.data();
    }
    const float* scores = model.forward(weights, images);
    double loss = 0;
    check(taccSoftmaxLoss(scores, &data.labels[begin], &loss, nullptr, static_cast<int>(count), model.classes()));
    all.loss += loss * static_cast<double>(count) / static_cast<double>(data.size());
    all.correct += countCorrect(scores, &data.labels[begin], count, model.classes());
  }
  return all;
}

}  // namespace tacc::train

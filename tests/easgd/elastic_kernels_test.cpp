// The kernels of an exchange, on every instruction set that this machine has, against plain arithmetic: bit for bit.
#include "easgd/elastic_kernels.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace tacc {
namespace {

struct Numbers {
  std::vector<float> center, weights;
};

Numbers drawn(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  Numbers numbers;
  for (std::size_t i = 0; i < count; ++i) {
    numbers.center.push_back(normal(random));
    numbers.weights.push_back(normal(random));
  }
  return numbers;
}

/// Rounded after every operation, as volatile has the compiler do.
float rounded(float value) {
  volatile float stored = value;
  return stored;
}

bool sameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(ElasticKernels, GiveTheSameBitsAsPlainArithmeticOnEveryInstructionSet) {
  constexpr float alpha = 0.3f;
  for (const Isa& isa : availableIsas()) {
    const ElasticKernels kernels = elasticKernelsFor(isa);
    for (const std::size_t count : {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 1000, 4099}) {
      const Numbers begin = drawn(count, static_cast<std::uint32_t>(count));
      std::vector<float> difference(count), center(count), weights(count);
      for (std::size_t i = 0; i < count; ++i) {
        difference[i] = rounded(alpha * rounded(begin.weights[i] - begin.center[i]));
        center[i] = rounded(begin.center[i] + difference[i]);
        weights[i] = rounded(begin.weights[i] - difference[i]);
      }
      for (const MoveKernel move : {kernels.move, kernels.moveUnlocked}) {
        Numbers now = begin;
        std::vector<float> moved(count);
        move(now.center.data(), now.weights.data(), alpha, moved.data(), count);
        EXPECT_TRUE(sameBits(moved, difference)) << isa.name << ", " << count;
        EXPECT_TRUE(sameBits(now.center, center)) << isa.name << ", " << count;
        EXPECT_TRUE(sameBits(now.weights, begin.weights)) << isa.name << ", " << count;
        kernels.subtract(now.weights.data(), moved.data(), count);
        EXPECT_TRUE(sameBits(now.weights, weights)) << isa.name << ", " << count;
      }
      std::vector<float> copy(count);
      kernels.copyUnlocked(copy.data(), begin.center.data(), count);
      EXPECT_TRUE(sameBits(copy, begin.center)) << isa.name << ", " << count;
    }
  }
}

TEST(ElasticKernels, WriteNothingBehindTheEnd) {
  for (const Isa& isa : availableIsas()) {
    const ElasticKernels kernels = elasticKernelsFor(isa);
    for (std::size_t count = 0; count < 70; ++count) {
      std::vector<float> center(count + 1, 5.0f), difference(count + 1, 7.0f), weights(count + 1, 1.0f);
      kernels.move(center.data(), weights.data(), 0.5f, difference.data(), count);
      kernels.moveUnlocked(center.data(), weights.data(), 0.5f, difference.data(), count);
      kernels.subtract(weights.data(), difference.data(), count);
      EXPECT_EQ(center[count], 5.0f);
      EXPECT_EQ(difference[count], 7.0f);
      EXPECT_EQ(weights[count], 1.0f);
    }
  }
}

}  // namespace
}  // namespace tacc

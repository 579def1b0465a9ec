// Updates of weights: every instruction set gives the bits of plain loops, touches nothing else, and sees what is not
// finite wherever it is.
#include "compute/reduce/update.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <list>
#include <random>
#include <vector>

#include "guarded_buffer.hpp"
#include "isa_parameter.hpp"

namespace tacc::test {
namespace {

/// Through memory, so that no product and sum is contracted.
float rounded(float value) {
  volatile float kept = value;
  return kept;
}

class UpdateKernel : public testing::TestWithParam<Isa> {
 protected:
  const UpdateKernels kernels = makeUpdateKernels(GetParam());
  std::mt19937 random{5};

  std::vector<float> draw(std::size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = std::uniform_real_distribution<float>(-3, 3)(random);
    return values;
  }
};

/// Numbers between guard pages, at an odd place.
struct Guarded {
  explicit Guarded(const std::vector<float>& from) : buffer(from.size() * sizeof(float), 4), count(from.size()) {
    if (count > 0) std::memcpy(data(), from.data(), count * sizeof(float));
  }
  float* data() { return buffer.as<float>(); }
  std::vector<float> values() { return {data(), data() + count}; }
  GuardedBuffer buffer;
  std::size_t count;
};

constexpr std::size_t counts[] = {0, 1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 1000, 1024, 1031};

TEST_P(UpdateKernel, stepsAreThoseOfPlainLoops) {
  constexpr float rate = 0.013f, momentum = 0.9f;
  for (const std::size_t count : counts)
    for (int terms = 0; terms < 8; ++terms) {
      const bool hasGradient = (terms & 1) != 0, hasVelocity = (terms & 2) != 0, hasPull = (terms & 4) != 0;
      std::vector<float> x = draw(count), v = draw(count);
      const std::vector<float> g = draw(count), d = draw(count);
      Guarded weights(x), velocity(v), gradient(g), pull(d);
      kernels.update({.weights = weights.data(),
                      .velocity = hasVelocity ? velocity.data() : nullptr,
                      .gradient = hasGradient ? gradient.data() : nullptr,
                      .pull = hasPull ? pull.data() : nullptr,
                      .rate = rate,
                      .momentum = momentum,
                      .count = count});
      for (std::size_t i = 0; i < count; ++i) {
        if (hasPull) x[i] = rounded(x[i] - d[i]);
        if (!hasGradient) continue;
        const float step = rounded(rate * g[i]);
        if (hasVelocity) {
          const float kept = rounded(momentum * v[i]);
          v[i] = rounded(kept - step);
          x[i] = rounded(x[i] + v[i]);
        } else {
          x[i] = rounded(x[i] - step);
        }
      }
      EXPECT_EQ(weights.values(), x) << count << " elements, terms " << terms;
      EXPECT_EQ(velocity.values(), v) << count << " elements, terms " << terms;
    }
}

TEST_P(UpdateKernel, differencesAndAverages) {
  constexpr float alpha = 0.3f, ranks = 3;
  for (const std::size_t count : counts) {
    const std::vector<float> x = draw(count), c = draw(count), s = draw(count);
    Guarded weights(x), center(c), sum(s), difference(x);
    kernels.differ(difference.data(), weights.data(), center.data(), alpha, count);
    kernels.average(center.data(), sum.data(), alpha, ranks, count);
    for (std::size_t i = 0; i < count; ++i) {
      const float apart = rounded(x[i] - c[i]), many = rounded(ranks * c[i]);
      ASSERT_EQ(difference.data()[i], rounded(alpha * apart));
      const float moved = rounded(s[i] - many);
      ASSERT_EQ(center.data()[i], rounded(c[i] + rounded(alpha * moved)));
    }
  }
}

TEST_P(UpdateKernel, anExchangeMovesAllRanksAndTheirCenter) {
  constexpr float alpha = 0.3f, rate = 0.013f;
  for (const std::size_t count : counts)
    for (const std::size_t ranks : {1, 2, 3, 7})
      for (const bool hasGradient : {false, true}) {
        // The elements before `first` and behind the end stay as they are.
        const std::size_t first = count / 3, part = count - first - count / 5;
        std::vector<float> c = draw(count);
        Guarded center(c);
        std::list<Guarded> weights, gradients;
        std::vector<std::vector<float>> x, g;
        std::vector<float*> weightsAt;
        std::vector<const float*> gradientsAt;
        for (std::size_t r = 0; r < ranks; ++r) {
          weightsAt.push_back(weights.emplace_back(x.emplace_back(draw(count))).data());
          gradientsAt.push_back(gradients.emplace_back(g.emplace_back(draw(count))).data());
        }
        kernels.exchange({weightsAt.data(), hasGradient ? gradientsAt.data() : nullptr, ranks, center.data(), alpha,
                          rate, first, part});
        for (std::size_t i = first; i < first + part; ++i) {
          float sum = 0;
          for (std::size_t r = 0; r < ranks; ++r) {
            const float apart = rounded(x[r][i] - c[i]), difference = rounded(alpha * apart);
            sum = r == 0 ? difference : rounded(sum + difference);
            x[r][i] = rounded(x[r][i] - difference);
            const float step = rounded(rate * g[r][i]);
            if (hasGradient) x[r][i] = rounded(x[r][i] - step);
          }
          c[i] = rounded(c[i] + sum);
        }
        EXPECT_EQ(center.values(), c) << count << " elements, " << ranks << " ranks";
        std::size_t r = 0;
        for (Guarded& one : weights) EXPECT_EQ(one.values(), x[r++]) << count << " elements, " << ranks << " ranks";
      }
}

TEST_P(UpdateKernel, findsWhatIsNotFinite) {
  for (const std::size_t count : counts) {
    const std::vector<float> x = draw(count);
    Guarded values(x);
    EXPECT_TRUE(kernels.areFinite(values.data(), count));
    for (std::size_t i = 0; i < count; i += 1 + count / 50)
      for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN()}) {
        values.data()[i] = bad;
        EXPECT_FALSE(kernels.areFinite(values.data(), count)) << i << " of " << count;
        values.data()[i] = std::numeric_limits<float>::max();
        EXPECT_TRUE(kernels.areFinite(values.data(), count));
        values.data()[i] = x[i];
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, UpdateKernel, testing::ValuesIn(availableIsas()), nameOfIsa);

}  // namespace
}  // namespace tacc::test

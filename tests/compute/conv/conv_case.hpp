// A convolution with small integers, so that every sum is exact in float32 in any order, and its result by definition.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "compute/conv/algorithms.hpp"
#include "compute/conv/layout.hpp"
#include "compute/conv/weights.hpp"
#include "tacc/compute.h"

namespace tacc::conv::test {

/// One number of a sequence that only depends on `seed` and `i`, in [-range, range].
inline float smallInteger(std::uint64_t seed, std::uint64_t i, int range) {
  std::uint64_t x = (seed * 0x9e3779b97f4a7c15ULL) ^ (i + 1) * 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 29;
  x *= 0x94d049bb133111ebULL;
  return static_cast<float>(static_cast<int>((x >> 33) % static_cast<std::uint64_t>(2 * range + 1)) - range);
}

/// Memory that is aligned and padded as the interface wants it; zeroed.
class Floats {
 public:
  explicit Floats(std::size_t count) : storage_(count + 32, 0.0F), count_(count) {}
  Floats(const Floats& other) : Floats(other.count_) { std::copy_n(other.data(), count_, data()); }
  Floats(Floats&&) = default;
  Floats& operator=(const Floats&) = delete;
  Floats& operator=(Floats&&) = default;
  ~Floats() = default;

  float* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    return storage_.data() + (64 - address % 64) % 64 / sizeof(float);
  }
  const float* data() const { return const_cast<Floats*>(this)->data(); }
  std::size_t size() const { return count_; }
  float& operator[](std::ptrdiff_t i) { return data()[i]; }
  float operator[](std::ptrdiff_t i) const { return data()[i]; }
  bool operator==(const Floats& other) const {
    return count_ == other.count_ && std::equal(data(), data() + count_, other.data());
  }

 private:
  std::vector<float> storage_;
  std::size_t count_;
};

/// A description with all tensors, filled with small integers, and what the definition says.
class Case {
 public:
  explicit Case(const taccConvDesc_t& desc);

  const Description& description() const { return description_; }
  taccConvDesc_t desc;
  Floats input, weights, outputGradient, residual, bias;
  /// What the result holds before the run: garbage, or what is accumulated to.
  Floats before;

  /// By the definition, in double.
  Floats expected() const;
  /// What a plan computes. The result is checked for nothing.
  Floats run(const ConvPlan& plan, const taccExecutor_t& executor) const;
  /// Whether a result is the expected one: the same bits, but for SiLU, which rounds.
  bool isRight(const Floats& result, const Floats& expected) const;
  /// "forward 1x16x5x5 -> 16, 3x3".
  std::string text() const;

 private:
  Description description_;
};

/// Runs `desc` with every instruction set and every algorithm that serves it, and compares exactly.
void expectExact(const taccConvDesc_t& desc);

/// The same with the plan that is chosen, which may be one for a simpler shape.
void expectExactAsChosen(const taccConvDesc_t& desc, const taccExecutor_t& executor = *taccSerialExecutor());

taccConvDesc_t convolution(taccConvPass_t pass, int batch, int inChannels, int height, int width, int outChannels,
                           int kernel, int stride = 1, int pad = 0);

/// Kernel, strides, padding and dilation at random; the image grows where the kernel would not fit.
void chooseKernel(taccConvDesc_t& desc, std::mt19937& random);

/// Draws what the pass of a description may do beside the sums: forward bias, residual and activation, and otherwise
/// whether the result is added to what is there.
void chooseEpilogue(taccConvDesc_t& desc, std::mt19937& random);

inline constexpr taccActivation_t allActivations[] = {taccActivationNone, taccActivationRelu, taccActivationRelu6,
                                                      taccActivationSilu, taccActivationHardSwish};

inline constexpr taccConvPass_t allPasses[] = {taccConvForward, taccConvBackwardData, taccConvBackwardWeights};

}  // namespace tacc::conv::test

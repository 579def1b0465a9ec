// A Case whose activations are bfloat16.
#pragma once

#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>

#include "conv_case.hpp"

namespace tacc::conv::test {

/// By the definition: 8 significant bits, to the nearest even.
inline float rounded(float x) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(x, 8 - exponent)), exponent - 8);
}

inline std::uint16_t upperHalf(float x) {
  return static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, x) >> 16);
}
inline float widened(std::uint16_t x) { return __builtin_bit_cast(float, std::uint32_t{x} << 16); }

/// Numbers in bfloat16, aligned. The tensors of a Case are: small integers.
class Halves {
 public:
  explicit Halves(const Floats& from) : storage_((from.size() + 1) / 2), count_(from.size()) {
    for (std::size_t i = 0; i < count_; ++i) data()[i] = upperHalf(from.data()[i]);
  }
  std::uint16_t* data() { return reinterpret_cast<std::uint16_t*>(storage_.data()); }
  float* asFloats() { return storage_.data(); }
  Floats floats() {
    Floats result(count_);
    for (std::size_t i = 0; i < count_; ++i) result.data()[i] = widened(data()[i]);
    return result;
  }

 private:
  Floats storage_;
  std::size_t count_;
};

/// What a plan computes of a case whose numbers are all bfloat16.
inline Floats runInBfloat16(const Case& test, const KernelSet& kernels, const taccExecutor_t& executor) {
  const auto plan = makePlan(test.description(), kernels).plan;
  EXPECT_THAT(plan->kernel(), testing::AnyOf(testing::EndsWith(" bf16"), testing::EndsWith(" bf16 pairs"),
                                             testing::EndsWith(" bf16 in place")));
  Halves input(test.input), gradient(test.outputGradient), residual(test.residual), result(test.before);
  Floats weightGradient = test.before;
  Floats packed(plan->packedFloats());
  plan->pack(test.weights.data(), packed.data());
  Floats workspace(plan->workspaceBytes() / sizeof(float));
  std::fill_n(workspace.data(), workspace.size(), 1e30F);
  const bool isWeights = test.description().pass == taccConvBackwardWeights;
  plan->run({input.asFloats(), packed.data(), gradient.asFloats(), test.bias.data(), residual.asFloats(),
             isWeights ? weightGradient.data() : result.asFloats(), workspace.data(), plan->workspaceBytes()},
            TaskExecutor(executor));
  return isWeights ? weightGradient : result.floats();
}

}  // namespace tacc::conv::test

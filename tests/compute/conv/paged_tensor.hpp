// Tensors between pages that may not be touched, of float32 or bfloat16.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../guarded_buffer.hpp"
#include "bfloat16_case.hpp"

namespace tacc::conv::test {

/// A tensor as the plan sees it, at the beginning of its pages or at their end.
class PagedTensor {
 public:
  PagedTensor(const Floats& numbers, bool areHalves, bool isAtEnd)
      : count_(numbers.size()),
        areHalves_(areHalves),
        bytes_(count_ * (areHalves ? sizeof(std::uint16_t) : sizeof(float))),
        pages_(bytes_ / 4096 + 1),
        at_(isAtEnd ? pages_.atEnd(bytes_) : pages_.atBegin()) {
    if (areHalves) {
      std::memcpy(at_, Halves(numbers).data(), bytes_);
    } else {
      std::memcpy(at_, numbers.data(), bytes_);
    }
  }
  float* data() { return reinterpret_cast<float*>(at_); }
  Floats floats() const {
    Floats result(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      result.data()[i] =
          areHalves_ ? widened(reinterpret_cast<const std::uint16_t*>(at_)[i]) : reinterpret_cast<const float*>(at_)[i];
    }
    return result;
  }

 private:
  std::size_t count_;
  bool areHalves_;
  std::size_t bytes_;
  tacc::test::PageBuffer pages_;
  unsigned char* at_;
};

/// What a plan is to compute of a case: in bfloat16 rounded once, but for gradients of weights.
inline Floats expectedNumbers(const Case& test) {
  Floats right = test.expected();
  const Description& d = test.description();
  if (!d.isBfloat16 || d.pass == taccConvBackwardWeights) return right;
  for (std::size_t i = 0; i < right.size(); ++i) right.data()[i] = rounded(right.data()[i]);
  return right;
}

/// What it computes from and to such tensors.
inline Floats runBetweenPages(const Case& test, const ConvPlan& plan, bool isAtEnd, const taccExecutor_t& executor) {
  const Description& d = test.description();
  const bool isOfWeights = d.pass == taccConvBackwardWeights;
  PagedTensor input(test.input, d.isBfloat16, isAtEnd), gradient(test.outputGradient, d.isBfloat16, isAtEnd);
  PagedTensor residual(test.residual, d.isBfloat16, isAtEnd);
  PagedTensor result(test.before, d.isBfloat16 && !isOfWeights, isAtEnd);
  Floats packed(plan.packedFloats()), workspace(plan.workspaceBytes() / sizeof(float));
  std::fill_n(workspace.data(), workspace.size(), 1e30F);
  plan.pack(test.weights.data(), packed.data());
  plan.run({input.data(), packed.data(), gradient.data(), test.bias.data(), residual.data(), result.data(),
            workspace.data(), plan.workspaceBytes()},
           TaskExecutor(executor));
  return result.floats();
}

}  // namespace tacc::conv::test

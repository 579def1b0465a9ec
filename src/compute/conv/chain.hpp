// Two forward convolutions, of which the second reads what the first writes: what is between them lies in the
// workspace, whole, or some lines of it at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "compute/conv/algorithms.hpp"

namespace tacc::conv {

/// Both, checked: float32 or bfloat16 alike, and what is between them is blocked.
struct Chain {
  Description first, second;
};

/// Checks that the second reads what the first writes. Throws Error (taccInvalidArgument).
Chain understandChain(const taccConvDesc_t& first, const taccConvDesc_t& second);

/// Immutable once made. Buffers are as a plan's; bias and residual are the second convolution's, and packed weights
/// both convolutions'.
class ChainPlan : public ConvPlan {
 public:
  /// `firstBias`: only if the first convolution has one.
  virtual void packBoth(const float* firstWeights, const float* firstBias, const float* secondWeights,
                        float* packed) const = 0;
  bool hasFirstBias() const { return chain_.first.bias; }

 protected:
  ChainPlan(std::string kernel, const Chain& chain) : ConvPlan(std::move(kernel)), chain_(chain) {}
  const Chain& chain() const { return chain_; }

 private:
  Chain chain_;
};

/// Where packed weights of a chain are, in floats: those of the first convolution, its bias, those of the second.
struct ChainWeights {
  std::size_t bias, second, all;
};
ChainWeights placeWeights(const Description& first, std::size_t firstFloats, std::size_t secondFloats);
/// What packBoth() does with the bias: zeros behind the last channel.
void packChainBias(const Description& first, const float* bias, float* packed);

struct ChosenChain {
  std::string_view algorithm;
  std::unique_ptr<ChainPlan> plan;
};

/// The cheaper of one pass over both, where there is one, and one convolution behind the other; or the one that
/// `first.algorithm` names.
ChosenChain makeChain(const Chain& chain, const KernelSet& kernels);

/// Channel-wise and then 1x1, without a whole image between them.
bool servesDepthwiseProduct(const Chain& chain);
std::unique_ptr<ChainPlan> makeDepthwiseProduct(const Chain& chain, const KernelSet& kernels);

}  // namespace tacc::conv

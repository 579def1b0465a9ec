// Element-wise updates of weights in float32: a step of SGD, with momentum, with a pull towards a center.
//
// Products and sums are rounded one by one on every instruction set, so equal inputs give equal bits on all ranks.
#pragma once

#include <cstddef>
#include <string_view>

#include "compute/simd/isa.hpp"

namespace tacc {

/// x = (x - pull) - rate * g, or with a velocity  v = momentum * v - rate * g,  x = (x - pull) + v. Each of `pull` and
/// `gradient` may be null, which leaves its term out (without a gradient the velocity stays as it is).
struct UpdateJob {
  float* weights;
  float* velocity = nullptr;  // null: no momentum
  const float* gradient = nullptr;
  const float* pull = nullptr;
  float rate = 0;
  float momentum = 0;
  std::size_t count = 0;
};

/// Several ranks' weights and their center in one pass over memory, every number read and written once. With
/// d[r] = alpha * (x[r] - c):  x[r] = (x[r] - d[r]) - rate * g[r],  c = c + (d[0] + d[1] + ...)
struct ExchangeJob {
  float* const* weights;          // of each rank, from element 0 on
  const float* const* gradients;  // likewise; null: there is no step, and x[r] - d[r] stays
  std::size_t ranks;              // 1 or more
  float* center;                  // from element 0 on
  float alpha;
  float rate;
  std::size_t first, count;  // the elements [first, first + count)
};

struct UpdateKernels {
  std::string_view isa;
  void (*update)(const UpdateJob&);
  /// difference = alpha * (weights - center)
  void (*differ)(float* difference, const float* weights, const float* center, float alpha, std::size_t count);
  /// center += alpha * (sum - ranks * center), where `sum` is that of all ranks' weights
  void (*average)(float* center, const float* sum, float alpha, float ranks, std::size_t count);
  void (*exchange)(const ExchangeJob&);
  /// Whether all are finite.
  bool (*areFinite)(const float* values, std::size_t count);
};

/// For tests; `isa` must be one of availableIsas().
UpdateKernels makeUpdateKernels(const Isa& isa);

/// The kernels of the instruction set that this process uses. Throws at the first call when TACC_ISA does not fit this
/// CPU.
const UpdateKernels& updateKernels();

/// All arrays of an update, cut into pieces that stay in the L1 cache together.
inline constexpr std::size_t updateTile = 1024;

}  // namespace tacc

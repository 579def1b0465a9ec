// The kernels of update.hpp. This file is compiled without contraction of products and sums.
#include "compute/simd/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/reduce/update_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's rule: the per-target headers come after foreach_target.h.
#include <hwy/highway.h>

#include "compute/reduce/traverse-inl.hpp"
#include "compute/reduce/update.hpp"

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;

template <class Self>
struct FloatStep {
  HWY_INLINE void run(std::size_t begin, std::size_t end) const {
    const Floats d;
    const Self& self = static_cast<const Self&>(*this);
#pragma GCC unroll 4
    for (std::size_t i = begin; i < end; i += hn::MaxLanes(Floats())) self.write(d, i, self.compute(d, i));
  }
  HWY_INLINE std::size_t headLength(std::size_t) const { return 0; }
};

template <bool kGradient, bool kMomentum, bool kPull>
struct UpdateStep : FloatStep<UpdateStep<kGradient, kMomentum, kPull>> {
  UpdateJob job;

  template <class D>
  struct Values {
    hn::Vec<D> weights, velocity;
  };
  template <class D>
  HWY_INLINE Values<D> compute(D d, std::size_t i) const {
    auto weights = hn::LoadU(d, job.weights + i);
    auto velocity = weights;
    if constexpr (kPull) weights = hn::Sub(weights, hn::LoadU(d, job.pull + i));
    if constexpr (kGradient) {
      const auto step = hn::Mul(hn::Set(d, job.rate), hn::LoadU(d, job.gradient + i));
      if constexpr (kMomentum) {
        velocity = hn::Sub(hn::Mul(hn::Set(d, job.momentum), hn::LoadU(d, job.velocity + i)), step);
        weights = hn::Add(weights, velocity);
      } else {
        weights = hn::Sub(weights, step);
      }
    }
    return {weights, velocity};
  }
  template <class D>
  HWY_INLINE void write(D d, std::size_t i, const Values<D>& values) const {
    hn::StoreU(values.weights, d, job.weights + i);
    if constexpr (kMomentum) hn::StoreU(values.velocity, d, job.velocity + i);
  }
};

template <bool kGradient, bool kMomentum, bool kPull>
void runUpdate(const UpdateJob& job) {
  UpdateStep<kGradient, kMomentum, kPull> step;
  step.job = job;
  traverse<Floats>(step, job.count);
}

void update(const UpdateJob& job) {
  const bool pulls = job.pull != nullptr;
  if (job.gradient == nullptr) {
    if (pulls) runUpdate<false, false, true>(job);
  } else if (job.velocity != nullptr) {
    pulls ? runUpdate<true, true, true>(job) : runUpdate<true, true, false>(job);
  } else {
    pulls ? runUpdate<true, false, true>(job) : runUpdate<true, false, false>(job);
  }
}

struct DifferStep : FloatStep<DifferStep> {
  float* difference;
  const float* weights;
  const float* center;
  float alpha;

  template <class D>
  HWY_INLINE hn::Vec<D> compute(D d, std::size_t i) const {
    return hn::Mul(hn::Set(d, alpha), hn::Sub(hn::LoadU(d, weights + i), hn::LoadU(d, center + i)));
  }
  template <class D>
  HWY_INLINE void write(D d, std::size_t i, hn::Vec<D> value) const {
    hn::StoreU(value, d, difference + i);
  }
};

void differ(float* difference, const float* weights, const float* center, float alpha, std::size_t count) {
  DifferStep step;
  step.difference = difference;
  step.weights = weights;
  step.center = center;
  step.alpha = alpha;
  traverse<Floats>(step, count);
}

struct AverageStep : FloatStep<AverageStep> {
  float* center;
  const float* sum;
  float alpha, ranks;

  template <class D>
  HWY_INLINE hn::Vec<D> compute(D d, std::size_t i) const {
    const auto old = hn::LoadU(d, center + i);
    const auto apart = hn::Sub(hn::LoadU(d, sum + i), hn::Mul(hn::Set(d, ranks), old));
    return hn::Add(old, hn::Mul(hn::Set(d, alpha), apart));
  }
  template <class D>
  HWY_INLINE void write(D d, std::size_t i, hn::Vec<D> value) const {
    hn::StoreU(value, d, center + i);
  }
};

void average(float* center, const float* sum, float alpha, float ranks, std::size_t count) {
  AverageStep step;
  step.center = center;
  step.sum = sum;
  step.alpha = alpha;
  step.ranks = ranks;
  traverse<Floats>(step, count);
}

template <bool kGradient, class D>
HWY_INLINE void exchangeVector(D d, const ExchangeJob& job, std::size_t i) {
  const auto alpha = hn::Set(d, job.alpha);
  const auto center = hn::LoadU(d, job.center + i);
  auto sum = hn::Zero(d);
  for (std::size_t r = 0; r < job.ranks; ++r) {
    float* const at = job.weights[r] + i;
    const auto weights = hn::LoadU(d, at);
    const auto difference = hn::Mul(alpha, hn::Sub(weights, center));
    auto moved = hn::Sub(weights, difference);
    if constexpr (kGradient) moved = hn::Sub(moved, hn::Mul(hn::Set(d, job.rate), hn::LoadU(d, job.gradients[r] + i)));
    hn::StoreU(moved, d, at);
    sum = r == 0 ? difference : hn::Add(sum, difference);  // not 0 + difference, which loses the sign of a zero
  }
  hn::StoreU(hn::Add(center, sum), d, job.center + i);
}

/// Elements that do not fill a vector one by one: vectors that overlap would move what has moved.
template <bool kGradient>
void runExchange(const ExchangeJob& job) {
  const Floats d;
  const hn::CappedTag<float, 1> single;
  const std::size_t lanes = hn::MaxLanes(d), end = job.first + job.count;
  std::size_t i = job.first;
  for (; i + lanes <= end; i += lanes) exchangeVector<kGradient>(d, job, i);
  for (; i < end; ++i) exchangeVector<kGradient>(single, job, i);
}

void exchange(const ExchangeJob& job) { job.gradients == nullptr ? runExchange<false>(job) : runExchange<true>(job); }

/// x - x is 0 for finite numbers and NaN for others; NaN stays in sums.
bool areFinite(const float* values, std::size_t count) {
  const Floats d;
  const std::size_t lanes = hn::MaxLanes(d);
  auto sum = hn::Zero(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(d, values + i);
    sum = hn::Add(sum, hn::Sub(value, value));
  }
  float rest = 0;
  for (; i < count; ++i) rest += values[i] - values[i];
  return rest == 0 && hn::AllTrue(d, hn::Eq(sum, hn::Zero(d)));
}

UpdateKernels makeTable() { return {"", update, differ, average, exchange, areFinite}; }

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "compute/simd/dispatch.hpp"

namespace tacc {

TACC_EXPORT(makeTable);

UpdateKernels makeUpdateKernels(const Isa& isa) {
  UpdateKernels table = TACC_DISPATCH(makeTable, isa.target)();
  table.isa = isa.name;
  return table;
}

const UpdateKernels& updateKernels() {
  static const UpdateKernels table = makeUpdateKernels(chooseIsa());
  return table;
}

}  // namespace tacc
#endif

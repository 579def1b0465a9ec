#include "easgd/elastic_kernels.hpp"

#include "compute/simd/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "easgd/elastic_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's rule: the per-target headers come after foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Of the lanes of one vector. A product that is stored is not fused with the addition.
template <class D>
HWY_INLINE void moveVector(D d, float* center, const float* weights, hn::Vec<D> alpha, float* difference) {
  const auto old = hn::LoadU(d, center);
  const auto by = hn::Mul(alpha, hn::Sub(hn::LoadU(d, weights), old));
  hn::StoreU(by, d, difference);
  hn::StoreU(hn::Add(old, by), d, center);
}

HWY_INLINE void moveAll(float* center, const float* weights, float alpha, float* difference, std::size_t count) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> single;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; count - i >= 2 * lanes; i += 2 * lanes) {
    moveVector(d, center + i, weights + i, hn::Set(d, alpha), difference + i);
    moveVector(d, center + i + lanes, weights + i + lanes, hn::Set(d, alpha), difference + i + lanes);
  }
  for (; i < count; ++i) moveVector(single, center + i, weights + i, hn::Set(single, alpha), difference + i);
}

void move(float* center, const float* weights, float alpha, float* difference, std::size_t count) {
  moveAll(center, weights, alpha, difference, count);
}

__attribute__((no_sanitize("thread"))) void moveUnlocked(float* center, const float* weights, float alpha,
                                                         float* difference, std::size_t count) {
  moveAll(center, weights, alpha, difference, count);
}

/// Not memcpy, which ThreadSanitizer sees.
__attribute__((no_sanitize("thread"))) void copyUnlocked(float* to, const float* from, std::size_t count) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> single;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; count - i >= lanes; i += lanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  for (; i < count; ++i) hn::StoreU(hn::LoadU(single, from + i), single, to + i);
}

void subtract(float* from, const float* difference, std::size_t count) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> single;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; count - i >= lanes; i += lanes)
    hn::StoreU(hn::Sub(hn::LoadU(d, from + i), hn::LoadU(d, difference + i)), d, from + i);
  for (; i < count; ++i)
    hn::StoreU(hn::Sub(hn::LoadU(single, from + i), hn::LoadU(single, difference + i)), single, from + i);
}

void fillElastic(ElasticKernels& kernels) {
  kernels.move = move;
  kernels.moveUnlocked = moveUnlocked;
  kernels.copyUnlocked = copyUnlocked;
  kernels.subtract = subtract;
}

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "compute/simd/dispatch.hpp"

namespace tacc {

TACC_EXPORT(fillElastic);

ElasticKernels elasticKernelsFor(const Isa& isa) {
  ElasticKernels kernels{};
  kernels.isa = isa.name;
  TACC_DISPATCH(fillElastic, isa.target)(kernels);
  return kernels;
}

const ElasticKernels& elasticKernels() {
  static const ElasticKernels kernels = elasticKernelsFor(chooseIsa());
  return kernels;
}

}  // namespace tacc
#endif

// Kernels with one source and one destination: multiplication by a factor, and the conversions of 16-bit types.
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compute/reduce/operations-inl.hpp"
#include "compute/reduce/traverse-inl.hpp"
#include "compute/simd/lanes-inl.hpp"

#if defined(TACC_COMPUTE_ELEMENTWISE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TACC_COMPUTE_ELEMENTWISE_INL
#undef TACC_COMPUTE_ELEMENTWISE_INL
#else
#define TACC_COMPUTE_ELEMENTWISE_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// What the steps below have in common; `Self` has compute and write.
template <class Self, class Tag>
struct ElementwiseStep {
  HWY_INLINE void run(std::size_t begin, std::size_t end) const {
    const Tag d;
    const Self& self = static_cast<const Self&>(*this);
#pragma GCC unroll 4
    for (std::size_t i = begin; i < end; i += hn::MaxLanes(Tag())) self.write(d, i, self.compute(d, i));
  }
  HWY_INLINE std::size_t headLength(std::size_t) const { return 0; }
};

template <class Lanes>
struct MultiplyStep : ElementwiseStep<MultiplyStep<Lanes>, typename Lanes::Tag> {
  using Memory = typename Lanes::Memory;
  Memory* destination;
  const Memory* source;
  Memory factor;

  template <class D>
  HWY_INLINE hn::Vec<D> compute(D d, std::size_t i) const {
    const auto value = Lanes::widen(d, hn::LoadU(d, source + i));
    return Lanes::narrow(d, Lanes::template combine<Product>(d, value, Lanes::widen(d, hn::Set(d, factor))));
  }
  template <class D>
  HWY_INLINE void write(D d, std::size_t i, hn::Vec<D> value) const {
    hn::StoreU(value, d, destination + i);
  }
};

template <class Lanes>
void multiply(void* destination, const void* source, const void* factor, std::size_t count) {
  using Memory = typename Lanes::Memory;
  MultiplyStep<Lanes> step;
  step.destination = static_cast<Memory*>(destination);
  step.source = static_cast<const Memory*>(source);
  std::memcpy(&step.factor, factor, sizeof(Memory));
  traverse<typename Lanes::Tag>(step, count);
}

/// Lanes of the conversions: as many elements as a vector holds float32.
using ConvertTag = hn::Rebind<std::uint16_t, hn::ScalableTag<float>>;

template <class Codec>
struct WidenStep : ElementwiseStep<WidenStep<Codec>, ConvertTag> {
  float* destination;
  const std::uint16_t* source;

  template <class D>
  HWY_INLINE FloatVec<D> compute(D d, std::size_t i) const {
    return Codec::toFloat(d, hn::LoadU(d, source + i));
  }
  template <class D>
  HWY_INLINE void write(D, std::size_t i, FloatVec<D> value) const {
    hn::StoreU(value, hn::Rebind<float, D>(), destination + i);
  }
};

template <class Codec>
void widenAll(float* destination, const void* source, std::size_t count) {
  WidenStep<Codec> step;
  step.destination = destination;
  step.source = static_cast<const std::uint16_t*>(source);
  traverse<ConvertTag>(step, count);
}

template <class Codec>
struct NarrowStep : ElementwiseStep<NarrowStep<Codec>, ConvertTag> {
  std::uint16_t* destination;
  const float* source;

  template <class D>
  HWY_INLINE hn::Vec<D> compute(D d, std::size_t i) const {
    return Codec::fromFloat(d, hn::LoadU(hn::Rebind<float, D>(), source + i));
  }
  template <class D>
  HWY_INLINE void write(D d, std::size_t i, hn::Vec<D> value) const {
    hn::StoreU(value, d, destination + i);
  }
};

template <class Codec>
void narrowAll(void* destination, const float* source, std::size_t count) {
  NarrowStep<Codec> step;
  step.destination = static_cast<std::uint16_t*>(destination);
  step.source = source;
  traverse<ConvertTag>(step, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#endif

// The inner loop of every reduction: several sources are combined, in their order, over a range of elements in one
// pass. Four vectors are in flight, so that loads overlap, and accumulators stay in registers.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "compute/simd/lanes-inl.hpp"

#if defined(TACC_COMPUTE_SWEEP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TACC_COMPUTE_SWEEP_INL
#undef TACC_COMPUTE_SWEEP_INL
#else
#define TACC_COMPUTE_SWEEP_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// kCount pointers of a job, copied so that they live in registers.
template <class T, int kCount>
struct FixedPointers {
  T* pointers[kCount];

  template <class Void>
  explicit HWY_INLINE FixedPointers(Void* const* from) {
    for (int k = 0; k < kCount; ++k) pointers[k] = static_cast<T*>(from[k]);
  }
  static constexpr int count() { return kCount; }
  HWY_INLINE T* operator[](int k) const { return pointers[k]; }
};

/// Any number of pointers, read from the job each time. `Void` is void or const void.
template <class T, class Void>
struct ManyPointers {
  Void* const* pointers;
  int number;

  HWY_INLINE int count() const { return number; }
  HWY_INLINE T* operator[](int k) const { return static_cast<T*>(pointers[k]); }
};

/// Where accumulators come from: the first source.
template <class Lanes>
struct FromSource {
  const typename Lanes::Memory* source;

  template <class D>
  HWY_INLINE typename Lanes::template Accumulator<D> load(D d, std::size_t i) const {
    return Lanes::widen(d, hn::LoadU(d, source + i));
  }
};

/// Accumulators that wait between two sweeps for the elements from `begin` on.
template <class Lanes>
struct Tile {
  typename Lanes::Wide* values;
  std::size_t begin;

  template <class D>
  HWY_INLINE typename Lanes::template Accumulator<D> load(D d, std::size_t i) const {
    return Lanes::loadWide(d, values + (i - begin));
  }
  template <class D, class A>
  HWY_INLINE void store4(D d, std::size_t i, const A& a0, const A& a1, const A& a2, const A& a3) const {
    constexpr std::size_t lanes = hn::MaxLanes(D());
    store(d, i, a0);
    store(d, i + lanes, a1);
    store(d, i + 2 * lanes, a2);
    store(d, i + 3 * lanes, a3);
  }
  template <class D, class A>
  HWY_INLINE void store(D d, std::size_t i, const A& a) const {
    Lanes::storeWide(d, a, values + (i - begin));
  }
};

/// Where finished accumulators go: divided and narrowed, to every destination.
template <class Lanes, class Destinations>
struct ToDestinations {
  using Memory = typename Lanes::Memory;
  Destinations destinations;
  int divisor;
  bool streaming;

  template <class D, class A>
  HWY_INLINE hn::Vec<D> finish(D d, const A& a) const {
    return Lanes::narrow(d, divisor > 1 ? Lanes::divide(d, a, divisor) : a);
  }

  template <class D, class A>
  HWY_INLINE void store4(D d, std::size_t i, const A& a0, const A& a1, const A& a2, const A& a3) const {
    constexpr std::size_t lanes = hn::MaxLanes(D());
    const auto v0 = finish(d, a0), v1 = finish(d, a1), v2 = finish(d, a2), v3 = finish(d, a3);
    for (int k = 0; k < destinations.count(); ++k) {
      Memory* to = destinations[k] + i;
      if (streaming && canStream(d, to)) {
        hn::Stream(v0, d, to);
        hn::Stream(v1, d, to + lanes);
        hn::Stream(v2, d, to + 2 * lanes);
        hn::Stream(v3, d, to + 3 * lanes);
      } else {
        hn::StoreU(v0, d, to);
        hn::StoreU(v1, d, to + lanes);
        hn::StoreU(v2, d, to + 2 * lanes);
        hn::StoreU(v3, d, to + 3 * lanes);
      }
    }
  }
  template <class D, class A>
  HWY_INLINE void store(D d, std::size_t i, const A& a) const {
    const auto v = finish(d, a);
    for (int k = 0; k < destinations.count(); ++k) {
      Memory* to = destinations[k] + i;
      if (streaming && canStream(d, to)) {
        hn::Stream(v, d, to);
      } else {
        hn::StoreU(v, d, to);
      }
    }
  }

  /// Highway streams at least HWY_STREAM_MULTIPLE bytes, also of a shorter vector.
  template <class D>
  static HWY_INLINE bool canStream(D, const Memory* to) {
    constexpr std::size_t bytes = hn::MaxLanes(D()) * sizeof(Memory);
    return bytes % HWY_STREAM_MULTIPLE == 0 && reinterpret_cast<std::uintptr_t>(to) % bytes == 0;
  }
};

/// Combines what `first` gives with all of `others` for the elements [begin, end), a multiple of the lanes, and gives
/// the result to `sink`.
template <class Lanes, class Op, class First, class Others, class Sink>
HWY_INLINE void sweep(const First& first, const Others& others, const Sink& sink, std::size_t begin, std::size_t end) {
  using Memory = typename Lanes::Memory;
  const typename Lanes::Tag d;
  constexpr std::size_t lanes = hn::MaxLanes(typename Lanes::Tag());
  std::size_t i = begin;
  for (; end - i >= 4 * lanes; i += 4 * lanes) {
    auto a0 = first.load(d, i);
    auto a1 = first.load(d, i + lanes);
    auto a2 = first.load(d, i + 2 * lanes);
    auto a3 = first.load(d, i + 3 * lanes);
    for (int k = 0; k < others.count(); ++k) {
      const Memory* from = others[k] + i;
      a0 = Lanes::template combine<Op>(d, a0, Lanes::widen(d, hn::LoadU(d, from)));
      a1 = Lanes::template combine<Op>(d, a1, Lanes::widen(d, hn::LoadU(d, from + lanes)));
      a2 = Lanes::template combine<Op>(d, a2, Lanes::widen(d, hn::LoadU(d, from + 2 * lanes)));
      a3 = Lanes::template combine<Op>(d, a3, Lanes::widen(d, hn::LoadU(d, from + 3 * lanes)));
    }
    sink.store4(d, i, a0, a1, a2, a3);
  }
  for (; i < end; i += lanes) {
    auto a = first.load(d, i);
    for (int k = 0; k < others.count(); ++k) {
      a = Lanes::template combine<Op>(d, a, Lanes::widen(d, hn::LoadU(d, others[k] + i)));
    }
    sink.store(d, i, a);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#endif

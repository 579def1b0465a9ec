// How the elements of a type lie in registers while they are reduced. Each ...Lanes has
//   Memory            the element as it is stored
//   Tag               Highway's tag for a full vector of Memory
//   Wide              the element as accumulators are kept in memory between two sweeps
//   Accumulator<D>    accumulators for the lanes of D, a tag of Memory
//   widen, narrow     a vector of Memory to accumulators and back; narrow rounds once
//   loadWide, storeWide   accumulators in memory, in an order of their own
//   combine<Op>, divide
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "compute/reduce/half-inl.hpp"

#if defined(TACC_COMPUTE_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TACC_COMPUTE_LANES_INL
#undef TACC_COMPUTE_LANES_INL
#else
#define TACC_COMPUTE_LANES_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Types that are reduced as they are stored. Signed integers come here as unsigned ones where that gives the same
/// bits, so that they wrap.
template <class T>
struct PlainLanes {
  using Memory = T;
  using Wide = T;
  using Tag = hn::ScalableTag<T>;
  template <class D>
  using Accumulator = hn::Vec<D>;

  template <class D>
  static HWY_INLINE Accumulator<D> widen(D, hn::Vec<D> value) {
    return value;
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> narrow(D, Accumulator<D> value) {
    return value;
  }
  template <class D>
  static HWY_INLINE Accumulator<D> loadWide(D d, const Wide* from) {
    return hn::LoadU(d, from);
  }
  template <class D>
  static HWY_INLINE void storeWide(D d, Accumulator<D> value, Wide* to) {
    hn::StoreU(value, d, to);
  }
  template <class Op, class D>
  static HWY_INLINE Accumulator<D> combine(D d, Accumulator<D> a, Accumulator<D> b) {
    return Op::apply(d, a, b);
  }
  template <class D>
  static HWY_INLINE Accumulator<D> divide(D d, Accumulator<D> value, int divisor) {
    if constexpr (hwy::IsFloat<T>()) {
      return hn::Div(value, hn::Set(d, static_cast<T>(divisor)));
    } else {
      (void)d, (void)divisor;  // integers are divided after the reduction, see divide.hpp
      return value;
    }
  }
};

/// float16: each half vector of elements widens to a full vector of float32, which the conversion instructions do best.
struct Float16Lanes {
  using Memory = std::uint16_t;
  using Wide = float;
  using Tag = hn::Rebind<std::uint16_t, hn::ScalableTag<float>>;
  template <class D>
  using Accumulator = FloatVec<D>;

  template <class D>
  static HWY_INLINE Accumulator<D> widen(D d, hn::Vec<D> value) {
    return Float16Codec::toFloat(d, value);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> narrow(D d, Accumulator<D> value) {
    return Float16Codec::fromFloat(d, value);
  }
  template <class D>
  static HWY_INLINE Accumulator<D> loadWide(D, const Wide* from) {
    return hn::LoadU(hn::Rebind<float, D>(), from);
  }
  template <class D>
  static HWY_INLINE void storeWide(D, Accumulator<D> value, Wide* to) {
    hn::StoreU(value, hn::Rebind<float, D>(), to);
  }
  template <class Op, class D>
  static HWY_INLINE Accumulator<D> combine(D, Accumulator<D> a, Accumulator<D> b) {
    return Op::apply(hn::Rebind<float, D>(), a, b);
  }
  template <class D>
  static HWY_INLINE Accumulator<D> divide(D, Accumulator<D> value, int divisor) {
    return hn::Div(value, hn::Set(hn::Rebind<float, D>(), static_cast<float>(divisor)));
  }
};

/// bfloat16: the even and the odd elements of a full vector in a vector of float32 each, so that shifts and masks are
/// all that the conversion needs and nothing crosses lanes.
struct Bfloat16Lanes {
  using Memory = std::uint16_t;
  using Wide = float;
  using Tag = hn::ScalableTag<std::uint16_t>;
  template <class D>
  using Bits = hn::Repartition<std::uint32_t, D>;
  template <class D>
  using Floats = hn::Repartition<float, D>;
  template <class D>
  struct Accumulator {
    hn::Vec<Floats<D>> even, odd;
  };
  /// One lane has no pairs; then `even` holds it and `odd` idles.
  template <class D>
  static constexpr bool isSingle = hn::MaxLanes(D()) == 1;

  template <class D>
  static HWY_INLINE Accumulator<D> widen(D d, hn::Vec<D> value) {
    if constexpr (isSingle<D>) {
      const auto single = Bfloat16Codec::toFloat(d, value);
      return {single, single};
    } else {
      const auto pairs = hn::BitCast(Bits<D>(), value);
      const auto odd = hn::And(pairs, hn::Set(Bits<D>(), 0xffff0000u));
      return {hn::BitCast(Floats<D>(), hn::ShiftLeft<16>(pairs)), hn::BitCast(Floats<D>(), odd)};
    }
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> narrow(D d, Accumulator<D> value) {
    if constexpr (isSingle<D>) {
      return Bfloat16Codec::fromFloat(d, value.even);
    } else {
      const auto even = hn::ShiftRight<16>(Bfloat16Codec::round(Floats<D>(), value.even));
      const auto odd = hn::And(Bfloat16Codec::round(Floats<D>(), value.odd), hn::Set(Bits<D>(), 0xffff0000u));
      return hn::BitCast(d, hn::Or(even, odd));
    }
  }
  template <class D>
  static HWY_INLINE Accumulator<D> loadWide(D, const Wide* from) {
    const Floats<D> df;
    return {hn::LoadU(df, from), isSingle<D> ? hn::LoadU(df, from) : hn::LoadU(df, from + hn::MaxLanes(df))};
  }
  template <class D>
  static HWY_INLINE void storeWide(D, Accumulator<D> value, Wide* to) {
    const Floats<D> df;
    hn::StoreU(value.even, df, to);
    if constexpr (!isSingle<D>) hn::StoreU(value.odd, df, to + hn::MaxLanes(df));
  }
  template <class Op, class D>
  static HWY_INLINE Accumulator<D> combine(D, Accumulator<D> a, Accumulator<D> b) {
    return {Op::apply(Floats<D>(), a.even, b.even), Op::apply(Floats<D>(), a.odd, b.odd)};
  }
  template <class D>
  static HWY_INLINE Accumulator<D> divide(D, Accumulator<D> value, int divisor) {
    const auto by = hn::Set(Floats<D>(), static_cast<float>(divisor));
    return {hn::Div(value.even, by), hn::Div(value.odd, by)};
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#endif

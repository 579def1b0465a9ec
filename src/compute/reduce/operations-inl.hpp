// Sum, product, maximum and minimum of two vectors, lane by lane. `a` holds what came first.
#include <hwy/highway.h>

#include <cstdint>

#if defined(TACC_COMPUTE_OPERATIONS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TACC_COMPUTE_OPERATIONS_INL
#undef TACC_COMPUTE_OPERATIONS_INL
#else
#define TACC_COMPUTE_OPERATIONS_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Sum {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Add(a, b);
  }
};

struct Product {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (sizeof(hn::TFromD<D>) == 1) {
      return multiplyBytes(d, a, b);
    } else {
      return hn::Mul(a, b);
    }
  }

 private:
  /// There is no multiplication of bytes; each pair of them is multiplied as 16 bits, which wrap around as bytes
  /// should.
  template <class D>
  static HWY_INLINE hn::Vec<D> multiplyBytes(D d, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (hn::MaxLanes(D()) == 1) {
      const unsigned product = static_cast<unsigned>(hn::GetLane(a)) * hn::GetLane(b);
      return hn::Set(d, static_cast<std::uint8_t>(product));
    } else {
      const hn::Repartition<std::uint16_t, D> dw;
      const auto aw = hn::BitCast(dw, a), bw = hn::BitCast(dw, b);
      const auto low = hn::Set(dw, static_cast<std::uint16_t>(0x00ff));
      const auto even = hn::And(hn::Mul(aw, bw), low);
      const auto odd = hn::Mul(hn::ShiftRight<8>(aw), hn::AndNot(low, bw));
      return hn::BitCast(d, hn::Or(even, odd));
    }
  }
};

/// Highway's floating-point Max and Min differ among CPUs for NaN and for zeros of different sign; these comparisons do
/// not.
struct Maximum {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(b)), b, a);
    } else {
      return hn::Max(a, b);
    }
  }
};

struct Minimum {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
    } else {
      return hn::Min(a, b);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#endif

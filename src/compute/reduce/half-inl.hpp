// Conversion of float16 and bfloat16 vectors to and from float32, to nearest even. A NaN stays a NaN: it keeps its sign
// and the upper bits of its payload and becomes quiet, as the conversion instructions of x86 and ARM do it.
#include <hwy/highway.h>

#include <cstdint>

#if defined(TACC_COMPUTE_HALF_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TACC_COMPUTE_HALF_INL
#undef TACC_COMPUTE_HALF_INL
#else
#define TACC_COMPUTE_HALF_INL
#endif

// Highway's emulation of float16 truncates and has no infinities, so it serves only where there are instructions for
// it.
#undef TACC_FLOAT16_INSTRUCTIONS
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)
#define TACC_FLOAT16_INSTRUCTIONS 1
#else
#define TACC_FLOAT16_INSTRUCTIONS 0
#endif

HWY_BEFORE_NAMESPACE();
namespace tacc {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// `D` is a tag of uint16_t; both directions keep the number of lanes.
template <class D>
using FloatVec = hn::Vec<hn::Rebind<float, D>>;

struct Float16Codec {
  template <class D>
  static HWY_INLINE FloatVec<D> toFloat(D d, hn::Vec<D> half) {
    const hn::Rebind<float, D> df;
#if TACC_FLOAT16_INSTRUCTIONS
    const hn::Rebind<hwy::float16_t, D> dh;
    (void)d;
    return hn::PromoteTo(df, hn::BitCast(dh, half));
#else
    (void)d;
    const hn::Rebind<std::uint32_t, D> du;
    const hn::Rebind<std::int32_t, D> di;
    const auto bits = hn::PromoteTo(du, half);
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffu));
    // The exponents' biases differ by 112; infinity and NaN need twice that to reach float32's highest exponent.
    const auto rebias = hn::Set(du, 112u << 23);
    const auto normal = hn::Add(hn::ShiftLeft<13>(magnitude), rebias);
    const auto isSpecial = hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, 0x7bff));
    const auto isNan = hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, 0x7c00));
    const auto quiet = hn::IfThenElseZero(hn::RebindMask(du, isNan), hn::Set(du, 0x00400000u));
    const auto special = hn::Or(hn::Add(normal, rebias), quiet);
    // A subnormal counts steps of 2^-24.
    const auto steps = hn::ConvertTo(df, hn::BitCast(di, magnitude));
    const auto subnormal = hn::BitCast(du, hn::Mul(steps, hn::Set(df, 0x1p-24f)));
    const auto isSubnormal = hn::Lt(hn::BitCast(di, magnitude), hn::Set(di, 0x0400));
    const auto finite = hn::IfThenElse(hn::RebindMask(du, isSubnormal), subnormal, normal);
    return hn::BitCast(df, hn::Or(sign, hn::IfThenElse(hn::RebindMask(du, isSpecial), special, finite)));
#endif
  }

  template <class D>
  static HWY_INLINE hn::Vec<D> fromFloat(D d, FloatVec<D> value) {
#if TACC_FLOAT16_INSTRUCTIONS
    const hn::Rebind<hwy::float16_t, D> dh;
    return hn::BitCast(d, hn::DemoteTo(dh, value));
#else
    const hn::Rebind<float, D> df;
    const hn::Rebind<std::uint32_t, D> du;
    const hn::Rebind<std::int32_t, D> di;
    const auto bits = hn::BitCast(du, value);
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000u));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
    const auto magnitudeSigned = hn::BitCast(di, magnitude);
    // Normal: rebias, add just under half a step, and one more when the last kept bit is odd. From 2^16 on all is
    // infinity, and the values that round up to it reach its pattern by themselves.
    const auto capped = hn::BitCast(du, hn::Min(magnitudeSigned, hn::Set(di, 0x47800000)));
    const auto odd = hn::And(hn::ShiftRight<13>(capped), hn::Set(du, 1u));
    const auto rounded = hn::Add(hn::Add(capped, hn::Set(du, 0x0fffu - (112u << 23))), odd);
    const auto normal = hn::ShiftRight<13>(rounded);
    // Subnormal: the lowest bit of 0.5f is worth 2^-24, float16's smallest step, so that adding rounds to it.
    const auto half = hn::Set(df, 0.5f);
    const auto shifted = hn::Add(hn::BitCast(df, magnitude), half);
    const auto subnormal = hn::Sub(hn::BitCast(du, shifted), hn::BitCast(du, half));
    const auto isSubnormal = hn::Lt(magnitudeSigned, hn::Set(di, 0x38800000));
    const auto number = hn::IfThenElse(hn::RebindMask(du, isSubnormal), subnormal, normal);
    const auto payload = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 0x01ffu));
    const auto nan = hn::Or(payload, hn::Set(du, 0x7e00u));
    const auto isNan = hn::Gt(magnitudeSigned, hn::Set(di, 0x7f800000));
    const auto result = hn::Or(sign, hn::IfThenElse(hn::RebindMask(du, isNan), nan, number));
    return hn::DemoteTo(d, hn::BitCast(di, result));
#endif
  }
};

struct Bfloat16Codec {
  template <class D>
  static HWY_INLINE FloatVec<D> toFloat(D, hn::Vec<D> half) {
    const hn::Rebind<float, D> df;
    const hn::Rebind<std::uint32_t, D> du;
    return hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(du, half)));
  }

  template <class D>
  static HWY_INLINE hn::Vec<D> fromFloat(D d, FloatVec<D> value) {
    const hn::Rebind<float, D> df;
    const hn::Rebind<std::int32_t, D> di;
    return hn::DemoteTo(d, hn::BitCast(di, hn::ShiftRight<16>(round(df, value))));
  }

  /// The rounded value in the upper 16 bits of each lane; the lower 16 are without meaning. `df` is a tag of float.
  template <class DF>
  static HWY_INLINE hn::Vec<hn::Rebind<std::uint32_t, DF>> round(DF df, hn::Vec<DF> value) {
    const hn::Rebind<std::uint32_t, DF> du;
    const auto bits = hn::BitCast(du, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
    const auto number = hn::Add(hn::Add(bits, hn::Set(du, 0x7fffu)), odd);
    const auto nan = hn::Or(bits, hn::Set(du, 0x00400000u));
    (void)df;
    return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), nan, number);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace tacc
HWY_AFTER_NAMESPACE();

#endif

// bfloat16 to float32 and back, in loops that the compiler makes vectors of. Included by one file per instruction set,
// as table-inl.hpp.
#include "compute/layers/vector-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

[[gnu::always_inline]] inline void widen(const std::uint16_t* from, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = __builtin_bit_cast(float, std::uint32_t{from[i]} << 16);
}

/// To the nearest, of two as near to the even one. A NaN keeps its sign and becomes quiet.
template <class Bits>
[[gnu::always_inline]] inline Bits upperHalf(Bits bits) {
  const Bits rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const Bits quiet = bits >> 16 | 0x40;
  return (bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded;
}

[[gnu::always_inline]] inline void narrow(const float* from, std::uint16_t* to, std::size_t count) {
  std::size_t i = 0;
#if TACC_LANES == 16
  // Left to itself, the compiler takes vectors of half the length.
  using Words [[gnu::vector_size(64)]] = std::uint32_t;
  using Halves [[gnu::vector_size(32)]] = std::uint16_t;
  using UnalignedHalves [[gnu::vector_size(32), gnu::aligned(2), gnu::may_alias]] = std::uint16_t;
  for (; i + TACC_LANES <= count; i += TACC_LANES) {
    const auto bits = __builtin_bit_cast(Words, load(from + i));
    *reinterpret_cast<UnalignedHalves*>(to + i) = __builtin_convertvector(upperHalf(bits), Halves);
  }
#endif
  for (; i < count; ++i) to[i] = static_cast<std::uint16_t>(upperHalf(__builtin_bit_cast(std::uint32_t, from[i])));
}

/// A piece at a time in the L1 cache, and from there past all of them: where all is too large to stay.
template <class From, class To, class Convert>
[[gnu::always_inline]] inline void convertPastCaches(const From* from, To* to, std::size_t count,
                                                     const Convert& convert) {
  constexpr std::size_t kPiece = 128, kPiecesAhead = 32;
  alignas(64) To piece[kPiece];
  std::size_t done = 0;
  for (; done + kPiece <= count; done += kPiece) {
    // Pages end where hardware stops looking ahead.
    for (std::size_t i = 0; i < kPiece; i += 64 / sizeof(From))
      __builtin_prefetch(from + done + kPiecesAhead * kPiece + i);
    convert(from + done, piece, kPiece);
    for (std::size_t i = 0; i < kPiece * sizeof(To) / sizeof(float); i += TACC_LANES) {
      stream(reinterpret_cast<float*>(to + done) + i, load(reinterpret_cast<const float*>(piece) + i));
    }
  }
  endNonTemporal();
  convert(from + done, to + done, count - done);
}

inline void fromBfloat16(const std::uint16_t* from, float* to, std::size_t count, bool isNonTemporal) {
  const auto convert = [](const std::uint16_t* a, float* b, std::size_t n) { widen(a, b, n); };
  if (isNonTemporal && isAligned(to)) return convertPastCaches(from, to, count, convert);
  convert(from, to, count);
}

inline void toBfloat16(const float* from, std::uint16_t* to, std::size_t count, bool isNonTemporal) {
  const auto convert = [](const float* a, std::uint16_t* b, std::size_t n) { narrow(a, b, n); };
  if (isNonTemporal && isAligned(reinterpret_cast<const float*>(to)))
    return convertPastCaches(from, to, count, convert);
  convert(from, to, count);
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers

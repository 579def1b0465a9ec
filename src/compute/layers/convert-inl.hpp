// bfloat16 to float32 and back, in loops that the compiler makes vectors of. Included by one file per instruction set,
// as table-inl.hpp.
#include "compute/layers/vector-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

inline void fromBfloat16(const std::uint16_t* from, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = __builtin_bit_cast(float, std::uint32_t{from[i]} << 16);
}

/// To the nearest, of two as near to the even one. A NaN keeps its sign and becomes quiet.
inline void toBfloat16(const float* from, std::uint16_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = __builtin_bit_cast(std::uint32_t, from[i]);
    const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const std::uint32_t quiet = bits >> 16 | 0x40;
    to[i] = static_cast<std::uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers

// Dropout with the counter-based generator Philox4x32-7 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC'11): the number of an element follows from its place alone, so neither threads nor vectors change it. Included by
// one file per instruction set, as table-inl.hpp.
#include "compute/layers/vector-inl.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace tacc::layers {
namespace TACC_CONV_ISA {

constexpr int counters = 16;                      // of a group
constexpr int numbersOfGroup = 4 * 2 * counters;  // two of 16 bits from each of four words
constexpr std::ptrdiff_t floatsAhead = 1024;      // of input from memory: the hardware stops at the end of every page

using Words [[gnu::vector_size(TACC_LANES * sizeof(std::uint32_t))]] = std::uint32_t;
/// A word of the generator in the lower half of every number; in the upper half is whatever was left there.
using Wide [[gnu::vector_size(TACC_LANES * sizeof(std::uint32_t))]] = std::uint64_t;

/// The 64 bits of the products of the lower halves.
[[gnu::always_inline]] inline Wide multiplyLow(Wide a, std::uint32_t factor) {
#if defined(__x86_64__) && TACC_LANES == 16  // maskz: GCC 12 warns of what the plain one leaves undefined
  return reinterpret_cast<Wide>(
      _mm512_maskz_mul_epu32(0xFF, reinterpret_cast<__m512i>(a), _mm512_set1_epi32(static_cast<int>(factor))));
#elif defined(__x86_64__) && TACC_LANES == 8
  return reinterpret_cast<Wide>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), _mm256_set1_epi32(static_cast<int>(factor))));
#elif defined(__x86_64__)
  return reinterpret_cast<Wide>(_mm_mul_epu32(reinterpret_cast<__m128i>(a), _mm_set1_epi32(static_cast<int>(factor))));
#elif defined(__aarch64__)
  return reinterpret_cast<Wide>(vmull_n_u32(vmovn_u64(reinterpret_cast<uint64x2_t>(a)), factor));
#else
  return (a & 0xFFFFFFFF) * std::uint64_t{factor};
#endif
}

[[gnu::always_inline]] inline Wide exclusiveOr(Wide a, Wide b, Wide c) {
#if defined(__x86_64__) && TACC_LANES == 16
  return reinterpret_cast<Wide>(_mm512_ternarylogic_epi64(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b),
                                                          reinterpret_cast<__m512i>(c), 0x96));
#else
  return a ^ b ^ c;
#endif
}

constexpr int rounds = 7;  // the fewest that pass all tests of BigCrush (Salmon et al.)

/// The keys of all rounds, which are the same for all numbers.
struct Keys {
  explicit Keys(std::uint64_t seed) {
    auto key0 = static_cast<std::uint32_t>(seed);
    auto key1 = static_cast<std::uint32_t>(seed >> 32);
    for (int i = 0; i < rounds; ++i, key0 += 0x9E3779B9, key1 += 0xBB67AE85) {
      first[i] = Wide{} + std::uint64_t{key0};
      second[i] = Wide{} + std::uint64_t{key1};
    }
  }
  Wide first[rounds], second[rounds];
};

/// One round for every number, and the words in which it ends: a and c the upper halves of the products, b and d the
/// lower ones.
struct Generator {
  Wide a, b, c, d;
  [[gnu::always_inline]] void round(Wide key0, Wide key1) {
    const Wide product0 = multiplyLow(a, 0xD2511F53);
    const Wide product1 = multiplyLow(c, 0xCD9E8D57);
    a = exclusiveOr(product1 >> 32, b, key0);
    c = exclusiveOr(product0 >> 32, d, key1);
    b = product1;
    d = product0;
  }
};

/// Groups whose numbers are made together: a round waits for the one before it, other groups' fill the time. As many as
/// there are registers for.
constexpr int groupsAtOnce = TACC_LANES == blockLength ? 2 : 1;

/// Calls use(place, words) with the numbers of kGroups groups in the upper halves of `words`, whatever is in the lower
/// ones. Groups have numbersOfGroup places each: the lower half of word w of the counter {16 * group + l, step} is the
/// number of place 32 * w + l, and the upper half that of 16 places further on.
template <int kGroups, class Use>
[[gnu::always_inline]] inline void forEachNumber(std::uint64_t group, std::uint64_t step, const Keys& keys,
                                                 const Use& use) {
  for (int from = 0; from < counters; from += TACC_LANES) {
    const Wide zero{};
    Generator generators[2 * kGroups];
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      const std::uint64_t first = (group + static_cast<std::uint64_t>(g)) * counters;
      // Even and odd counters apart: products are twice as wide as words.
      Wide even{};
      for (int l = 0; l < TACC_LANES / 2; ++l) even[l] = first + static_cast<std::uint64_t>(from + 2 * l);
      // The lower 32 bits do not overflow within the group.
      generators[2 * g] = {even, zero + (first >> 32), zero + step, zero + (step >> 32)};
      generators[2 * g + 1] = {even + 1, zero + (first >> 32), zero + step, zero + (step >> 32)};
    }
#pragma GCC unroll 8
    for (int round = 0; round < rounds; ++round) {
#pragma GCC unroll 4
      for (Generator& generator : generators) generator.round(keys.first[round], keys.second[round]);
    }
    const auto both = [](Wide low, Wide high) __attribute__((always_inline)) {
      return reinterpret_cast<Words>((low & 0xFFFFFFFF) | (high << 32));
    };
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      const Generator& even = generators[2 * g];
      const Generator& odd = generators[2 * g + 1];
      const int place = g * numbersOfGroup + from;
      const Words words[4] = {both(even.a, odd.a), both(even.b, odd.b), both(even.c, odd.c), both(even.d, odd.d)};
#pragma GCC unroll 4
      for (int w = 0; w < 4; ++w) {
        use(place + 2 * w * counters, words[w] << 16);
        use(place + (2 * w + 1) * counters, words[w]);
      }
    }
  }
}

inline void dropout(const DropoutCall& call) {
  const bool isNonTemporal = call.isNonTemporal && isAligned(call.output);
  const Keys keys(call.seed);
  std::uint64_t group = call.firstGroup;
  std::size_t from = 0;
  const auto drop = [&](int place, Words words) __attribute__((always_inline)) {
    const auto isKept = words >= call.threshold;
    const std::size_t at = from + static_cast<std::size_t>(place);
    if (isNonTemporal && place % counters == 0) __builtin_prefetch(call.input + at + floatsAhead, 0, 2);
    const auto kept = reinterpret_cast<Words>(load(call.input + at) * call.factor);
    put(call.output + at, reinterpret_cast<Vector>(kept & reinterpret_cast<Words>(isKept)), isNonTemporal);
  };
  constexpr int numbersAtOnce = groupsAtOnce * numbersOfGroup;
  for (; call.count - from >= numbersAtOnce; from += numbersAtOnce, group += groupsAtOnce) {
    forEachNumber<groupsAtOnce>(group, call.step, keys, drop);
  }
  for (; call.count - from >= numbersOfGroup; from += numbersOfGroup, ++group) {
    forEachNumber<1>(group, call.step, keys, drop);
  }
  if (isNonTemporal) endNonTemporal();
  if (from == call.count) return;
  alignas(64) std::uint32_t last[numbersOfGroup];
  forEachNumber<1>(
      group, call.step, keys, [&](int place, Words words) __attribute__((always_inline)) {
        *reinterpret_cast<Words*>(last + place) = words;
      });
  for (std::size_t i = 0; from + i < call.count; ++i) {
    call.output[from + i] = last[i] >= call.threshold ? call.input[from + i] * call.factor : 0.0F;
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers

// Dropout with the counter-based generator Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC'11): the number of an element follows from its place alone, so neither threads nor vectors change it. Included by
// one file per instruction set, as table-inl.hpp.
#include "compute/layers/vector-inl.hpp"

namespace tacc::layers {
namespace TACC_CONV_ISA {

constexpr int counters = 16;  // worked on at once, by loops that the compiler makes vectors of
constexpr int wordsOfGroup = 4 * counters;

/// words[16 * w + l] becomes word w of the counter {16 * group + l, step} under the key `seed`.
[[gnu::always_inline]] inline void randomGroup(std::uint64_t group, std::uint64_t step, std::uint64_t seed,
                                               std::uint32_t (&words)[wordsOfGroup]) {
  constexpr std::uint64_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t bump0 = 0x9E3779B9, bump1 = 0xBB67AE85;
  const std::uint64_t first = group * counters;  // its lower 32 bits do not overflow within the group
  std::uint32_t* const a = words;
  std::uint32_t* const b = words + counters;
  std::uint32_t* const c = words + 2 * counters;
  std::uint32_t* const d = words + 3 * counters;
  auto key0 = static_cast<std::uint32_t>(seed);
  auto key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int l = 0; l < counters; ++l) {
    a[l] = static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(l);
    b[l] = static_cast<std::uint32_t>(first >> 32);
    c[l] = static_cast<std::uint32_t>(step);
    d[l] = static_cast<std::uint32_t>(step >> 32);
  }
  for (int round = 0; round < 10; ++round) {
    for (int l = 0; l < counters; ++l) {
      const std::uint64_t product0 = multiplier0 * a[l];
      const std::uint64_t product1 = multiplier1 * c[l];
      a[l] = static_cast<std::uint32_t>(product1 >> 32) ^ b[l] ^ key0;
      c[l] = static_cast<std::uint32_t>(product0 >> 32) ^ d[l] ^ key1;
      b[l] = static_cast<std::uint32_t>(product1);
      d[l] = static_cast<std::uint32_t>(product0);
    }
    key0 += bump0;
    key1 += bump1;
  }
}

inline void dropout(const DropoutCall& call) {
  using Words [[gnu::vector_size(TACC_LANES * sizeof(std::uint32_t))]] = std::uint32_t;
  alignas(64) std::uint32_t words[wordsOfGroup];
  std::uint64_t group = call.firstGroup;
  for (std::size_t from = 0; from < call.count; from += wordsOfGroup, ++group) {
    randomGroup(group, call.step, call.seed, words);
    const float* const input = call.input + from;
    float* const output = call.output + from;
    if (call.count - from >= wordsOfGroup) {
      for (int i = 0; i < wordsOfGroup; i += TACC_LANES) {
        const auto isKept = *reinterpret_cast<const Words*>(words + i) >= call.threshold;
        const auto kept = reinterpret_cast<Words>(load(input + i) * call.factor);
        store(output + i, reinterpret_cast<Vector>(kept & reinterpret_cast<Words>(isKept)));
      }
    } else {
      for (std::size_t i = 0; i < call.count - from; ++i) {
        output[i] = words[i] >= call.threshold ? input[i] * call.factor : 0.0F;
      }
    }
  }
}

}  // namespace TACC_CONV_ISA
}  // namespace tacc::layers

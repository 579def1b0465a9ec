#include "support/aligned_floats.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace tacc::tools {

void fillWithSmallIntegers(AlignedFloats& floats, std::uint32_t seed) {
  std::uint32_t state = seed;
  for (std::size_t i = 0; i < floats.size(); ++i) {
    state = state * 1664525U + 1013904223U;
    floats.data()[i] = static_cast<float>(static_cast<int>(state >> 24) % 5 - 2);
  }
}

AlignedFloats::AlignedFloats(std::size_t count) : count_(count) {
  constexpr std::size_t page = 4096;
  const std::size_t bytes = (std::max<std::size_t>(1, count) * sizeof(float) + page - 1) / page * page;
  floats_.reset(static_cast<float*>(std::aligned_alloc(page, bytes)));
  if (floats_ == nullptr) throw std::bad_alloc();
  std::fill_n(floats_.get(), bytes / sizeof(float), 0.0F);
}

void AlignedFloats::Free::operator()(float* floats) const { std::free(floats); }

}  // namespace tacc::tools

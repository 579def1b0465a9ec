// The sizes of the kernel's pages.
#pragma once

#include <cstddef>

namespace tacc {

inline constexpr std::size_t pageBytes = 4096;
inline constexpr std::size_t hugePageBytes = std::size_t{2} << 20;

}  // namespace tacc

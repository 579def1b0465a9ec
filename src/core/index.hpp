// Ranks as indices.
#pragma once

#include <cstddef>

namespace tacc {

/// A rank, a place, a block or a port, which are ints, as an index.
constexpr std::size_t at(int index) noexcept { return static_cast<std::size_t>(index); }

}  // namespace tacc

// Integer division for averages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacc {

/// values[i] /= divisor, truncating towards zero; divisor >= 1. About 2 ns an element: integer division has no vector
/// form.
void divideInPlace(std::int8_t* values, std::size_t count, int divisor);
void divideInPlace(std::uint8_t* values, std::size_t count, int divisor);
void divideInPlace(std::int16_t* values, std::size_t count, int divisor);
void divideInPlace(std::uint16_t* values, std::size_t count, int divisor);
void divideInPlace(std::int32_t* values, std::size_t count, int divisor);
void divideInPlace(std::uint32_t* values, std::size_t count, int divisor);
void divideInPlace(std::int64_t* values, std::size_t count, int divisor);
void divideInPlace(std::uint64_t* values, std::size_t count, int divisor);

}  // namespace tacc

#include "compute/reduce/divide.hpp"

namespace tacc {
namespace {

/// `Wide` holds all values of T and the divisor, which for 8 and 16 bits does not fit in T.
template <class Wide, class T>
void divideAll(T* values, std::size_t count, int divisor) {
  const Wide by = static_cast<Wide>(divisor);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(static_cast<Wide>(values[i]) / by);
}

}  // namespace

void divideInPlace(std::int8_t* values, std::size_t count, int divisor) {
  divideAll<std::int32_t>(values, count, divisor);
}
void divideInPlace(std::uint8_t* values, std::size_t count, int divisor) {
  divideAll<std::uint32_t>(values, count, divisor);
}
void divideInPlace(std::int16_t* values, std::size_t count, int divisor) {
  divideAll<std::int32_t>(values, count, divisor);
}
void divideInPlace(std::uint16_t* values, std::size_t count, int divisor) {
  divideAll<std::uint32_t>(values, count, divisor);
}
void divideInPlace(std::int32_t* values, std::size_t count, int divisor) {
  divideAll<std::int32_t>(values, count, divisor);
}
void divideInPlace(std::uint32_t* values, std::size_t count, int divisor) {
  divideAll<std::uint32_t>(values, count, divisor);
}
void divideInPlace(std::int64_t* values, std::size_t count, int divisor) {
  divideAll<std::int64_t>(values, count, divisor);
}
void divideInPlace(std::uint64_t* values, std::size_t count, int divisor) {
  divideAll<std::uint64_t>(values, count, divisor);
}

}  // namespace tacc

// Elements of any type as doubles, for references in tests: small integers, so every sum is exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "compute/reduce/reduce.hpp"
#include "core/types.hpp"
#include "tacc/tacc.h"

namespace tacc::test {

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}
template <class T>
double load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

/// Integers keep the low bits of `value`; 16-bit floats round once from float32.
inline void encode(taccDataType_t type, std::byte* to, double value) {
  const auto whole = static_cast<std::int64_t>(value);
  switch (type) {
    case taccInt8:
    case taccUint8:
      return store(to, static_cast<std::uint8_t>(whole));
    case taccInt32:
    case taccUint32:
      return store(to, static_cast<std::uint32_t>(whole));
    case taccInt64:
    case taccUint64:
      return store(to, static_cast<std::uint64_t>(whole));
    case taccFloat32:
      return store(to, static_cast<float>(value));
    case taccFloat64:
      return store(to, value);
    default: {
      const auto single = static_cast<float>(value);
      narrowFromFloat(type, to, &single, 1);
    }
  }
}

inline std::vector<std::byte> encodeAll(taccDataType_t type, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * sizeOf(type));
  for (std::size_t i = 0; i < values.size(); ++i) encode(type, bytes.data() + i * sizeOf(type), values[i]);
  return bytes;
}

}  // namespace tacc::test

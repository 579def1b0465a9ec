// Values of enumerations as only a C program can pass them.
#pragma once

#include <cstring>

namespace tacc::test {

/// A value that the enumeration does not have.
template <class Enumeration>
Enumeration fromC(int value) {
  static_assert(sizeof(Enumeration) == sizeof(value));
  Enumeration result;
  std::memcpy(&result, &value, sizeof(value));
  return result;
}

}  // namespace tacc::test

// What a person sets in the environment for a longer or a shorter test.
#pragma once

#include <cstdlib>

namespace tacc::test {

/// With TACC_TEST_QUICK, as sanitizers have it, property tests take samples.
inline bool isQuick() { return std::getenv("TACC_TEST_QUICK") != nullptr; }

/// As in TACC_TEST_NETWORKS=600.
template <class Number>
Number numberFrom(const char* variable, Number otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<Number>(std::strtoull(text, nullptr, 10));
}

}  // namespace tacc::test

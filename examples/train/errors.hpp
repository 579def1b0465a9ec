// Errors of this program: exceptions with a sentence.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "tacc/tacc.h"

namespace tacc::train {

/// Throws std::runtime_error; the message is formatted as fmt does.
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw std::runtime_error(fmt::format(format, std::forward<Args>(args)...));
}

/// Throws the library's own sentence where a call on it failed.
inline void check(taccResult_t result) {
  if (result != taccSuccess) throw std::runtime_error(taccGetLastError(nullptr));
}

}  // namespace tacc::train

// The one exception type inside tacc. It carries the result that the C boundary returns and a sentence for people: what
// was wrong, where, on which rank, and what would be right. The function that first knows that something is an error
// throws it.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "tacc/tacc.h"

namespace tacc {

class Error : public std::runtime_error {
 public:
  Error(taccResult_t result, const std::string& message) : std::runtime_error(message), result_(result) {}
  taccResult_t result() const noexcept { return result_; }

 private:
  taccResult_t result_;
};

/// Throws an Error; the message is formatted as fmt does.
template <class... Args>
[[noreturn]] void fail(taccResult_t result, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(result, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws taccSystemError with errno's text after the given sentence. Reads errno first, so call it right after the
/// failure.
template <class... Args>
[[noreturn]] void failErrno(fmt::format_string<Args...> format, Args&&... args) {
  const int code = errno;
  throw Error(taccSystemError, fmt::format("{}: {} (errno {})", fmt::format(format, std::forward<Args>(args)...),
                                           std::strerror(code), code));
}

}  // namespace tacc

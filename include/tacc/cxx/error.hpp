/* Results of the C interface as exceptions. Part of tacc/tacc.hpp. */
#ifndef TACC_CXX_ERROR_HPP
#define TACC_CXX_ERROR_HPP

#include <stdexcept>
#include <string>

#include "tacc/tacc.h"

namespace taccxx {

/// What a call returned that was not taccSuccess, with the sentence of taccGetLastError.
class Error : public std::runtime_error {
 public:
  /// With the sentence as what().
  Error(taccResult_t result, const std::string& message) : std::runtime_error(message), result_(result) {}
  /// The result of the C interface.
  taccResult_t result() const noexcept { return result_; }

 private:
  taccResult_t result_;
};

/// Throws Error unless `result`, of a call that this thread has just made, is taccSuccess.
inline void check(taccResult_t result) {
  if (result == taccSuccess) [[likely]]
    return;
  const std::string message = taccGetLastError(nullptr);
  throw Error(result, message.empty() ? taccGetErrorString(result) : message);
}

}  // namespace taccxx

#endif

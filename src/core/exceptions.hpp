// What ends a call, whatever it is, as an Error that others can be told.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "core/error.hpp"

namespace tacc {

/// What ended a call of `rank`: an Error as it is; std::bad_alloc and std::system_error as taccSystemError, anything
/// else as taccInternalError, with a sentence that names the rank, its process and what it was `doing`. Where there is
/// no memory for the sentence, it is a shorter one that was made before. Never throws.
Error errorOf(const std::exception_ptr& what, int rank, const std::function<std::string()>& doing) noexcept;

/// Does `work`, and throws whatever ends it as an Error.
template <class Work>
auto withErrors(int rank, const char* doing, const Work& work) {
  try {
    return work();
  } catch (...) {
    throw Error(errorOf(std::current_exception(), rank, [doing] { return std::string(doing); }));
  }
}

/// Whether it is this process's own trouble (no memory, no descriptors, a bug), and not what it was asked or told.
inline bool isOwnTrouble(const Error& error) noexcept {
  return error.result() == taccSystemError || error.result() == taccInternalError;
}

/// Whether it is an Error of tacc's: found by a check, or told by others. All else is this process's own trouble.
bool isError(const std::exception_ptr& what) noexcept;

}  // namespace tacc

// The edge between C++ and C: what happens inside is exceptions, what comes out is a result and the text of the last
// error.
#pragma once

#include <exception>
#include <string>

#include "core/error.hpp"
#include "core/uncancelled.hpp"
#include "tacc/tacc.h"

namespace tacc {

/// The error of an exception, with the function and the rank in front of its sentence. `comm` may be anything.
Error describe(const std::exception_ptr& exception, const char* function, taccComm_t comm);

/// describe(), with less of a sentence where there is no memory for it.
Error describeSafely(const std::exception_ptr& exception, const char* function, taccComm_t comm) noexcept;

/// Tells all ranks of `comm` that this one cannot go on. `comm` may be anything.
void failCommunicator(taccComm_t comm, const Error& error) noexcept;

/// Makes this the last error of the calling thread and, where there is one, of the communicator.
void setLastError(const Error& error, taccComm_t comm) noexcept;

/// describe() and setLastError() of the exception that is being handled. Does not fail.
[[gnu::cold]] taccResult_t recordException(const char* function, taccComm_t comm) noexcept;
/// The same for a call of all ranks: when it ended for a reason of this process, and not by a check of its arguments,
/// the communicator fails on all of them. An open group fails with it.
[[gnu::cold]] taccResult_t recordExceptionInGroup(const char* function, taccComm_t comm) noexcept;

/// The same for a call of all ranks that no group records.
[[gnu::cold]] taccResult_t recordExceptionOfAll(const char* function, taccComm_t comm) noexcept;

/// What taccGetLastError returns.
const char* lastErrorText(taccComm_t comm) noexcept;

/// Runs the body of a C function. The way through without an error takes no lock and allocates nothing.
template <class Body>
taccResult_t guard(const char* function, taccComm_t comm, Body&& body) noexcept {
  try {
    body();
    return taccSuccess;
  } catch (...) {
    return recordException(function, comm);
  }
}

/// guard() for what may wait, or reads and writes files.
template <class Body>
taccResult_t guardLong(const char* function, taccComm_t comm, Body&& body) noexcept {
  const Uncancelled whole;
  return guard(function, comm, body);
}

/// guard() for the calls that all ranks make and that no group records.
template <class Body>
taccResult_t guardOfAll(const char* function, taccComm_t comm, Body&& body) noexcept {
  const Uncancelled whole;
  try {
    body();
    return taccSuccess;
  } catch (...) {
    return recordExceptionOfAll(function, comm);
  }
}

/// guard() for the calls that all ranks make, which a group may record.
template <class Body>
taccResult_t guardCall(const char* function, taccComm_t comm, Body&& body) noexcept {
  const Uncancelled whole;
  try {
    body();
    return taccSuccess;
  } catch (...) {
    return recordExceptionInGroup(function, comm);
  }
}

}  // namespace tacc

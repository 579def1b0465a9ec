#include "api/boundary.hpp"

#include <mutex>
#include <new>

#include "api/group.hpp"
#include "api/handles.hpp"

namespace tacc {

namespace {

thread_local std::string threadErrorText;
thread_local std::string returnedText;  // a copy of a communicator's text, which its other users may change meanwhile

/// "taccReduce on rank 2 of 4 of \"gradients\""; without the name when the communicator has ended.
std::string describeCaller(const char* function, taccComm_t comm) {
  if (!isHandle(comm) || comm->life.load() == Life::destroyed) return function;
  std::string text = fmt::format("{} on rank {} of {}", function, comm->rank.load(), comm->ranks.load());
  if (const Life life = comm->life.load(); life == Life::aborted || life == Life::inherited) return text;
  try {
    const Observer observer(comm);
    const std::string& name = comm->communicator->config().name;
    if (!name.empty()) text += fmt::format(" of \"{}\"", name);
  } catch (const Error&) {
    // It has ended just now.
  }
  return text;
}

taccResult_t record(const char* function, taccComm_t comm, bool failGroup) noexcept {
  taccResult_t result = taccSystemError;
  try {
    const Error error = describe(std::current_exception(), function, comm);
    result = error.result();
    setLastError(error, comm);
    if (failGroup && groupIsOpen()) failGroupWith(error);
  } catch (...) {
    // No memory is left for the text; the result still says it.
  }
  return result;
}

}  // namespace

Error describe(const std::exception_ptr& exception, const char* function, taccComm_t comm) {
  const std::string caller = describeCaller(function, comm);
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return {error.result(), fmt::format("{}: {}", caller, error.what())};
  } catch (const std::bad_alloc&) {
    return {taccSystemError, fmt::format("{}: out of memory", caller)};
  } catch (const std::exception& error) {
    return {taccInternalError, fmt::format("{}: unexpected exception: {}", caller, error.what())};
  } catch (...) {
    return {taccInternalError, fmt::format("{}: unexpected exception of an unknown type", caller)};
  }
}

void setLastError(const Error& error, taccComm_t comm) noexcept {
  try {
    threadErrorText = error.what();
    // In a forked child the mutex may be held by a thread that is not there.
    if (!isHandle(comm) || comm->life.load() == Life::inherited) return;
    const std::lock_guard lock(comm->errorMutex);
    comm->errorText = error.what();
  } catch (const std::bad_alloc&) {
    // The older text stays.
  }
}

taccResult_t recordException(const char* function, taccComm_t comm) noexcept { return record(function, comm, false); }

taccResult_t recordExceptionInGroup(const char* function, taccComm_t comm) noexcept {
  return record(function, comm, true);
}

const char* lastErrorText(taccComm_t comm) noexcept {
  if (!isHandle(comm)) return threadErrorText.c_str();
  if (const Life life = comm->life.load(); !has(life, Needs::alive) && life != Life::notJoined)
    return threadErrorText.c_str();
  try {
    const std::lock_guard lock(comm->errorMutex);
    returnedText = comm->errorText;
  } catch (const std::bad_alloc&) {
    return "out of memory";
  }
  return returnedText.c_str();
}

}  // namespace tacc

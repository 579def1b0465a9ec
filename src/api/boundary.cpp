#include "api/boundary.hpp"

#include <mutex>
#include <new>
#include <system_error>

#include "api/group.hpp"
#include "api/handles.hpp"
#include "core/exceptions.hpp"
#include "core/log.hpp"
#include "core/per_thread.hpp"

namespace tacc {

namespace {

struct Texts {
  std::string error;
  std::string returned;  // a copy of a communicator's text, which its other users may change meanwhile
};
PerThread<Texts> texts;
/// This thread's last error found no memory for its text.
constinit thread_local bool hasNoText [[gnu::tls_model("initial-exec")]] = false;

constexpr const char* outOfMemory = "out of memory";  // short enough for a string that needs no memory

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

/// `ofAllRanks`: the others make this call too, and would wait for a rank that could not even begin it.
taccResult_t record(const char* function, taccComm_t comm, bool ofAllRanks, bool inGroup) noexcept {
  const std::exception_ptr what = std::current_exception();
  const Error error = describeSafely(what, function, comm);
  setLastError(error, comm);
  if (!ofAllRanks) return error.result();
  const bool isLoss = !isError(what);
  if (isLoss) failCommunicator(comm, error);
  if (inGroup && groupIsOpen()) failGroupWith(error, isLoss);
  return error.result();
}

}  // namespace

Error describeSafely(const std::exception_ptr& exception, const char* function, taccComm_t comm) noexcept {
  try {
    return describe(exception, function, comm);
  } catch (...) {
    // An Error without its caller says more than that there is no memory.
    return errorOf(exception, noRank, [] { return std::string(); });
  }
}

void failCommunicator(taccComm_t comm, const Error& error) noexcept {
  if (!isHandle(comm)) return;
  try {
    const Observer observer(comm);
    setLastError(error, comm);
    comm->communicator->failWith(error);
  } catch (...) {
    // It has ended, and so have the calls of the others.
  }
}

Error describe(const std::exception_ptr& exception, const char* function, taccComm_t comm) {
  const std::string caller = describeCaller(function, comm);
  if (exception == nullptr)
    return {
        taccInternalError,
        fmt::format("{}: {}", caller, errorOf(exception, noRank, [function] { return std::string(function); }).what())};
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return {error.result(), fmt::format("{}: {}", caller, error.what())};
  } catch (const std::bad_alloc&) {
    return {taccSystemError, fmt::format("{}: out of memory", caller)};
  } catch (const std::system_error& error) {
    return {taccSystemError, fmt::format("{}: {}", caller, error.what())};
  } catch (const std::exception& error) {
    return {taccInternalError, fmt::format("{}: unexpected exception: {}", caller, error.what())};
  } catch (...) {
    return {taccInternalError, fmt::format("{}: unexpected exception of an unknown type", caller)};
  }
}

void setLastError(const Error& error, taccComm_t comm) noexcept {
  try {
    hasNoText = true;
    texts.get().error = error.what();
    hasNoText = false;
    // In a forked child the mutex may be held by a thread that is not there.
    if (!isHandle(comm) || comm->life.load() == Life::inherited) return;
    const std::lock_guard lock(comm->errorMutex);
    comm->errorText = error.what();
  } catch (const std::bad_alloc&) {
    if (!isHandle(comm)) return;
    const std::lock_guard lock(comm->errorMutex);
    comm->errorText = outOfMemory;
  }
}

taccResult_t recordException(const char* function, taccComm_t comm) noexcept {
  return record(function, comm, false, false);
}

taccResult_t recordExceptionInGroup(const char* function, taccComm_t comm) noexcept {
  return record(function, comm, true, true);
}

taccResult_t recordExceptionOfAll(const char* function, taccComm_t comm) noexcept {
  return record(function, comm, true, false);
}

const char* lastErrorText(taccComm_t comm) noexcept {
  const Life life = isHandle(comm) ? comm->life.load() : Life::destroyed;
  if (!has(life, Needs::alive) && life != Life::notJoined) {
    const Texts* const found = texts.find();
    return hasNoText ? outOfMemory : found == nullptr ? "" : found->error.c_str();
  }
  try {
    std::string& returned = texts.get().returned;
    const std::lock_guard lock(comm->errorMutex);
    returned = comm->errorText;
    return returned.c_str();
  } catch (const std::bad_alloc&) {
    return outOfMemory;
  }
}

}  // namespace tacc

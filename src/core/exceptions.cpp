#include "core/exceptions.hpp"

#include <unistd.h>

#include <new>
#include <system_error>

#include "core/log.hpp"

namespace tacc {
namespace {

// Made before memory runs out; copying an Error allocates nothing.
const Error noMemory(taccSystemError, "out of memory");
const Error noMemoryToTell(taccInternalError, "unexpected exception, and no memory to say which");

/// What catch (...) caught without an exception to point at: of another language.
struct ForeignException : std::exception {
  const char* what() const noexcept override { return "a function of the program threw what is no exception of C++"; }
};

[[noreturn]] void rethrow(const std::exception_ptr& what) {
  if (what == nullptr) throw ForeignException();
  std::rethrow_exception(what);
}

Error describeError(const std::exception_ptr& what, int rank, const std::string& doing) {
  const std::string who =
      rank == noRank ? fmt::format("process {}", ::getpid()) : fmt::format("rank {} (process {})", rank, ::getpid());
  try {
    rethrow(what);
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {taccSystemError, fmt::format("{}: out of memory in {}", who, doing)};
  } catch (const std::system_error& error) {
    return {taccSystemError, fmt::format("{}: {} in {}", who, error.what(), doing)};
  } catch (const std::exception& error) {
    return {taccInternalError, fmt::format("{}: unexpected exception in {}: {}", who, doing, error.what())};
  } catch (...) {
    return {taccInternalError, fmt::format("{}: unexpected exception of an unknown type in {}", who, doing)};
  }
}

Error shortErrorOf(const std::exception_ptr& what) noexcept {
  try {
    rethrow(what);
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return noMemory;
  } catch (const std::system_error&) {
    return noMemory;  // of whatever there was too little, now it is memory
  } catch (...) {
    return noMemoryToTell;
  }
}

}  // namespace

Error errorOf(const std::exception_ptr& what, int rank, const std::function<std::string()>& doing) noexcept {
  if (isError(what)) return shortErrorOf(what);
  try {
    return describeError(what, rank, doing());
  } catch (...) {
    return shortErrorOf(what);
  }
}

bool isError(const std::exception_ptr& what) noexcept {
  try {
    rethrow(what);
  } catch (const Error&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace tacc

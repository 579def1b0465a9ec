// The C functions that need no communicator: the library itself, ids and memory.
#include <cstdint>

#include "api/boundary.hpp"
#include "api/check.hpp"
#include "comm/bootstrap/unique_id.hpp"
#include "core/error.hpp"
#include "transports/shm/library_memory.hpp"
#include "transports/shm/memory_fence.hpp"

using tacc::guard;
using tacc::guardLong;

taccResult_t taccGetVersion(int* version) {
  return guard("taccGetVersion", nullptr, [&] {
    tacc::checkPointer(version, "version");
    *version = TACC_VERSION_CODE;
  });
}

const char* taccGetErrorString(taccResult_t result) {
  switch (result) {
    case taccSuccess:
      return "success";
    case taccSystemError:
      return "system error";
    case taccInternalError:
      return "internal error";
    case taccInvalidArgument:
      return "invalid argument";
    case taccInvalidUsage:
      return "invalid usage";
    case taccRemoteError:
      return "remote error";
    case taccInProgress:
      return "in progress";
    case taccTimeout:
      return "time-out";
    case taccNumResults:
      break;
  }
  return "unknown result";
}

const char* taccGetLastError(taccComm_t comm) { return tacc::lastErrorText(comm); }

taccResult_t taccGetUniqueId(taccUniqueId* uniqueId) {
  return guardLong("taccGetUniqueId", nullptr, [&] {
    tacc::checkPointer(uniqueId, "uniqueId");
    *uniqueId = tacc::makeUniqueId();
  });
}

taccResult_t taccMemAlloc(void** ptr, size_t bytes) {
  return guardLong("taccMemAlloc", nullptr, [&] {
    tacc::checkPointer(ptr, "ptr");
    if (bytes > static_cast<size_t>(PTRDIFF_MAX)) {
      tacc::fail(taccInvalidArgument, "bytes {} is more than an address space has", bytes);
    }
    *ptr = bytes == 0 ? nullptr : tacc::allocateLibraryMemory(bytes);
  });
}

taccResult_t taccMemReserve(void** ptr, size_t bytes) {
  return guardLong("taccMemReserve", nullptr, [&] {
    tacc::checkPointer(ptr, "ptr");
    if (bytes > static_cast<size_t>(PTRDIFF_MAX)) {
      tacc::fail(taccInvalidArgument, "bytes {} is more than an address space has", bytes);
    }
    *ptr = bytes == 0 ? nullptr : tacc::allocateLibraryMemory(bytes, tacc::Reserve::onTouch);
  });
}

taccResult_t taccMemUnshare(void* ptr) {
  return guardLong("taccMemUnshare", nullptr, [&] { tacc::unshareLibraryMemory(ptr); });
}

taccResult_t taccMemFree(void* ptr) {
  return guardLong("taccMemFree", nullptr, [&] {
    if (ptr != nullptr) tacc::freeLibraryMemory(ptr);
  });
}

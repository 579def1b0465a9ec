// The program's memory: MPI_Alloc_mem and MPI_Free_mem, and malloc where that is ours to give.
#include "memory.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/fabric_device.hpp"
#include "heap_functions.h"
#include "plugin.hpp"
#include "shared_heap.hpp"
#include "wrappers.hpp"

namespace tacc::mpi {
namespace {

constexpr std::size_t usualAlignment = 64;

const TaccHeapFunctions functions{
    SharedHeap::leastBytes,
    [](std::size_t bytes, std::size_t alignment, std::size_t room) {
      return sharedHeap().allocate(bytes, alignment, room);
    },
    [](std::size_t bytes) { return sharedHeap().allocateZeroed(bytes); },
    [](const void* address) { return sharedHeap().holds(address) ? 1 : 0; },
    [](void* block) { return sharedHeap().free(block) ? 1 : 0; },
    [](const void* block) { return sharedHeap().sizeOf(block); },
    [](void* block, std::size_t bytes) { return sharedHeap().resize(block, bytes) ? 1 : 0; }};

/// Whether the program asks for nothing that only the MPI knows.
bool isWithoutWishes(MPI_Info info) noexcept {
  int keys = 0;
  return info == MPI_INFO_NULL || (PMPI_Info_get_nkeys(info, &keys) == MPI_SUCCESS && keys == 0);
}

/// Devices that read and write a process's memory without its processor: they keep pages that were made known to them.
bool hasDevices() {
  std::error_code none;
  return hasFabricDevice() || std::filesystem::exists("/dev/nvidiactl", none) ||
         std::filesystem::exists("/dev/kfd", none);
}

/// Whether shared memory is as large as memory. Where it is files of /dev/shm, which ends somewhere, a block that
/// malloc has given might end the process when it is touched.
bool hasUnboundedMemory() {
  const char* const source = std::getenv("TACC_SHM");
  if (source != nullptr && std::string_view(source) == "file") return false;
  const int fd = ::memfd_create("tacc-look", MFD_CLOEXEC);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

/// Whether MPI_Alloc_mem may give memory that is not the MPI's. Set before other threads call it.
bool isFreedHere = true;

}  // namespace

void openMemory() {
  if (!hasUnboundedMemory()) return;
  isFreedHere = plugin().passAllOn == nullptr || wrapperOfFree(plugin().passAllOn).empty();
  sharedHeap().open(hasDevices() ? SharedHeap::Child::nothing : SharedHeap::Child::copies);
  if (void* const found = ::dlsym(RTLD_DEFAULT, "taccMpiMemory_use"))
    reinterpret_cast<decltype(&taccMpiMemory_use)>(found)(&functions);
}

void closeMemory() noexcept { sharedHeap().close(); }

std::string textOfMemory() {
  const SharedHeap::Given given = sharedHeap().given();
  if (given.blocks == 0) return {};
  return fmt::format("# memory that ranks share: {} blocks, {} bytes\n", given.blocks, given.bytes);
}

}  // namespace tacc::mpi

TACC_MPI_ENTRY taccMpi_Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
  using namespace tacc::mpi;
  const auto bytes = static_cast<std::size_t>(size);
  if (plugin().isActive && isFreedHere && size > 0 && bytes >= SharedHeap::leastBytes && baseptr != nullptr &&
      isWithoutWishes(info)) {
    if (void* const block = sharedHeap().allocate(bytes, usualAlignment)) {
      *static_cast<void**>(baseptr) = block;
      return MPI_SUCCESS;
    }
  }
  return PMPI_Alloc_mem(size, info, baseptr);
}

TACC_MPI_ENTRY taccMpi_Free_mem(void* base) {
  return tacc::mpi::sharedHeap().free(base) ? MPI_SUCCESS : PMPI_Free_mem(base);
}

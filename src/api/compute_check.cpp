#include "api/compute_check.hpp"

#include <cstdint>

#include "compute/conv/amx/tile_pace.hpp"
#include "core/error.hpp"

namespace tacc::compute_check {
namespace {

constexpr std::size_t alignment = 64;

}  // namespace

const conv::KernelSet& kernels() {
  static const conv::KernelSet& best = conv::bestKernels();
  return best;
}

const conv::KernelSet& kernelsForFloats() { return conv::kernelsForFloats(kernels()); }

const layers::LayerKernels& layerKernels() {
  static const layers::LayerKernels& table = layers::kernelTable(kernels().vectors);
  return table;
}

void require(const void* pointer, const char* name) {
  if (pointer == nullptr) fail(taccInvalidArgument, "{} is NULL", name);
}

void requireAligned(const void* pointer, const char* name) {
  require(pointer, name);
  if (reinterpret_cast<std::uintptr_t>(pointer) % alignment != 0) {
    fail(taccInvalidArgument, "{} is {}, which is not aligned to {} bytes", name, pointer, alignment);
  }
}

void checkWorkspace(const void* workspace, std::size_t bytes, std::size_t needed) {
  if (needed == 0) return;
  if (workspace == nullptr) {
    fail(taccInvalidArgument, "workspace is NULL and this plan needs {} bytes, aligned to {}", needed, alignment);
  }
  requireAligned(workspace, "workspace");
  if (bytes < needed) fail(taccInvalidArgument, "the workspace has {} bytes and this plan needs {}", bytes, needed);
}

void checkExecutor(const taccExecutor_t* executor, int maxWorkers) {
  require(executor, "executor");
  if (executor->run == nullptr) fail(taccInvalidArgument, "executor->run is NULL");
  if (executor->workers < 1 || executor->workers > maxWorkers) {
    fail(taccInvalidArgument, "the executor has {} workers and the plan was made for 1 to {}; see maxWorkers",
         executor->workers, maxWorkers);
  }
}

}  // namespace tacc::compute_check

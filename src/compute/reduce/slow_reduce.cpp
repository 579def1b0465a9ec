// Jobs that no kernel takes as they are: reductions of the program, and pointers that are not aligned for their type.
#include <algorithm>
#include <cstring>
#include <vector>

#include "compute/reduce/reduce.hpp"
#include "core/types.hpp"
#include "core/uncancelled.hpp"

namespace tacc {
namespace {

constexpr std::size_t tileBytes = 8192;

/// Of this thread, at least so long.
std::byte* workspace(std::size_t bytes) {
  thread_local std::vector<std::byte> memory;
  if (memory.size() < bytes) memory.resize(bytes);
  return memory.data();
}

/// Calls `reduce(count, sources, result)` for pieces of the vectors whose copies are aligned, and hands out its
/// results. All sources of a piece are read before anything is written.
template <class Reduce>
void reduceCopies(const ReduceJob& job, std::size_t elementBytes, const Reduce& reduce) {
  const std::size_t most = tileBytes / elementBytes;
  const auto sources = static_cast<std::size_t>(job.sourceCount);
  std::byte* const copies = workspace((sources + 1) * tileBytes + sources * sizeof(void*));
  auto** const addresses = reinterpret_cast<const void**>(copies + (sources + 1) * tileBytes);
  std::byte* const result = copies + sources * tileBytes;
  for (std::size_t begin = 0; begin < job.count; begin += most) {
    const std::size_t count = std::min(most, job.count - begin), bytes = count * elementBytes;
    for (std::size_t s = 0; s < sources; ++s) {
      addresses[s] = copies + s * tileBytes;
      std::memcpy(copies + s * tileBytes, static_cast<const std::byte*>(job.sources[s]) + begin * elementBytes, bytes);
    }
    reduce(count, addresses, result);
    for (int d = 0; d < job.destinationCount; ++d)
      std::memcpy(static_cast<std::byte*>(job.destinations[d]) + begin * elementBytes, result, bytes);
  }
}

}  // namespace

void ReduceKernel::runSlowly(const ReduceJob& job) const {
  if (user_ != nullptr) {
    const Uncancelled calls;
    return reduceCopies(job, sizeOf(type_), [&](std::size_t count, const void** sources, std::byte* result) {
      std::memcpy(result, sources[0], count * sizeOf(type_));
      for (int s = 1; s < job.sourceCount; ++s) user_->function(result, sources[s], count, type_, user_->context);
    });
  }
  reduceCopies(job, sizeOf(type_), [&](std::size_t count, const void** sources, std::byte* result) {
    void* destination = result;
    function_({.destinations = &destination,
               .destinationCount = 1,
               .sources = sources,
               .sourceCount = job.sourceCount,
               .count = count,
               .divisor = job.divisor});
  });
}

}  // namespace tacc

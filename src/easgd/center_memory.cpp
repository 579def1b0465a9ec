#include "easgd/center_memory.hpp"

#include <unistd.h>

#include <cstring>
#include <new>
#include <utility>

#include "comm/hosts.hpp"
#include "core/error.hpp"
#include "transports/shm/liveness.hpp"
#include "transports/shm/pages.hpp"

namespace tacc {
namespace {

constexpr std::uint32_t memoryMagic = 0x7acce47e;
constexpr std::uint32_t layoutVersion = 1;
constexpr std::size_t headerBytes = 256;
constexpr const char* centerPurpose = "a center";

std::size_t locksOf(const CenterMemory::Shape& shape) {
  return (shape.count + CenterMemory::shardElements - 1) / CenterMemory::shardElements;
}

/// Where the numbers begin.
std::size_t numbersAt(const CenterMemory::Shape& shape) {
  const std::size_t before = headerBytes + locksOf(shape) * sizeof(ShardLock);
  return (before + pageBytes - 1) / pageBytes * pageBytes;
}

std::size_t bytesFor(const CenterMemory::Shape& shape) {
  if (shape.count > static_cast<std::size_t>(PTRDIFF_MAX) / (2 * sizeof(float)))
    fail(taccInvalidArgument, "a center of {} numbers is more than an address space has", shape.count);
  return numbersAt(shape) + shape.count * sizeof(float);
}

}  // namespace

CenterMemory::CenterMemory(SharedMemory memory, const Shape& shape) noexcept
    : memory_(std::move(memory)),
      shape_(shape),
      numbers_(reinterpret_cast<float*>(memory_.data() + numbersAt(shape))),
      kernels_(&elasticKernels()) {
  memory_.keepFromChildren();
}

CenterMemory CenterMemory::create(const Shape& shape, const float* initial) {
  static_assert(sizeof(Header) <= headerBytes && headerBytes % alignof(ShardLock) == 0);
  CenterMemory made(SharedMemory::create(bytesFor(shape), centerPurpose), shape);
  Header* const header = new (made.memory_.data()) Header{};
  header->magic = memoryMagic;
  header->layout = layoutVersion;
  header->shape = shape;
  header->processSpace = processSpaceHash();
  for (std::size_t i = 0; i < made.shards(); ++i) new (made.locks() + i) ShardLock;
  if (initial != nullptr) std::memcpy(made.numbers(), initial, shape.count * sizeof(float));
  made.self_ = header->processSpace == 0 ? 0 : static_cast<std::uint32_t>(::getpid());
  return made;
}

CenterMemory CenterMemory::map(FileDescriptor fd, const Shape& shape) {
  CenterMemory made(SharedMemory::map(std::move(fd), bytesFor(shape), centerPurpose), shape);
  const Header& header = made.header();
  if (header.magic != memoryMagic || header.layout != layoutVersion || header.shape != shape)
    fail(taccInternalError, "the memory that came from the center's process is not that of a center of {} numbers",
         shape.count);
  const bool means = header.processSpace != 0 && header.processSpace == processSpaceHash();
  made.self_ = means ? static_cast<std::uint32_t>(::getpid()) : 0;
  return made;
}

ShardLock* CenterMemory::locks() const noexcept {
  return std::launder(reinterpret_cast<ShardLock*>(memory_.data() + headerBytes));
}

void CenterMemory::failOnHolder(std::size_t first, double timeout) const {
  const std::size_t shard = first / shardElements * shardElements;
  const std::uint32_t holder = lockOf(first).holder();
  const std::string who = holder == 0 || self_ == 0
                              ? std::string("a process that cannot be named from here")
                              : fmt::format("process {}, {},", holder, describeProcess(static_cast<pid_t>(holder)));
  fail(
      taccTimeout,
      "{} has kept the elements {} to {} of the center locked for {:.3g} s; once it goes on, or ends, they can be used "
      "again",
      who, shard, std::min(shard + shardElements, size()) - 1, timeout);
}

void CenterMemory::accessLocked(float* center, std::size_t n, const Move& move) const {
  kernels_->move(center, move.weights, move.alpha, move.difference, n);
}

void CenterMemory::accessLocked(float* center, std::size_t n, const Read& read) const {
  std::memcpy(read.out, center, n * sizeof(float));
}

void CenterMemory::accessLocked(float* center, std::size_t n, const Write& write) const {
  std::memcpy(center, write.values, n * sizeof(float));
}

void CenterMemory::accessUnlocked(float* center, std::size_t n, const Move& move) const {
  kernels_->moveUnlocked(center, move.weights, move.alpha, move.difference, n);
}

void CenterMemory::accessUnlocked(float* center, std::size_t n, const Read& read) const {
  kernels_->copyUnlocked(read.out, center, n);
}

void CenterMemory::accessUnlocked(float* center, std::size_t n, const Write& write) const {
  kernels_->copyUnlocked(center, write.values, n);
}

}  // namespace tacc

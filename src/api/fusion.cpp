#include "api/fusion.hpp"

#include <cstdint>
#include <cstring>
#include <span>

#include "base/types.hpp"

namespace tacc {

namespace {

bool overlap(const void* a, std::size_t aBytes, const void* b, std::size_t bBytes) noexcept {
  const auto aBegin = reinterpret_cast<std::uintptr_t>(a);
  const auto bBegin = reinterpret_cast<std::uintptr_t>(b);
  return aBytes != 0 && bBytes != 0 && aBegin < bBegin + bBytes && bBegin < aBegin + aBytes;
}

/// One of them writes what the other reads or writes.
bool depend(const Call& a, const Call& b) noexcept {
  const std::size_t aBytes = a.count * sizeOf(a.type);
  const std::size_t bBytes = b.count * sizeOf(b.type);
  return overlap(a.receive, aBytes, b.send, bBytes) || overlap(a.receive, aBytes, b.receive, bBytes) ||
         overlap(a.send, aBytes, b.receive, bBytes);
}

bool isSmallAllReduce(const Unit& unit) noexcept {
  return unit.kind == Unit::Kind::collective && unit.call.collective == Collective::allReduce &&
         unit.call.count * sizeOf(unit.call.type) <= fusionPartBytes;
}

std::span<const Call> partsOf(const Unit& unit) noexcept {
  return unit.kind == Unit::Kind::fused ? std::span<const Call>(unit.parts) : std::span<const Call>(&unit.call, 1);
}

}  // namespace

bool canFuse(const Unit& previous, const Unit& next) {
  if (!isSmallAllReduce(next) || !(previous.kind == Unit::Kind::fused || isSmallAllReduce(previous))) return false;
  if (previous.call.type != next.call.type || previous.op != next.op) return false;
  const std::span<const Call> parts = partsOf(previous);
  if (parts.size() >= fusionParts) return false;
  if ((previous.call.count + next.call.count) * sizeOf(next.call.type) > fusionBytes) return false;
  for (const Call& part : parts) {
    if (depend(part, next.call)) return false;
  }
  return true;
}

void fuse(Unit& previous, const Unit& next) {
  if (previous.kind != Unit::Kind::fused) {
    previous.parts.push_back(previous.call);
    previous.kind = Unit::Kind::fused;
  }
  previous.parts.push_back(next.call);
  previous.call.count += next.call.count;
}

void runFused(taccComm& comm, const Unit& unit) {
  if (!comm.fusionBuffer) comm.fusionBuffer = std::make_unique<std::byte[]>(fusionBytes);
  std::byte* const packed = comm.fusionBuffer.get();
  const std::size_t elementBytes = sizeOf(unit.call.type);
  std::size_t at = 0;
  for (const Call& part : unit.parts) {
    if (part.count == 0) continue;
    std::memcpy(packed + at, part.send, part.count * elementBytes);
    at += part.count * elementBytes;
  }
  Call call = unit.call;
  call.send = packed;
  call.receive = packed;
  comm.communicator->run(call);
  at = 0;
  for (const Call& part : unit.parts) {
    if (part.count == 0) continue;
    std::memcpy(part.receive, packed + at, part.count * elementBytes);
    at += part.count * elementBytes;
  }
}

}  // namespace tacc

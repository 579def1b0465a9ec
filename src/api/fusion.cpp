#include "api/fusion.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/types.hpp"

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

/// Travels with the call's signature, where an allreduce has room: 1 to 65535, of the parts' sizes in their order.
int digestOf(std::span<const Call> parts) noexcept {
  std::uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
  for (const Call& part : parts) digest = (digest ^ part.count) * 0x100000001b3;
  return static_cast<int>(digest % 65535) + 1;
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
  return !dependOnEachOther(previous, next.call);
}

bool dependOnEachOther(const Unit& unit, const Call& next) noexcept {
  return std::ranges::any_of(partsOf(unit), [&](const Call& part) { return depend(part, next); });
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
  const std::size_t elementBytes = sizeOf(unit.call.type);
  const std::size_t bytes = std::max(fusionBytes, unit.call.count * elementBytes);
  if (comm.fusionBuffer.size() < bytes) comm.fusionBuffer.resize(bytes);
  std::byte* const packed = comm.fusionBuffer.data();
  std::size_t at = 0;
  for (const Call& part : unit.parts) {
    if (part.count == 0) continue;
    std::memcpy(packed + at, part.send, part.count * elementBytes);
    at += part.count * elementBytes;
  }
  Call call = unit.call;
  call.send = packed;
  call.receive = packed;
  call.root = digestOf(unit.parts);
  comm.communicator->run(call);
  at = 0;
  for (const Call& part : unit.parts) {
    if (part.count == 0) continue;
    std::memcpy(part.receive, packed + at, part.count * elementBytes);
    at += part.count * elementBytes;
  }
}

}  // namespace tacc

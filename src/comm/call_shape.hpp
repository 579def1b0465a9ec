// Facts of a call that follow from its collective: buffer sizes, which buffers this rank uses, whether it is in place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/communicator.hpp"
#include "core/types.hpp"
#include "engine/shm/buffer_exchange.hpp"

namespace tacc {

/// Whether `a` lies `offset` bytes behind `b`; either may be null.
inline bool isAt(const std::byte* a, const std::byte* b, std::size_t offset) noexcept {
  return reinterpret_cast<std::uintptr_t>(a) == reinterpret_cast<std::uintptr_t>(b) + offset;
}

/// The same of a call with blocks of unequal lengths, which are those of `rank`.
inline UserBuffers unequalBuffers(const Call& call, const UnequalBlocks& blocks, int rank) {
  const std::size_t size = sizeOf(call.type);
  const auto* send = blocks.send.counts.empty() ? nullptr : static_cast<const std::byte*>(call.send);
  auto* receive = blocks.receive.counts.empty() ? nullptr : static_cast<std::byte*>(call.receive);
  UserBuffers buffers{send, blocks.send.extent() * size, receive, blocks.receive.extent() * size, false};
  if (send == nullptr || receive == nullptr) return buffers;
  const auto beginOf = [&](const BlockRow& row) { return row.offsets[static_cast<std::size_t>(rank)] * size; };
  const bool gathers = call.collective == Collective::allGather || call.collective == Collective::gather;
  if (gathers) buffers.inPlace = isAt(send, receive, beginOf(blocks.receive));
  if (call.collective == Collective::reduceScatter || call.collective == Collective::scatter)
    buffers.inPlace = isAt(receive, send, beginOf(blocks.send));
  return buffers;
}

/// The buffers that `call` uses on `rank`, with their sizes. Unused ones are null.
inline UserBuffers usedBuffers(const Call& call, int rank, int ranks) {
  const std::size_t one = call.count * sizeOf(call.type);
  const std::size_t all = one * static_cast<std::size_t>(ranks);
  const auto* send = static_cast<const std::byte*>(call.send);
  auto* receive = static_cast<std::byte*>(call.receive);
  const bool isRoot = rank == call.root;
  if (call.blocks != nullptr) return unequalBuffers(call, *call.blocks, rank);
  const std::size_t mine = static_cast<std::size_t>(rank) * one;
  switch (call.collective) {
    case Collective::allReduce:
    case Collective::scan:
      return {send, one, receive, one, send == receive};
    case Collective::exscan:
      if (rank == 0) return {send, one, nullptr, 0, false};
      return {send, one, receive, one, send == receive};
    case Collective::broadcast:
      if (!isRoot) return {nullptr, 0, receive, one, false};
      return {send, one, receive, one, send == receive};
    case Collective::reduce:
      if (!isRoot) return {send, one, nullptr, 0, false};
      return {send, one, receive, one, send == receive};
    case Collective::allGather:
      return {send, one, receive, all, isAt(send, receive, mine)};
    case Collective::reduceScatter:
      return {send, all, receive, one, isAt(receive, send, mine)};
    case Collective::allToAll:
      return {send, all, receive, all, send == receive};
    case Collective::gather:
      if (!isRoot) return {send, one, nullptr, 0, false};
      return {send, one, receive, all, isAt(send, receive, mine)};
    case Collective::scatter:
      if (!isRoot) return {nullptr, 0, receive, one, false};
      return {send, all, receive, one, isAt(receive, send, mine)};
    case Collective::barrier:
      break;
  }
  return {};
}

}  // namespace tacc

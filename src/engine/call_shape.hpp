// Facts of a call that follow from its collective: buffer sizes, which buffers this rank uses, whether it is in place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/call.hpp"
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
  if (isGathering(call.collective)) buffers.inPlace = isAt(send, receive, beginOf(blocks.receive));
  if (isScattering(call.collective)) buffers.inPlace = isAt(receive, send, beginOf(blocks.send));
  return buffers;
}

/// The buffers that `call` uses on `rank`, with their sizes. Unused ones are null.
inline UserBuffers usedBuffers(const Call& call, int rank, int ranks) {
  if (call.blocks != nullptr) return unequalBuffers(call, *call.blocks, rank);
  const std::size_t one = call.count * sizeOf(call.type);
  const CollectiveShape& shape = shapeOf(call.collective);
  UserBuffers buffers{};
  if (shape.send.isUsedOn(rank, call.root)) {
    buffers.send = static_cast<const std::byte*>(call.send);
    buffers.sendBytes = shape.send.holds == Holds::all ? one * static_cast<std::size_t>(ranks) : one;
  }
  if (!shape.receive.isUsedOn(rank, call.root)) return buffers;
  buffers.receive = static_cast<std::byte*>(call.receive);
  buffers.receiveBytes = shape.receive.holds == Holds::all ? one * static_cast<std::size_t>(ranks) : one;
  if (!shape.send.isUsedOn(rank, call.root)) return buffers;
  const std::size_t mine = static_cast<std::size_t>(rank) * one;
  buffers.inPlace = shape.send.holds == shape.receive.holds ? buffers.send == buffers.receive
                    : shape.receive.holds == Holds::all     ? isAt(buffers.send, buffers.receive, mine)
                                                            : isAt(buffers.receive, buffers.send, mine);
  return buffers;
}

}  // namespace tacc

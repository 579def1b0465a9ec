// Facts of a call that follow from its collective: buffer sizes, which buffers this rank uses, whether it is in place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.hpp"
#include "comm/communicator.hpp"
#include "engine/buffer_exchange.hpp"

namespace tacc {

/// Whether `a` lies `offset` bytes behind `b`; either may be null.
inline bool isAt(const std::byte* a, const std::byte* b, std::size_t offset) noexcept {
  return reinterpret_cast<std::uintptr_t>(a) == reinterpret_cast<std::uintptr_t>(b) + offset;
}

/// The buffers that `call` uses on `rank`, with their sizes. Unused ones are null.
inline UserBuffers usedBuffers(const Call& call, int rank, int ranks) {
  const std::size_t one = call.count * sizeOf(call.type);
  const std::size_t all = one * static_cast<std::size_t>(ranks);
  const auto* send = static_cast<const std::byte*>(call.send);
  auto* receive = static_cast<std::byte*>(call.receive);
  const bool isRoot = rank == call.root;
  const std::size_t mine = static_cast<std::size_t>(rank) * one;
  switch (call.collective) {
    case Collective::allReduce:
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

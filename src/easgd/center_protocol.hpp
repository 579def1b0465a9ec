// What a center's process and a worker say to each other once both have proven that they know the secret
// (comm/bootstrap/handshake.hpp). All of it goes over a Channel.
//
//   worker   centerJoin     what it expects, and whether it can map the memory
//   center   centerSeat     what the center is, with the memory's descriptor where it is mapped; or `failure`
//
// A worker that maps the memory says no more: its end of the connection shows that it lives, the center's that the
// center does. Another sends
//
//   worker   centerRequest  about one piece of 8192 numbers, or asks for counts
//   center   centerReply    in the order of the requests; or centerFailure, which ends the operation
//
// A worker sends the requests of an operation without waiting for replies, so both directions of a link are used at the
// same time, and neither end has more than a few pieces in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "comm/bootstrap/channel.hpp"
#include "core/error.hpp"

namespace tacc {

inline constexpr std::uint32_t centerProtocol = 1;
/// A divisor of CenterMemory::shardElements: a piece is of one shard.
inline constexpr std::size_t pieceElements = std::size_t{8} << 10;

struct CenterJoin {
  std::uint64_t count;
  std::uint32_t protocol;
  std::uint32_t wantsMemory;  // 1 or 0
};

struct CenterSeat {
  std::uint64_t count;
  std::uint32_t number;  // of this worker, among all that ever came
  std::uint32_t isLocked;
  std::uint32_t hasMemory;  // 1: one descriptor comes with it
  std::uint32_t unused;
};

enum class CenterAction : std::uint32_t { move = 1, read, write, count };

/// Followed by the piece's numbers: weights of a move, values of a write.
struct CenterRequest {
  std::uint64_t first;
  CenterAction action;
  std::uint32_t operation;  // the pieces of one exchange, read or write have the same; the next has another
  std::uint32_t elements;
  float alpha;           // of a move
  std::uint32_t isLast;  // 1: the operation ends with it
  std::uint32_t unused;
};

/// Followed by the piece's numbers: differences of a move, values of a read.
struct CenterReply {
  std::uint64_t first;
  std::uint64_t updates;  // so far; in the last of an exchange, the number of this one
  std::uint64_t inherited;
  std::uint32_t operation;
  std::uint32_t elements;
  std::int32_t workers;
  std::uint32_t unused;
};

/// Followed by the text.
struct CenterFailure {
  std::uint32_t operation;
  std::uint32_t result;
};

/// Bytes of the longest message.
inline constexpr std::size_t longestCenterMessage = sizeof(CenterReply) + pieceElements * sizeof(float);
static_assert(sizeof(CenterReply) >= sizeof(CenterRequest) && sizeof(CenterFailure) + 4096 < longestCenterMessage);
static_assert(sizeof(CenterRequest) % 8 == 0 && sizeof(CenterReply) % 8 == 0);

inline constexpr std::size_t piecesOf(std::size_t count) noexcept {
  return (count + pieceElements - 1) / pieceElements;
}
/// Numbers of the piece that begins at `first`.
inline constexpr std::size_t elementsAt(std::size_t count, std::size_t first) noexcept {
  return count - first < pieceElements ? count - first : pieceElements;
}

/// The head that is at the beginning of a message, if it has one.
template <class Head>
std::optional<Head> headIn(const Message& message) noexcept {
  if (message.payload.size() < sizeof(Head)) return std::nullopt;
  Head head;
  std::memcpy(&head, message.payload.data(), sizeof head);
  return head;
}
/// What follows it.
template <class Head>
const float* numbersIn(const Message& message) noexcept {
  return reinterpret_cast<const float*>(message.payload.data() + sizeof(Head));
}

/// What a worker asks of a center of `count` numbers; nothing where it is no request that a worker makes.
std::optional<CenterRequest> centerRequestIn(const Message& message, std::size_t count) noexcept;
/// The reply to this request; nothing where it is another.
std::optional<CenterReply> centerReplyIn(const Message& message, const CenterRequest& request) noexcept;

Payload describeCenterFailure(std::uint32_t operation, const Error& error);
/// The Error that it carries. To the worker, trouble of the center's own process is taccRemoteError.
Error centerFailureIn(const Message& message);

}  // namespace tacc

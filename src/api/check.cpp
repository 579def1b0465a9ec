#include "api/check.hpp"

#include <array>
#include <cstdint>

#include "base/error.hpp"
#include "base/types.hpp"

namespace tacc {

namespace {

/// What a collective's buffers are. The one that is in place lies in the other at this rank's element when only one of
/// the two holds an element for every rank, and is the other when both or none do.
struct Shape {
  bool reduces;
  bool rooted;
  bool sendHoldsAll;  // count elements for every rank, else count elements
  bool receiveHoldsAll;
  bool sendOnRootOnly;  // the other ranks do not use it
  bool receiveOnRootOnly;
};

constexpr std::array<Shape, 9> shapes = {{
    {true, false, false, false, false, false},   // allReduce
    {false, true, false, false, true, false},    // broadcast
    {true, true, false, false, false, true},     // reduce
    {false, false, false, true, false, false},   // allGather
    {true, false, true, false, false, false},    // reduceScatter
    {false, false, true, true, false, false},    // allToAll
    {false, true, false, true, false, true},     // gather
    {false, true, true, false, true, false},     // scatter
    {false, false, false, false, false, false},  // barrier
}};
static_assert(static_cast<int>(Collective::barrier) + 1 == static_cast<int>(shapes.size()));

[[noreturn, gnu::cold, gnu::noinline]] void failOnType(taccDataType_t type) {
  fail(taccInvalidArgument, "datatype {} is unknown; valid are 0 (int8) to {} (bfloat16)", static_cast<int>(type),
       taccNumTypes - 1);
}

[[noreturn, gnu::cold, gnu::noinline]] void failOnRank(const char* name, int value, int ranks) {
  fail(taccInvalidArgument, "{} {} is not a rank of this communicator; valid are 0 to {}", name, value, ranks - 1);
}

[[noreturn, gnu::cold, gnu::noinline]] void failOnNull(const char* name, const char* countName, std::size_t count) {
  fail(taccInvalidArgument, "{} is NULL, which is allowed only when {} is 0; here it is {}", name, countName, count);
}

[[noreturn, gnu::cold, gnu::noinline]] void failOnBytes(const char* countName, std::size_t count, taccDataType_t type,
                                                        int ranks) {
  fail(taccInvalidArgument, "{} {} is too large: as many elements of {}{} are more bytes than an address space has",
       countName, count, nameOf(type), ranks > 1 ? fmt::format(" for each of {} ranks", ranks) : std::string());
}

[[noreturn, gnu::cold, gnu::noinline]] void failOnAlignment(const char* name, const void* buffer, taccDataType_t type) {
  fail(taccInvalidArgument, "{} {} is misaligned for {}: its address must be a multiple of {}", name, buffer,
       nameOf(type), sizeOf(type));
}

struct Extent {
  const void* buffer;
  std::size_t bytes;
  bool holdsAll;
};

[[noreturn, gnu::cold, gnu::noinline]] void failOnOverlap(const ArgumentNames& names, const Extent& send,
                                                          const Extent& receive, int rank) {
  std::string right = fmt::format("{} == {}", names.send, names.receive);
  if (send.holdsAll && !receive.holdsAll) {
    right = fmt::format("{} == {} + {} * {}, {} being this rank", names.receive, names.send, rank, names.count, rank);
  } else if (receive.holdsAll && !send.holdsAll) {
    right = fmt::format("{} == {} + {} * {}, {} being this rank", names.send, names.receive, rank, names.count, rank);
  }
  fail(taccInvalidArgument,
       "{} ({}, {} bytes) and {} ({}, {} bytes) overlap; they must be apart, or exactly in place: {} (in elements)",
       names.send, send.buffer, send.bytes, names.receive, receive.buffer, receive.bytes, right);
}

std::uintptr_t address(const void* pointer) noexcept { return reinterpret_cast<std::uintptr_t>(pointer); }

/// Bytes of `count` elements for each of `ranks`.
std::size_t checkedBytes(const char* countName, std::size_t count, taccDataType_t type, int ranks) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, sizeOf(type) * static_cast<std::size_t>(ranks), &bytes) ||
      bytes > static_cast<std::size_t>(PTRDIFF_MAX)) [[unlikely]] {
    failOnBytes(countName, count, type, ranks);
  }
  return bytes;
}

void checkBuffer(const char* name, const void* buffer, const char* countName, std::size_t count, taccDataType_t type) {
  if (count == 0) return;
  if (buffer == nullptr) [[unlikely]]
    failOnNull(name, countName, count);
  if ((address(buffer) & (sizeOf(type) - 1)) != 0) [[unlikely]]
    failOnAlignment(name, buffer, type);
}

void checkOverlap(const ArgumentNames& names, const Extent& send, const Extent& receive, std::size_t blockBytes,
                  int rank) {
  const std::uintptr_t sendBegin = address(send.buffer);
  const std::uintptr_t receiveBegin = address(receive.buffer);
  if (sendBegin + send.bytes <= receiveBegin || receiveBegin + receive.bytes <= sendBegin) return;
  const std::size_t offset = blockBytes * static_cast<std::size_t>(rank);
  const std::uintptr_t sendAt = sendBegin + (send.holdsAll && !receive.holdsAll ? offset : 0);
  const std::uintptr_t receiveAt = receiveBegin + (receive.holdsAll && !send.holdsAll ? offset : 0);
  if (sendAt != receiveAt) [[unlikely]]
    failOnOverlap(names, send, receive, rank);
}

}  // namespace

void checkType(taccDataType_t type) {
  if (!isValid(type)) [[unlikely]]
    failOnType(type);
}

void checkPointer(const void* pointer, const char* name) {
  if (pointer == nullptr) fail(taccInvalidArgument, "{} is NULL", name);
}

void checkCall(const taccComm& comm, Call& call, const ArgumentNames& names) {
  if (call.collective == Collective::barrier) return;
  const Shape& shape = shapes[static_cast<std::size_t>(call.collective)];
  const int rank = comm.communicator->rank();
  const int ranks = comm.communicator->ranks();
  checkType(call.type);
  if (shape.reduces && (call.op < 0 || call.op >= taccNumOps)) [[unlikely]] {
    call.factor = comm.operators.factorFor(call.op, call.type);
    call.op = taccSum;
  }
  if (shape.rooted && (call.root < 0 || call.root >= ranks)) [[unlikely]]
    failOnRank("root", call.root, ranks);

  // On every rank alike, whichever buffers it uses, so that all ranks refuse the same call.
  const bool holdsAll = shape.sendHoldsAll || shape.receiveHoldsAll;
  checkedBytes(names.count, call.count, call.type, holdsAll ? ranks : 1);
  const std::size_t blockBytes = call.count * sizeOf(call.type);

  const bool isRoot = rank == call.root;
  const bool sends = isRoot || !shape.sendOnRootOnly;
  const bool receives = isRoot || !shape.receiveOnRootOnly;
  if (sends) {
    checkBuffer(names.send, call.send, names.count, call.count, call.type);
  } else {
    call.send = nullptr;
  }
  if (receives) {
    checkBuffer(names.receive, call.receive, names.count, call.count, call.type);
  } else {
    call.receive = nullptr;
  }
  if (sends && receives && call.count != 0) {
    const auto all = static_cast<std::size_t>(ranks);
    checkOverlap(names, {call.send, blockBytes * (shape.sendHoldsAll ? all : 1), shape.sendHoldsAll},
                 {call.receive, blockBytes * (shape.receiveHoldsAll ? all : 1), shape.receiveHoldsAll}, blockBytes,
                 rank);
  }
}

void checkPointToPoint(const taccComm& comm, const PointToPoint& operation, bool inGroup) {
  const int ranks = comm.communicator->ranks();
  const char* const name = operation.isSend ? "sendbuff" : "recvbuff";
  checkType(operation.type);
  if (operation.peer < 0 || operation.peer >= ranks) failOnRank("peer", operation.peer, ranks);
  if (operation.peer == comm.communicator->rank() && !inGroup) {
    fail(taccInvalidUsage,
         "peer {} is this rank itself; a rank sends to itself only with the send and the receive in one group",
         operation.peer);
  }
  checkedBytes("count", operation.count, operation.type, 1);
  checkBuffer(name, operation.buffer, "count", operation.count, operation.type);
}

}  // namespace tacc

#include "api/check.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/types.hpp"

namespace tacc {

namespace {

[[noreturn, gnu::cold, gnu::noinline]] void failOnType(taccDataType_t type) {
  fail(taccInvalidArgument, "datatype {} is unknown; valid are 0 (int8) to {} ({})", static_cast<int>(type),
       taccNumTypes - 1, nameOf(static_cast<taccDataType_t>(taccNumTypes - 1)));
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

[[noreturn, gnu::cold, gnu::noinline]] void failOnOperation(taccDataType_t type, taccRedOp_t op) {
  std::string names;
  for (int other = 0; other < taccNumOps; ++other)
    if (hasOperation(type, static_cast<taccRedOp_t>(other)))
      names += (names.empty() ? "" : ", ") + std::string(nameOf(static_cast<taccRedOp_t>(other)));
  fail(taccInvalidArgument, "op {} ({}) is none of datatype {}, which has {}", static_cast<int>(op), nameOf(op),
       nameOf(type), names);
}

[[noreturn, gnu::cold, gnu::noinline]] void failOnAverage(Collective collective) {
  fail(taccInvalidArgument, "op {} (avg) is none of {}, whose ranks get sums over different numbers of ranks",
       static_cast<int>(taccAvg), nameOf(collective));
}

/// Of each type, the operations that it has, a bit for each.
constexpr auto operationsOf = [] {
  std::array<std::uint32_t, taccNumTypes> all{};
  for (int type = 0; type < taccNumTypes; ++type)
    for (int op = 0; op < taccNumOps; ++op)
      if (hasOperation(static_cast<taccDataType_t>(type), static_cast<taccRedOp_t>(op)))
        all[static_cast<std::size_t>(type)] |= 1U << op;
  return all;
}();
static_assert(taccNumOps <= 32);

}  // namespace

void checkRoot(int root, int ranks) {
  if (root < 0 || root >= ranks) [[unlikely]]
    failOnRank("root", root, ranks);
}

void checkType(taccDataType_t type) {
  if (!isValid(type)) [[unlikely]]
    failOnType(type);
}

void checkOperation(const taccComm& comm, Call& call) {
  if (call.op < 0 || call.op >= taccNumOps) [[unlikely]]
    return comm.operators.apply(call.op, call);
  if ((operationsOf[static_cast<std::size_t>(call.type)] >> call.op & 1) == 0) [[unlikely]]
    failOnOperation(call.type, call.op);
  if (call.op == taccAvg && isPrefix(call.collective)) [[unlikely]]
    failOnAverage(call.collective);
}

namespace {

struct BufferExtent {
  const void* buffer;
  std::size_t bytes;
  bool holdsAll;
};

[[noreturn, gnu::cold, gnu::noinline]] void failOnOverlap(const ArgumentNames& names, const BufferExtent& send,
                                                          const BufferExtent& receive, int rank) {
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

/// Bytes of `count` elements for each of `ranks`.
std::size_t checkedBytes(const char* countName, std::size_t count, taccDataType_t type, int ranks) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, sizeOf(type) * static_cast<std::size_t>(ranks), &bytes) || bytes > addressSpace)
      [[unlikely]] {
    failOnBytes(countName, count, type, ranks);
  }
  return bytes;
}

void checkBuffer(const char* name, const void* buffer, const char* countName, std::size_t count) {
  if (count == 0) return;
  if (buffer == nullptr) [[unlikely]]
    failOnNull(name, countName, count);
}

void checkOverlap(const ArgumentNames& names, const BufferExtent& send, const BufferExtent& receive,
                  std::size_t blockBytes, int rank) {
  const std::uintptr_t sendBegin = address(send.buffer);
  const std::uintptr_t receiveBegin = address(receive.buffer);
  if (sendBegin + send.bytes <= receiveBegin || receiveBegin + receive.bytes <= sendBegin) return;
  const std::size_t offset = blockBytes * static_cast<std::size_t>(rank);
  const std::uintptr_t sendAt = sendBegin + (send.holdsAll && !receive.holdsAll ? offset : 0);
  const std::uintptr_t receiveAt = receiveBegin + (receive.holdsAll && !send.holdsAll ? offset : 0);
  if (sendAt != receiveAt) [[unlikely]]
    failOnOverlap(names, send, receive, rank);
}

/// One for each collective: what follows from its shape takes longer to find than the short checks themselves.
template <Collective collective>
void checkAs(const taccComm& comm, Call& call, const ArgumentNames& names) {
  constexpr CollectiveShape shape = shapeOf(collective);
  if constexpr (collective == Collective::barrier) return;
  const int rank = comm.communicator->rank(), ranks = comm.communicator->ranks();
  checkType(call.type);
  if constexpr (isReduction(collective)) checkOperation(comm, call);
  if constexpr (isRooted(collective)) checkRoot(call.root, ranks);

  // On every rank alike, whichever buffers it uses, so that all ranks refuse the same call.
  constexpr bool sendsAll = shape.send.holds == Holds::all, receivesAll = shape.receive.holds == Holds::all;
  const std::size_t bytesOfAll = checkedBytes(names.count, call.count, call.type, sendsAll || receivesAll ? ranks : 1);

  const bool sends = shape.send.isUsedOn(rank, call.root), receives = shape.receive.isUsedOn(rank, call.root);
  if (sends) {
    checkBuffer(names.send, call.send, names.count, call.count);
  } else {
    call.send = nullptr;
  }
  if (receives) {
    checkBuffer(names.receive, call.receive, names.count, call.count);
  } else {
    call.receive = nullptr;
  }
  if (!sends || !receives || call.count == 0) return;
  if (call.send == call.receive && sendsAll == receivesAll) return;  // as most calls in place
  const std::size_t blockBytes = call.count * sizeOf(call.type);
  checkOverlap(names, {call.send, sendsAll ? bytesOfAll : blockBytes, sendsAll},
               {call.receive, receivesAll ? bytesOfAll : blockBytes, receivesAll}, blockBytes, rank);
}

using Check = void (*)(const taccComm&, Call&, const ArgumentNames&);
constexpr auto checks = []<std::size_t... c>(std::index_sequence<c...>) {
  return std::array<Check, sizeof...(c)>{checkAs<static_cast<Collective>(c)>...};
}
(std::make_index_sequence<collectiveCount + 1>());

}  // namespace

void checkPointer(const void* pointer, const char* name) {
  if (pointer == nullptr) fail(taccInvalidArgument, "{} is NULL", name);
}

void checkFloats(const void* numbers, const char* name) {
  if (address(numbers) % sizeof(float) != 0)
    fail(taccInvalidArgument, "{} {} is misaligned: its address must be a multiple of {}", name, numbers,
         sizeof(float));
}

void checkCall(const taccComm& comm, Call& call, const ArgumentNames& names) {
  checks[static_cast<std::size_t>(call.collective)](comm, call, names);
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
  checkBuffer(name, operation.buffer, "count", operation.count);
}

}  // namespace tacc

#include "api/check.hpp"

#include <cstdint>
#include <string>
#include <tuple>

#include "core/error.hpp"
#include "core/types.hpp"

namespace tacc {

namespace {

/// Bytes that a process can have at most: Linux gives it addresses of 47 bits on x86-64 and 48 on Arm, unless it asks
/// for more by an address of its own. A count that says more would be cut into chunks until no memory is left for them.
constexpr std::size_t addressSpace = std::size_t{1} << 48;

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

std::uintptr_t address(const void* pointer) noexcept { return reinterpret_cast<std::uintptr_t>(pointer); }

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
  if (send.buffer == receive.buffer && send.holdsAll == receive.holdsAll) return;  // as most calls in place
  const std::uintptr_t sendBegin = address(send.buffer);
  const std::uintptr_t receiveBegin = address(receive.buffer);
  if (sendBegin + send.bytes <= receiveBegin || receiveBegin + receive.bytes <= sendBegin) return;
  const std::size_t offset = blockBytes * static_cast<std::size_t>(rank);
  const std::uintptr_t sendAt = sendBegin + (send.holdsAll && !receive.holdsAll ? offset : 0);
  const std::uintptr_t receiveAt = receiveBegin + (receive.holdsAll && !send.holdsAll ? offset : 0);
  if (sendAt != receiveAt) [[unlikely]]
    failOnOverlap(names, send, receive, rank);
}

/// An operator of the program becomes what it stands for.
void checkOperation(const taccComm& comm, Call& call) {
  if (call.op < 0 || call.op >= taccNumOps) [[unlikely]]
    return comm.operators.apply(call.op, call);
  if (!hasOperation(call.type, call.op)) [[unlikely]]
    failOnOperation(call.type, call.op);
  if (call.op == taccAvg && isPrefix(call.collective)) [[unlikely]]
    failOnAverage(call.collective);
}

/// The blocks of one buffer, with a count for each rank or a single one.
void fillRow(BlockRow& row, std::size_t blocks, const std::size_t* counts, const std::size_t* displacements,
             std::size_t single, const char* name, taccDataType_t type) {
  const bool isEach = counts != nullptr;
  row.counts.resize(blocks);
  row.offsets.resize(blocks);
  std::size_t behind = 0;
  for (std::size_t b = 0; b < blocks; ++b) {
    row.counts[b] = isEach ? counts[b] : single;
    row.offsets[b] = displacements != nullptr ? displacements[b] : behind;
    std::size_t bytes = 0;
    if (__builtin_add_overflow(row.offsets[b], row.counts[b], &behind) ||
        __builtin_mul_overflow(behind, sizeOf(type), &bytes) || bytes > addressSpace)
      fail(taccInvalidArgument, "{} of rank {} ({}, from element {} on) is beyond what an address space holds", name, b,
           row.counts[b], row.offsets[b]);
  }
}

/// Of two blocks in memory.
bool overlap(std::uintptr_t a, std::size_t aBytes, std::uintptr_t b, std::size_t bBytes) noexcept {
  return aBytes != 0 && bBytes != 0 && a < b + bBytes && b < a + aBytes;
}

/// What one buffer has in the other: nothing, or exactly the block that is in place.
void checkUnequalOverlap(const Call& call, const UnequalBlocks& blocks, int rank) {
  const std::size_t size = sizeOf(call.type);
  if (!overlap(address(call.send), blocks.send.extent() * size, address(call.receive), blocks.receive.extent() * size))
    return;
  const auto isSameRow = blocks.send.counts == blocks.receive.counts && blocks.send.offsets == blocks.receive.offsets;
  if (call.collective == Collective::allToAll && call.send == call.receive && isSameRow) return;
  for (std::size_t s = 0; s < blocks.send.counts.size(); ++s)
    for (std::size_t r = 0; r < blocks.receive.counts.size(); ++r) {
      const std::uintptr_t from = address(call.send) + blocks.send.offsets[s] * size;
      const std::uintptr_t to = address(call.receive) + blocks.receive.offsets[r] * size;
      const bool isOwn = call.collective != Collective::allToAll &&
                         (blocks.send.counts.size() == 1 || s == static_cast<std::size_t>(rank)) &&
                         (blocks.receive.counts.size() == 1 || r == static_cast<std::size_t>(rank));
      if ((isOwn && from == to) || !overlap(from, blocks.send.counts[s] * size, to, blocks.receive.counts[r] * size))
        continue;
      fail(
          taccInvalidArgument,
          "block {} of sendbuff ({} elements at {}) and block {} of recvbuff ({} elements at {}) overlap; buffers must "
          "be apart, or {}",
          s, blocks.send.counts[s], reinterpret_cast<const void*>(from), r, blocks.receive.counts[r],
          reinterpret_cast<const void*>(to),
          call.collective == Collective::allToAll ? "the same, with equal counts and displacements"
                                                  : fmt::format("this rank's block ({}) exactly in place", rank));
    }
}

}  // namespace

void checkUnequal(const taccComm& comm, Call& call, const UnequalArguments& arguments, UnequalBlocks& blocks) {
  const CollectiveShape& shape = shapeOf(call.collective);
  const int rank = comm.communicator->rank(), ranks = comm.communicator->ranks();
  checkType(call.type);
  if (isReduction(call.collective)) checkOperation(comm, call);
  if (isRooted(call.collective) && (call.root < 0 || call.root >= ranks)) failOnRank("root", call.root, ranks);
  const auto fill = [&](BlockRow& row, const BufferShape& buffer, const std::size_t* counts,
                        const std::size_t* displacements, std::size_t single, const char* name) {
    const bool holdsAll = buffer.holds == Holds::all;
    const auto number = static_cast<std::size_t>(buffer.blocksOn(rank, ranks, call.root));
    if (number > 0 && holdsAll && counts == nullptr) fail(taccInvalidArgument, "{} is NULL", name);
    fillRow(row, number, holdsAll ? counts : nullptr, holdsAll ? displacements : nullptr, single, name, call.type);
  };
  fill(blocks.send, shape.send, arguments.sendCounts, arguments.sendDisplacements, arguments.sendCount,
       call.collective == Collective::reduceScatter ? "recvcounts" : "sendcounts");
  fill(blocks.receive, shape.receive, arguments.receiveCounts, arguments.receiveDisplacements, arguments.receiveCount,
       "recvcounts");
  // Of an allgather and a reduce-scatter the one count is that of this rank among all.
  const auto own = static_cast<std::size_t>(rank);
  if (call.collective == Collective::allGather) blocks.send.counts[0] = blocks.receive.counts[own];
  if (call.collective == Collective::reduceScatter) blocks.receive.counts[0] = blocks.send.counts[own];
  for (const auto& [row, buffer, name] :
       {std::tuple(&blocks.send, call.send, "sendbuff"),
        std::tuple(&blocks.receive, static_cast<const void*>(call.receive), "recvbuff")})
    if (row->extent() != 0 && buffer == nullptr)
      fail(taccInvalidArgument, "{} is NULL, which is allowed only when all its counts are 0", name);
  checkUnequalOverlap(call, blocks, rank);
  call.blocks = &blocks;
}

void checkType(taccDataType_t type) {
  if (!isValid(type)) [[unlikely]]
    failOnType(type);
}

void checkPointer(const void* pointer, const char* name) {
  if (pointer == nullptr) fail(taccInvalidArgument, "{} is NULL", name);
}

void checkFloats(const void* numbers, const char* name) {
  if (address(numbers) % sizeof(float) != 0)
    fail(taccInvalidArgument, "{} {} is misaligned: its address must be a multiple of {}", name, numbers,
         sizeof(float));
}

void checkCall(const taccComm& comm, Call& call, const ArgumentNames& names) {
  if (call.collective == Collective::barrier) return;
  const CollectiveShape& shape = shapeOf(call.collective);
  const int rank = comm.communicator->rank();
  const int ranks = comm.communicator->ranks();
  checkType(call.type);
  if (isReduction(call.collective)) checkOperation(comm, call);
  if (isRooted(call.collective) && (call.root < 0 || call.root >= ranks)) [[unlikely]]
    failOnRank("root", call.root, ranks);

  // On every rank alike, whichever buffers it uses, so that all ranks refuse the same call.
  const bool sendsAll = shape.send.holds == Holds::all, receivesAll = shape.receive.holds == Holds::all;
  checkedBytes(names.count, call.count, call.type, sendsAll || receivesAll ? ranks : 1);
  const std::size_t blockBytes = call.count * sizeOf(call.type);

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
  if (sends && receives && call.count != 0) {
    const auto all = static_cast<std::size_t>(ranks);
    checkOverlap(names, {call.send, blockBytes * (sendsAll ? all : 1), sendsAll},
                 {call.receive, blockBytes * (receivesAll ? all : 1), receivesAll}, blockBytes, rank);
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
  checkBuffer(name, operation.buffer, "count", operation.count);
}

}  // namespace tacc

#include "api/unequal_check.hpp"

#include <atomic>
#include <cstdint>

#include "api/check.hpp"
#include "api/handles.hpp"
#include "core/error.hpp"
#include "core/types.hpp"

namespace tacc {

namespace {

/// What the program gives of one buffer.
struct GivenRow {
  bool isOfAll;  // a count for each rank
  const std::size_t* counts;
  const std::size_t* displacements;
  std::size_t single;  // in the place of counts
  bool isDerived;      // nothing is given: the single count is that of this rank in the other buffer
};

GivenRow givenOf(const BufferShape& buffer, bool isDerived, const std::size_t* counts, const std::size_t* displacements,
                 std::size_t single) noexcept {
  if (buffer.holds == Holds::all) return {true, counts, displacements, 0, false};
  return {false, nullptr, nullptr, single, isDerived};
}

/// Whether these are the blocks of the row, which has as many.
bool isRow(const GivenRow& given, const BlockRow& row) noexcept {
  const std::size_t blocks = row.counts.size();
  if (blocks == 0) return true;
  if (!given.isOfAll) return given.isDerived || row.counts[0] == given.single;
  if (given.counts == nullptr) return false;
  std::size_t behind = 0;
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t begin = given.displacements != nullptr ? given.displacements[b] : behind;
    if (row.counts[b] != given.counts[b] || row.offsets[b] != begin) return false;
    behind = begin + row.counts[b];
  }
  return true;
}

void fillRow(BlockRow& row, std::size_t blocks, const GivenRow& given, const char* name, taccDataType_t type) {
  row.counts.resize(blocks);
  row.offsets.resize(blocks);
  std::size_t behind = 0;
  for (std::size_t b = 0; b < blocks; ++b) {
    row.counts[b] = given.isOfAll ? given.counts[b] : given.single;
    row.offsets[b] = given.displacements != nullptr ? given.displacements[b] : behind;
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

/// What one buffer has in the other, which it overlaps: nothing, or exactly the block that is in place.
void checkUnequalOverlap(const Call& call, const UnequalBlocks& blocks, int rank) {
  const std::size_t size = sizeOf(call.type);
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

/// Of all blocks that any communicator of this process has had, so that equal numbers mean equal blocks.
std::uint64_t nextVersion() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void fillBlocks(const taccComm& comm, const Call& call, const GivenRow& sent, const GivenRow& received,
                CheckedBlocks& checked) {
  const CollectiveShape& shape = shapeOf(call.collective);
  const int rank = comm.communicator->rank(), ranks = comm.communicator->ranks();
  UnequalBlocks& blocks = checked.blocks;
  blocks.version = 0;  // until all of it is well
  const auto fill = [&](BlockRow& row, const BufferShape& buffer, const GivenRow& given, const char* name) {
    const auto number = static_cast<std::size_t>(buffer.blocksOn(rank, ranks, call.root));
    if (number > 0 && given.isOfAll && given.counts == nullptr) fail(taccInvalidArgument, "{} is NULL", name);
    fillRow(row, number, given, name, call.type);
  };
  fill(blocks.send, shape.send, sent, call.collective == Collective::reduceScatter ? "recvcounts" : "sendcounts");
  fill(blocks.receive, shape.receive, received, "recvcounts");
  const auto own = static_cast<std::size_t>(rank);
  if (sent.isDerived) blocks.send.counts[0] = blocks.receive.counts[own];
  if (received.isDerived) blocks.receive.counts[0] = blocks.send.counts[own];
  checked.collective = call.collective;
  checked.type = call.type;
  checked.root = call.root;
  checked.rank = rank;
  checked.ranks = ranks;
  checked.sendBytes = blocks.send.extent() * sizeOf(call.type);
  checked.receiveBytes = blocks.receive.extent() * sizeOf(call.type);
  blocks.version = nextVersion();
}

/// Whether `checked` has as many blocks as the call, of the same meaning.
bool isOf(const taccComm& comm, const Call& call, const CheckedBlocks& checked) noexcept {
  return checked.blocks.version != 0 && checked.collective == call.collective && checked.type == call.type &&
         checked.root == call.root && checked.rank == comm.communicator->rank() &&
         checked.ranks == comm.communicator->ranks();
}

}  // namespace

void checkUnequal(const taccComm& comm, Call& call, const UnequalArguments& arguments, CheckedBlocks& checked) {
  const CollectiveShape& shape = shapeOf(call.collective);
  checkType(call.type);
  if (isReduction(call.collective)) checkOperation(comm, call);
  if (isRooted(call.collective)) checkRoot(call.root, comm.communicator->ranks());
  // Of an allgather and a reduce-scatter the one count is that of this rank among all.
  const GivenRow sent = givenOf(shape.send, call.collective == Collective::allGather, arguments.sendCounts,
                                arguments.sendDisplacements, arguments.sendCount);
  const GivenRow received = givenOf(shape.receive, call.collective == Collective::reduceScatter,
                                    arguments.receiveCounts, arguments.receiveDisplacements, arguments.receiveCount);
  if (!isOf(comm, call, checked) || !isRow(sent, checked.blocks.send) || !isRow(received, checked.blocks.receive))
    fillBlocks(comm, call, sent, received, checked);
  if (checked.sendBytes != 0 && call.send == nullptr)
    fail(taccInvalidArgument, "sendbuff is NULL, which is allowed only when all its counts are 0");
  if (checked.receiveBytes != 0 && call.receive == nullptr)
    fail(taccInvalidArgument, "recvbuff is NULL, which is allowed only when all its counts are 0");
  if (overlap(address(call.send), checked.sendBytes, address(call.receive), checked.receiveBytes)) [[unlikely]]
    checkUnequalOverlap(call, checked.blocks, comm.communicator->rank());
  call.blocks = &checked.blocks;
}

}  // namespace tacc

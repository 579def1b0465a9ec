// Runs a program: walks the ticks of its schedule, waits on the other ranks' clocks, moves and reduces the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compute/reduce/reduce.hpp"
#include "core/collective.hpp"
#include "core/unequal_blocks.hpp"
#include "engine/partition.hpp"
#include "engine/shm/copy_targets.hpp"
#include "engine/shm/program.hpp"
#include "engine/shm/remote_memory.hpp"
#include "engine/shm/shared_copies.hpp"
#include "transports/shm/node_segment.hpp"
#include "transports/shm/page_pipes.hpp"
#include "transports/shm/waiter.hpp"

namespace tacc {

/// The buffers of one call as this rank sees them.
struct CallBuffers {
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
  std::size_t sendBytes = 0, receiveBytes = 0;
  std::vector<const std::byte*> remoteSend;  // per rank; null where not reachable. For Access::cma: addresses there
  std::vector<std::byte*> remoteReceive;
};

/// What to do with the elements.
struct ElementWork {
  Collective collective = Collective::allReduce;
  std::size_t count = 0;  // as in the call
  std::size_t elementBytes = 1;
  ReduceKernel reduce;
  int divisor = 1;
  StoreWays nonTemporal{};
  /// Null: all blocks are of `count` elements. Else those of every rank, and `count` is the longest one's. Only for
  /// programs of stacks whose plans name their blocks (block_names.hpp).
  const std::vector<UnequalBlocks>* blocks = nullptr;
};

class Executor {
 public:
  /// `processes[r]`: rank r's pid, for reads through the kernel. `pipes`: this rank's.
  Executor(const NodeSegment& segment, int rank, Waiter& waiter, std::vector<int> processes, PagePipes& pipes);

  /// Runs to the end. Every rank calls it with the program and schedule of the same plan and call, after all ranks have
  /// entered the call, or where `following` calls of the same program, schedule and count went right before this one
  /// since they last did so: the slots of all of them are one ring then.
  void run(const Program& program, const Schedule& schedule, const CallBuffers& buffers, const ElementWork& work,
           std::uint32_t following = 0);
  /// After a call that has failed, as SharedCopies::abandon().
  std::string abandonCopies() {
    pipes_.close();
    return copies_.abandon();
  }

 private:
  struct Context;
  void runRound(const Context& context, const Round& round, std::uint32_t chunk);
  /// The value of a rank's clock once it has been through `round` of the chunk that had `chunk`'s slots before; of this
  /// call or of one before it.
  std::uint32_t whenRead(const Schedule& schedule, std::uint32_t chunk, int round) const noexcept;
  void runOperation(const Context& context, const Operation& operation, std::uint32_t chunk);
  /// Calls `visit(elements)` for each piece of memory of an operation, of which sources_ and destinations_ are the
  /// addresses meanwhile.
  template <class Visit>
  void forPieces(const Context& context, const Operation& operation, std::uint32_t chunk, const Visit& visit);
  /// Begins a copy that its source's owner makes a part of, or makes it where it is short.
  void openCopy(const Context& context, const Operation& operation, std::uint32_t chunk);
  /// Takes part in the copies of who reads this rank's memory, while they last.
  void helpReaders(const Context& context);
  void combine(const Context& context, const Operation& operation, std::size_t elements);
  /// Of the one source to all destinations.
  void copy(const Context& context, const Operation& operation, std::size_t bytes);
  void combineThroughKernel(const Context& context, const Operation& operation, std::size_t elements);
  /// Reads memory of another rank, which is at `from` there, or what is next in its pipe.
  void fetch(const Place& place, void* to, const void* from, std::size_t bytes);

  NodeSegment segment_;
  int rank_;
  Waiter& waiter_;
  RemoteMemory remote_;
  PagePipes& pipes_;
  SharedCopies copies_;
  std::uint32_t base_;           // clock of all ranks before this call
  std::uint64_t ringBegin_ = 0;  // chunks of the calls before it that use the same ring of slots
  std::vector<std::byte> scratch_;
  std::vector<std::byte> bounce_;
  std::vector<const void*> sources_;
  std::vector<void*> destinations_;
  std::vector<const void*> addresses_;  // of whole sources, of which sources_ are tiles
  std::vector<void*> targets_;
  CopyTargets copied_;
};

}  // namespace tacc

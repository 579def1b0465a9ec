// Which memory a call works on, at every rank: posted in the call lines, resolved to addresses of this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/shm/call_exchange.hpp"
#include "engine/shm/executor.hpp"
#include "engine/shm/program.hpp"
#include "transports/shm/hand_round.hpp"
#include "transports/shm/library_memory.hpp"
#include "transports/shm/memory_fence.hpp"
#include "transports/shm/page_pipes.hpp"

namespace tacc {

/// One rank's user buffers of a call.
struct UserBuffers {
  const std::byte* send = nullptr;  // null: the collective does not use it on this rank
  std::size_t sendBytes = 0;
  std::byte* receive = nullptr;
  std::size_t receiveBytes = 0;
  bool inPlace = false;
};

/// How ranks access each other's memory, as found when the communicator was formed.
struct MemoryAccess {
  bool sameProcess = false;  // threads: any address is good everywhere
  bool kernelReads = false;  // process_vm_readv works between all ranks
};

class BufferExchange {
 public:
  /// `handRound`: null among threads.
  BufferExchange(int rank, int ranks, CallExchange& exchange, Waiter& waiter, HandRound* handRound,
                 MemoryAccess access);

  /// What all ranks know after the exchange; equal on all of them.
  struct Agreed {
    LoweringFacts facts;
    float slowest;          // the largest `seconds` of any rank
    bool isAhead = false;   // one rank went on before the others came: all is staged, and `slowest` means nothing
    bool hasPipes = false;  // all have opened the pipes of all
  };
  /// Of a call in which all data come from `rank`: it may go on before it has seen the others, which learn it from its
  /// line. -1: nobody may.
  struct Ahead {
    int rank = -1;
    bool isWanted = false;  // by this rank, which is that one, if its memory is private
  };
  struct Pipes {
    PagePipes* own = nullptr;  // null: they are not wanted
    bool areChecked = false;   // it is looked whether they are still open
  };
  /// Posts this rank's buffers in the opened call, waits for all ranks' lines, and fills `buffers` with addresses that
  /// are good in this process. `buffersOf`: how large those of a rank are in this call. `seconds`: how long this rank
  /// took for its last call of this kind, for the others to know. The pipes go a step on where all read each other's
  /// memory through the kernel.
  Agreed run(const UserBuffers& mine, const std::function<UserBuffers(int rank)>& buffersOf, float seconds,
             CallBuffers& buffers, const Ahead& ahead, const Pipes& pipes);
  /// The call has succeeded: peers have done all that they do to its buffers.
  void finish() noexcept {
    use_.end();
    exposed_ = nullptr;
  }
  /// The call has failed, and all ranks have been told or will be: when this returns no peer writes into its buffers
  /// any more. Empty, or what is still open to them; see fenceLibraryMemory.
  std::string fence();

  /// Among threads and for segments that all ranks have: what a peer needs to read `pointer` directly.
  struct Reference {
    std::uint64_t segment;  // 0: `offset` is an address of this process
    std::uint64_t offset;
  };
  /// Nothing if the peers cannot access it directly (yet).
  bool refer(const void* pointer, std::size_t bytes, Reference& reference) const;
  /// The address here of the `bytes` that `rank` refers to. Throws taccInternalError where it has not given that number
  /// there: what stands in shared memory is not believed.
  std::byte* resolve(int rank, const Reference& reference, std::size_t bytes) const;

 private:
  struct Descriptor;
  /// `segment`: that holds the memory, if one does.
  void describe(const void* pointer, std::size_t bytes, const std::optional<LibrarySegment>& segment,
                Reference& reference, std::uint8_t& access, bool& fresh) const;
  /// Finds the segments of the call's buffers, and if there is one of the output, makes it known that peers may write
  /// it from now on.
  void findSegments(const UserBuffers& mine);
  /// Shares the memory of the ranks that givers_ names.
  void shareFresh();

  int rank_;
  int ranks_;
  CallExchange& exchange_;
  Waiter& waiter_;
  HandRound* handRound_;
  MemoryAccess access_;
  MappedSegments mapped_;
  std::vector<bool> givers_;                      // which ranks have memory that not all ranks have mapped
  std::unordered_set<std::uint64_t> announced_;   // own segments that all ranks have mapped
  std::optional<LibrarySegment> input_, output_;  // of the call that goes on
  std::byte* exposed_ = nullptr;                  // its output, if peers may write there
  std::size_t exposedBytes_ = 0;
  OutputUse use_;  // of the same
};

}  // namespace tacc

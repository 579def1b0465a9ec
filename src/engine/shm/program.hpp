// What a plan becomes for one rank of one node: reads and writes of memory, and waits on the other ranks' clocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/plan.hpp"

namespace tacc {

/// How a rank of the node gets at another rank's user buffer; the same for all ranks, so weakest first.
enum class Access : std::uint8_t {
  staged,  // not at all: what is sent from it is copied through a slot
  cma,     // process_vm_readv: the reader pays a system call, nobody copies into a slot
  mapped,  // loads (and for outputs stores): library memory, or threads of one process
};

/// The facts that a program depends on besides the plan. All ranks use equal ones.
struct LoweringFacts {
  Access input = Access::staged;
  Access output = Access::staged;
  bool inPlace = false;  // on any rank
  bool readsTwice =
      false;           // what a rank stages and keeps is in its cache when it is read again; each rank's own matter
  bool pipes = false;  // what is read through the kernel comes through pipes, where the plan's order allows it
  friend bool operator==(const LoweringFacts&, const LoweringFacts&) = default;
};

/// A piece of memory of an operation.
struct Place {
  enum class Kind : std::uint8_t {
    input,         // own
    output,        // own
    scratch,       // own
    slot,          // of `rank` (also own): staging slot number `index`
    remoteInput,   // of `rank`
    remoteOutput,  // of `rank`
    pipe,          // to or from `rank` (page_pipes.hpp); what is read is what was written first
  };
  Kind kind;
  std::int32_t rank;   // whose
  std::int32_t index;  // first block, or first slot; of no meaning for a pipe
};

struct Operation {
  std::int32_t block;  // as in Step
  std::int32_t blockCount;
  bool completes;           // the result holds all ranks' contributions: an average is divided here
  bool readsThroughKernel;  // some source is remote and not directly reachable, or a pipe
  std::vector<Place> sources;
  std::vector<Place> destinations;
  /// The owner of the source, which only waits meanwhile, makes a part of the copy (shared_copies.hpp).
  bool isShared = false;
};

/// Another rank's round that must be over.
struct Dependency {
  std::int32_t rank;
  std::int32_t round;
};

struct Round {
  std::vector<Dependency> before;       // of the same chunk
  std::vector<Dependency> slotReaders;  // of the chunk that had this chunk's slots before
  std::vector<Operation> operations;
};

struct Program {
  std::string algorithm;
  Partition partition = Partition::split;
  int blocks = 1;
  int scratchBlocks = 0;
  int slots = 0;           // staging slots of the rank that needs most, one block each; the same on all ranks
  int slotReach = 0;       // the most rounds between a slot's writing and its last reading, on any rank
  bool roundsOnce = true;  // every reduction takes all contributions at once: 16-bit types are rounded once
  std::vector<Round> rounds;
  std::vector<Dependency> lastReaders;  // who reads my buffers by reference: to wait for before returning
  bool helpsReaders = false;            // this rank has a part in their copies
};

/// Lowers `plan` for `rank`. Every message becomes one of
///   by reference  the receiver reads the sender's input or output; the sender does nothing, or with facts.pipes gives
///                 that memory to the receiver's pipe
///   put           the sender writes into the receiver's output; the receiver only waits
///   staged        the sender copies into its slot, all receivers read it there
/// The first two only where `facts` allow it and no write can come too early, which is decided exactly, from what each
/// rank knows of the others at each round.
Program lower(const Plan& plan, int rank, const LoweringFacts& facts);

}  // namespace tacc

// Proves a plan: see verify().
#pragma once

#include <cstdint>
#include <string>

#include "algorithms/plan.hpp"

namespace tacc {

/// What the proof found out besides "right".
struct Certificate {
  /// Digest of the order in which every output block's contributions are combined; 0 where nothing is reduced. Plans
  /// with equal digests give equal bits. If all blocks are combined in one order, it depends on that order only, not on
  /// the number of blocks.
  std::uint64_t reductionOrder = 0;
  /// The same of the order alone, for plans that round as they go: types that are not rounded get equal bits by plans
  /// with equal ones. Of scans it does not depend on the number of blocks either.
  std::uint64_t reductionSequence = 0;
  std::uint64_t messages = 0;       // over all ranks
  std::uint64_t maxBlocksSent = 0;  // by one rank, counted once per destination peer
  std::uint64_t maxBlocksReceived = 0;
  /// Messages on the longest chain in which each waits for the one before: how often the latency is paid.
  int longestChain = 0;
  /// Messages from memory that their sender may write again before the receiver surely has them: no chain of steps and
  /// messages leads from the receipt to that write. Who passes messages by reference must copy these, or wait.
  std::uint64_t overwrittenMessages = 0;
};

/// Proves, on all ranks together:
///  - the form: block indices, peers, rounds and partitions in range and in order; input is never written;
///  - sends and receives match in number, order and blocks, and every message is received in a later round than it is
///    sent. So, going through the rounds in order, every step finds its messages sent: no deadlock, as long as a send
///    that waits for its receiver does not hold up its sender's later rounds;
///  - no two steps of one rank and round touch the same block with a write among them. Steps of different rounds are
///    ordered, and a message is what its step computed when it ran, so ranks cannot disturb each other's memory;
///  - every output block holds exactly the contributions that the collective asks for, each once, and nothing is read
///    before it is written;
///  - a step says that it completes a sum exactly if it combines the last contributions to it;
///  - in a scan the contributions of lower ranks stand before those of higher ones;
///  - in an allreduce every rank's copy of a block is combined in the same order of operands: all get the same bits.
/// `inPlace` proves it with the collective's in-place aliasing (inPlaceOutputOf).
/// Cost: time proportional to steps and messages, times p / 64 in reductions.
/// Throws Error (taccInvalidArgument) with a sentence that names rank, round, step and block.
Certificate verify(const Plan& plan, bool inPlace = false);

/// The same of a plan whose steps do not say yet which of them complete a sum, such as a file's: it is found, and set.
Certificate verifyAndComplete(Plan& plan);

}  // namespace tacc

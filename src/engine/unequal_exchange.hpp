// What the ranks of a host tell each other of a call whose blocks have unequal lengths.
//
// Every rank posts a table of the blocks that it gives and those that it expects, and behind it its data, if it is
// short. So all ranks know all lengths before anything moves, find the same differences, and short calls are over with
// that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "algorithms/plan.hpp"
#include "compute/reduce/reduce.hpp"
#include "core/unequal_blocks.hpp"
#include "engine/shm/call_exchange.hpp"

namespace tacc {

/// How many blocks a rank's buffers have in such a call; 0: not used there.
struct BlockNumbers {
  int send, receive;
};
BlockNumbers blocksOn(Collective collective, int rank, int ranks, int root) noexcept;

/// `given(from, to)` and `expected(from, to)` for all pairs of which both are there: throws taccInvalidUsage, naming
/// the first pair that differs. `nameOf`: of a rank, for messages.
void compareBlocks(Collective collective, int root, const std::vector<UnequalBlocks>& ranks,
                   const std::function<int(int)>& nameOf);

class UnequalExchange {
 public:
  UnequalExchange(int rank, int ranks, CallExchange& exchange, std::size_t eagerBytes)
      : rank_(rank),
        ranks_(ranks),
        exchange_(exchange),
        eagerBytes_(eagerBytes),
        all_(static_cast<std::size_t>(ranks)),
        data_(static_cast<std::size_t>(ranks)) {}

  /// Opens the call, and learns the blocks of all ranks. `send`: the data of `mine.send`.
  void run(std::uint64_t signature, Collective collective, int root, const UnequalBlocks& mine, const std::byte* send,
           std::size_t elementBytes);
  /// The blocks of all ranks, until the next run.
  const std::vector<UnequalBlocks>& blocks() const noexcept { return all_; }

  /// Whether they are those of the last run, of a call of the same kind.
  bool isRepeated() const noexcept { return isRepeated_; }

  /// Whether every rank's data came with its table. Then take() completes the call, until the next one opens.
  bool hasData() const noexcept { return hasData_; }
  /// Writes the blocks of `receive` that this rank expects, of a reduction their sum over all ranks.
  void take(Collective collective, int root, std::byte* receive, ReduceKernel reduce, int divisor);

 private:
  /// Block `index` of what `rank` sends.
  const std::byte* blockFrom(int rank, int index) const noexcept;
  std::size_t wordsOf(Collective collective) const noexcept;
  void fill(std::vector<std::uint64_t>& table, const UnequalBlocks& mine, bool hasData) const;
  void read(const std::uint64_t* table, BlockNumbers numbers, UnequalBlocks& blocks) const;
  /// Of a call that is open: whether all ranks' lines begin as in the last call, which was of the same kind. Then the
  /// data are where they were in them.
  bool isAsBefore(std::uint64_t signature) const noexcept;
  /// Keeps how the lines begin, for the next call.
  void keepLines(std::uint64_t signature, std::size_t headerBytes);

  int rank_;
  int ranks_;
  CallExchange& exchange_;
  std::size_t eagerBytes_;  // of a post
  std::vector<UnequalBlocks> all_;
  std::vector<const std::byte*> data_;  // of every rank, where it came with the table
  std::vector<std::uint64_t> table_, tables_;
  std::vector<const void*> sources_;
  bool hasData_ = false;
  std::size_t tableBytes_ = 0, elementBytes_ = 1;
  // Of the last call, if it was short on all ranks: what it was, and how the lines of all ranks began.
  std::uint64_t keptSignature_ = 0;
  std::size_t keptBytes_ = 0;  // of each beginning; 0: it was not short
  std::vector<std::byte> kept_;
  bool isRepeated_ = false;
};

}  // namespace tacc

// What the ranks of a host tell each other of a call whose blocks have unequal lengths.
//
// Every rank posts a table of the blocks that it gives and those that it expects, and behind it its data for others, if
// it is short. So all ranks know all lengths before anything moves, find the same differences, and short calls are over
// with that.
//
// Who has nothing to wait for does not wait: ranks of a gather whose block is short, and the root of a scatter whose
// blocks are. They leave when they have posted, as nobody needs them any more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "algorithms/plan.hpp"
#include "compute/reduce/reduce.hpp"
#include "core/index.hpp"
#include "core/unequal_blocks.hpp"
#include "engine/shm/call_exchange.hpp"
#include "engine/short_table.hpp"

namespace tacc {

class UnequalExchange {
 public:
  /// `nameOf`: of a rank, for messages.
  UnequalExchange(int rank, int ranks, CallExchange& exchange, std::size_t eagerBytes, std::function<int(int)> nameOf)
      : rank_(rank),
        ranks_(ranks),
        exchange_(exchange),
        eagerBytes_(eagerBytes),
        nameOf_(std::move(nameOf)),
        all_(static_cast<std::size_t>(ranks)),
        data_(static_cast<std::size_t>(ranks)),
        kept_(static_cast<std::size_t>(ranks) * linePayload) {}

  /// A call as this rank makes it.
  struct OwnCall {
    Collective collective;
    int root;
    const UnequalBlocks* mine;
    const std::byte* send;
    std::byte* receive;
    std::size_t elementBytes;
  };
  /// Opens the call and compares the blocks of all ranks, of which it has learnt them. True where the call is over with
  /// that, which it may be, `mayLeave`, before all ranks were met: then nothing was learnt.
  bool run(std::uint64_t signature, const OwnCall& call, bool mayLeave);
  /// The blocks of all ranks, until the next run.
  const std::vector<UnequalBlocks>& blocks() const noexcept { return all_; }

  /// Whether they are those of the last run, of a call of the same kind.
  bool isRepeated() const noexcept { return isRepeated_; }

  /// Whether every rank's data came with its table. Then take() completes the call, until the next one opens.
  bool hasData() const noexcept { return hasData_; }
  /// Whether the data of `rank` did.
  bool hasDataOf(int rank) const noexcept { return tables_[at(rank) * stride_] != 0; }
  /// Of a gather without all data: whether ranks that have given theirs have left.
  bool haveSomeLeft() const noexcept { return haveSomeLeft_; }
  /// Writes the blocks that this rank expects and whose data has come, of a reduction their sum over all ranks.
  void take(const OwnCall& call, ReduceKernel reduce, int divisor);

 private:
  /// This rank's table, and how it is posted.
  struct Composed {
    std::uint64_t signature = 0, version = 0;  // of what call, with which blocks
    std::vector<std::uint64_t> table;
    ShortTable::Place place = ShortTable::Place::slot;
    std::array<std::byte, linePayload> line{};  // how the line begins, where that has the table
    std::size_t postBytes = 0;                  // as CallExchange::begin() wants them
    bool givesData = false;                     // to others
    bool isWithData = false;
  };

  /// Block `index` of what `rank` posts.
  const std::byte* blockFrom(Collective collective, int rank, int index) const noexcept;
  /// Of the table of `rank`.
  std::size_t wordsOf(Collective collective, int rank, int root) const noexcept;
  PostedTable postedBy(int rank, std::size_t words) const noexcept {
    return {words, exchange_.payloadOf(rank, linePayload), exchange_.payloadOf(rank, eagerBytes_)};
  }
  /// Makes this rank's table, and room for all. Nothing to do where it is that of the last call.
  void compose(std::uint64_t signature, const OwnCall& call);
  /// Posts it, from byte `begin` on, and this rank's data, if they are with it.
  void post(std::uint64_t signature, const OwnCall& call, std::size_t begin);
  /// Where this rank need not meet all others, or was their root: whether the call is over.
  bool endsAlone(const OwnCall& call);
  /// At the root of a gather, when all have posted: whether all data came.
  bool takeGathered(const OwnCall& call) const;
  void takeScattered(const OwnCall& call, const PostedTable& table) const;
  /// What this rank gives itself: block `index` of its input, to block `to` of its result.
  void copyOwn(const OwnCall& call, std::size_t index, std::size_t to) const;
  void read(const OwnCall& call, int rank, std::size_t begin);
  /// Of a call that is open: whether all ranks' lines begin as in the last call, which was of the same kind. Then the
  /// data are where they were in them.
  bool isAsBefore();
  /// Keeps how the lines begin, for the next call.
  void keepLines(Collective collective);

  int rank_;
  int ranks_;
  CallExchange& exchange_;
  std::size_t eagerBytes_;  // of a post
  std::function<int(int)> nameOf_;
  std::vector<UnequalBlocks> all_;
  std::vector<const std::byte*> data_;  // of every rank, where it came with the table
  std::vector<std::uint64_t> tables_;   // of every rank
  std::size_t stride_ = 0;              // words from one table to the next
  Composed mine_;
  std::vector<const void*> sources_;
  bool hasData_ = false, haveSomeLeft_ = false;
  std::size_t elementBytes_ = 1;
  // Of the call that mine_ is of, if it was made before and all tables were in lines: how the lines of all ranks began.
  std::size_t keptBytes_ = 0;  // of each beginning; 0: they were not
  std::vector<std::byte> kept_;
  bool areKeptInLines_ = false;  // with their data
  bool isRepeated_ = false;
};

}  // namespace tacc

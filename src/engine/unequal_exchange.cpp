#include "engine/unequal_exchange.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>

#include "core/error.hpp"
#include "core/index.hpp"
#include "engine/short_table.hpp"

namespace tacc {
namespace {

/// How many blocks a rank's buffers have in such a call; 0: not used there.
struct BlockNumbers {
  int send, receive;
};
BlockNumbers blocksOn(Collective collective, int rank, int ranks, int root) noexcept {
  const CollectiveShape& shape = shapeOf(collective);
  return {shape.send.blocksOn(rank, ranks, root), shape.receive.blocksOn(rank, ranks, root)};
}

/// A word whose first bytes in memory, fewer than it has, are all ones.
constexpr std::uint64_t firstBytes(std::size_t bytes) noexcept {
  constexpr std::uint64_t all = ~std::uint64_t{0};
  return std::endian::native == std::endian::little ? ~(all << 8 * bytes) : ~(all >> 8 * bytes);
}

/// Whether each block is for another rank, one of them for this one.
constexpr bool hasBlockForItself(Collective collective) noexcept {
  return collective == Collective::scatter || collective == Collective::allToAll;
}

/// Whether `rank` posts block `index` of its input: what it gives itself alone, it does not.
constexpr bool isPosted(Collective collective, int rank, int index) noexcept {
  return !hasBlockForItself(collective) || index != rank;
}

/// Bytes of the blocks.
std::size_t bytesOf(const BlockRow& row, std::size_t elementBytes) noexcept {
  return std::accumulate(row.counts.begin(), row.counts.end(), std::size_t{0}) * elementBytes;
}

/// Elements before block `end` of what `rank` posts, one block behind the other.
std::size_t postedElements(Collective collective, int rank, const BlockRow& row, int end) noexcept {
  std::size_t elements = 0;
  for (int b = 0; b < end; ++b)
    if (isPosted(collective, rank, b)) elements += row.counts[at(b)];
  return elements;
}
std::size_t postedElements(Collective collective, int rank, const BlockRow& row) noexcept {
  return postedElements(collective, rank, row, static_cast<int>(row.counts.size()));
}

/// Whether data comes with it, which is the first word, is found later.
void fill(std::span<std::uint64_t> table, const UnequalBlocks& mine) {
  auto next = std::ranges::copy(mine.send.counts, table.begin() + 1).out;
  next = std::ranges::copy(mine.send.offsets, next).out;
  std::ranges::copy(mine.receive.counts, next);
}

void unpack(const std::uint64_t* table, BlockNumbers numbers, UnequalBlocks& blocks) {
  const std::uint64_t* next = table + 1;
  const auto take = [&next](std::vector<std::size_t>& values, int count) {
    values.assign(next, next + count);
    next += count;
  };
  take(blocks.send.counts, numbers.send);
  take(blocks.send.offsets, numbers.send);
  take(blocks.receive.counts, numbers.receive);
  blocks.receive.offsets.assign(at(numbers.receive), 0);  // nobody else writes there
}

/// Whether two lines have the same first bytes, of `linePayload`: a few instructions where memcmp() is a call.
bool beginEqually(const std::byte* a, const std::byte* b, std::size_t bytes) noexcept {
  static_assert(linePayload % sizeof(std::uint64_t) == 0);
  constexpr std::uint64_t all = ~std::uint64_t{0};
  for (std::size_t begin = 0; begin < bytes; begin += sizeof(std::uint64_t)) {
    std::uint64_t ofA, ofB;
    std::memcpy(&ofA, a + begin, sizeof ofA);
    std::memcpy(&ofB, b + begin, sizeof ofB);
    const std::size_t left = bytes - begin;
    const std::uint64_t wanted = left >= sizeof ofA ? all : firstBytes(left);
    if (((ofA ^ ofB) & wanted) != 0) return false;
  }
  return true;
}

/// What `from`, whose blocks are `given`, gives `to`, which expects `expected`: throws taccInvalidUsage where it
/// differs. `nameOf`: of a rank, for messages.
void comparePair(Collective collective, const BlockRow& given, const BlockRow& expected, int from, int to,
                 const std::function<int(int)>& nameOf) {
  // A rank's only block is for all of them, or from all.
  const auto countOf = [](const BlockRow& row, int other) {
    return row.counts.size() == 1 ? row.counts[0] : row.counts[at(other)];
  };
  const std::size_t here = countOf(given, to), there = countOf(expected, from);
  if (here == there) return;
  const bool reduces = isReduction(collective);
  fail(taccInvalidUsage,
       "the counts of {}v differ: rank {} {} {} elements {} rank {}, which {} {}; what one rank gives another must "
       "be what that expects",
       tacc::nameOf(collective), nameOf(from), reduces ? "reduces" : "gives", here, reduces ? "for" : "to", nameOf(to),
       reduces ? "takes" : "expects", there);
}

/// The same of all ranks; names the first pair that differs.
void compareBlocks(Collective collective, int root, const std::vector<UnequalBlocks>& ranks,
                   const std::function<int(int)>& nameOf) {
  const bool hasOneTarget = collective == Collective::gather, hasOneSource = collective == Collective::scatter;
  const int count = static_cast<int>(ranks.size());
  for (int from = hasOneSource ? root : 0; from < (hasOneSource ? root + 1 : count); ++from)
    for (int to = hasOneTarget ? root : 0; to < (hasOneTarget ? root + 1 : count); ++to)
      comparePair(collective, ranks[at(from)].send, ranks[at(to)].receive, from, to, nameOf);
}

}  // namespace

std::size_t UnequalExchange::wordsOf(Collective collective, int rank, int root) const noexcept {
  const BlockNumbers numbers = blocksOn(collective, rank, ranks_, root);
  return 1 + 2 * at(numbers.send) + at(numbers.receive);
}

bool UnequalExchange::run(std::uint64_t signature, const OwnCall& call, bool mayLeave) {
  isRepeated_ = haveSomeLeft_ = false;
  compose(signature, call);
  const std::size_t longest = stride_ * sizeof(std::uint64_t);
  // A table that is longer than a post goes in several, without data.
  const bool mayEndAlone = mayLeave && isRooted(call.collective) && ranks_ > 1 && longest <= eagerBytes_;
  for (std::size_t begin = 0; begin < longest; begin += eagerBytes_) {
    post(signature, call, begin);
    if (mayEndAlone && endsAlone(call)) return true;
    exchange_.awaitAll();
    if (isAsBefore()) return false;
    for (int rank = 0; rank < ranks_; ++rank) read(call, rank, begin);
  }
  hasData_ = longest <= eagerBytes_;
  for (int rank = 0; rank < ranks_; ++rank) {
    hasData_ = hasData_ && hasDataOf(rank);
    haveSomeLeft_ =
        haveSomeLeft_ || (mayEndAlone && call.collective == Collective::gather && rank != call.root && hasDataOf(rank));
    unpack(tables_.data() + at(rank) * stride_, blocksOn(call.collective, rank, ranks_, call.root), all_[at(rank)]);
  }
  all_[at(rank_)] = *call.mine;
  keepLines(call.collective);
  compareBlocks(call.collective, call.root, all_, nameOf_);
  // What stands in shared memory is not believed. The root of a gather has data without posting it.
  for (int rank = 0; rank < ranks_; ++rank) {
    const bool hasPosted = rank != rank_ && (call.collective != Collective::gather || rank != call.root);
    if (hasPosted && hasDataOf(rank) &&
        postedElements(call.collective, rank, all_[at(rank)].send) > eagerBytes_ / elementBytes_)
      fail(taccInternalError, "rank {} posts more than the {} bytes that a post holds", nameOf_(rank), eagerBytes_);
  }
  return false;
}

void UnequalExchange::compose(std::uint64_t signature, const OwnCall& call) {
  using Place = ShortTable::Place;
  if (mine_.version != 0 && mine_.version == call.mine->version && mine_.signature == signature) return;
  mine_.version = 0;  // until all of it is there
  keptBytes_ = 0;     // what is kept is of another call
  // The root uses most words.
  stride_ = wordsOf(call.collective, isRooted(call.collective) ? call.root : rank_, call.root);
  elementBytes_ = call.elementBytes;
  tables_.resize(stride_ * at(ranks_));
  const std::size_t words = wordsOf(call.collective, rank_, call.root), tableBytes = words * sizeof(std::uint64_t);
  // What the root of a gather gives, it gives itself.
  mine_.givesData = call.collective != Collective::gather || rank_ != call.root;
  const std::size_t dataBytes =
      mine_.givesData ? postedElements(call.collective, rank_, call.mine->send) * elementBytes_ : 0;
  mine_.table.resize(words);
  fill(mine_.table, *call.mine);
  const ShortTable shortTable(words);
  // Longer data are copied quicker where they are. The longest blocks of one length that are posted are those that fit
  // with the rank's own among them; how long that is does not matter otherwise.
  const bool fitWithOwn = bytesOf(call.mine->send, elementBytes_) <= eagerBytes_;
  const std::size_t mostPosted =
      fitWithOwn || !hasBlockForItself(call.collective) ? eagerBytes_ : eagerBytes_ / at(ranks_) * (at(ranks_) - 1);
  mine_.place = shortTable.placeOf(mine_.table, dataBytes, mostPosted);
  mine_.isWithData = mine_.place != Place::slot || tableBytes + dataBytes <= mostPosted;
  mine_.table[0] = mine_.isWithData ? 1 : 0;
  if (mine_.place != Place::slot)
    shortTable.write(mine_.table, mine_.place, mine_.line.data());
  else if (shortTable.isPossible())
    ShortTable::writeNone(mine_.line.data());
  // No more than it takes: who is further ahead of the others waits for them more rarely.
  const std::size_t slotBytes = mine_.place == Place::apart ? dataBytes
                                : mine_.isWithData          ? tableBytes + dataBytes
                                                            : std::min(eagerBytes_, tableBytes);
  // What is no longer than a line's payload would be looked for there.
  mine_.postBytes = mine_.place == Place::line ? linePayload : std::max(slotBytes, linePayload + 1);
  mine_.signature = signature;
  mine_.version = call.mine->version;
}

void UnequalExchange::post(std::uint64_t signature, const OwnCall& call, std::size_t begin) {
  using Place = ShortTable::Place;
  const BlockRow& gives = call.mine->send;
  const auto writeData = [&](std::byte* to) {
    for (std::size_t b = 0; b < gives.counts.size() && mine_.givesData; ++b) {
      if (!isPosted(call.collective, rank_, static_cast<int>(b))) continue;
      const std::size_t length = gives.counts[b] * elementBytes_;
      if (length != 0) std::memcpy(to, call.send + gives.offsets[b] * elementBytes_, length);
      to += length;
    }
  };
  exchange_.begin(signature, mine_.postBytes);
  std::byte* const line = exchange_.payload(linePayload);
  const ShortTable shortTable(mine_.table.size());
  // As a whole, as that takes three moves; the place in the eager ring is written behind it.
  if (shortTable.isPossible()) std::memcpy(line, mine_.line.data(), linePayload);
  if (mine_.place != Place::slot) {
    writeData(mine_.place == Place::line ? line + shortTable.headerBytes() : exchange_.payload(eagerBytes_));
  } else {
    const std::size_t tableBytes = mine_.table.size() * sizeof(std::uint64_t);
    std::byte* const slot = exchange_.payload(eagerBytes_);
    if (begin < tableBytes)
      std::memcpy(slot, reinterpret_cast<const std::byte*>(mine_.table.data()) + begin,
                  std::min(eagerBytes_, tableBytes - begin));
    if (mine_.isWithData) writeData(slot + tableBytes);
  }
  exchange_.post();
}

bool UnequalExchange::endsAlone(const OwnCall& call) {
  const bool isRoot = rank_ == call.root, hasPosted = mine_.table[0] != 0;
  if (call.collective == Collective::gather) {
    if (!isRoot) return hasPosted;
    exchange_.awaitAll();
    return takeGathered(call);
  }
  if (isRoot) {
    if (!hasPosted) return false;
    comparePair(call.collective, call.mine->send, call.mine->receive, rank_, rank_, nameOf_);
    copyOwn(call, at(rank_), 0);
    return true;
  }
  exchange_.await(call.root);
  const PostedTable table = postedBy(call.root, stride_);
  if (table.word(0) == 0) return false;
  takeScattered(call, table);
  return true;
}

bool UnequalExchange::takeGathered(const OwnCall& call) const {
  const BlockRow& expects = call.mine->receive;
  const std::size_t words = wordsOf(call.collective, rank_ == 0 ? 1 : 0, call.root);
  if (call.mine->send.counts[0] != expects.counts[at(rank_)]) return false;
  for (int from = 0; from < ranks_; ++from) {
    if (from == rank_) continue;
    const std::size_t count = expects.counts[at(from)];
    const PostedTable table = postedBy(from, words);
    if (table.word(0) == 0 || table.word(1) != count || count > eagerBytes_ / elementBytes_) return false;
    if (count != 0)
      std::memcpy(call.receive + expects.offsets[at(from)] * elementBytes_, table.data(), count * elementBytes_);
  }
  // Behind the others', as it may be long, and is copied otherwise where not all data came.
  copyOwn(call, 0, at(rank_));
  return true;
}

void UnequalExchange::takeScattered(const OwnCall& call, const PostedTable& table) const {
  std::size_t before = 0;
  for (int to = 0; to < rank_; ++to)
    if (isPosted(call.collective, call.root, to)) before += table.word(1 + at(to));
  const std::size_t given = table.word(1 + at(rank_)), count = call.mine->receive.counts[0];
  if (given != count) comparePair(call.collective, {{given}, {0}}, call.mine->receive, call.root, rank_, nameOf_);
  // What stands in shared memory is not believed.
  if (before > eagerBytes_ || count > eagerBytes_ || (before + count) * elementBytes_ > eagerBytes_)
    fail(taccInternalError, "rank {} posts more than the {} bytes that a post holds", nameOf_(call.root), eagerBytes_);
  if (count != 0) std::memcpy(call.receive, table.data() + before * elementBytes_, count * elementBytes_);
}

void UnequalExchange::copyOwn(const OwnCall& call, std::size_t index, std::size_t to) const {
  const std::size_t bytes = call.mine->receive.counts[to] * elementBytes_;
  if (bytes == 0) return;
  const std::byte* const source = call.send + call.mine->send.offsets[index] * elementBytes_;
  std::byte* const target = call.receive + call.mine->receive.offsets[to] * elementBytes_;
  if (target == source) return;
  // What no second cache holds comes from memory, and its result goes there.
  constexpr std::size_t leastFromMemory = 2 << 20;
  void* destination = target;
  if (bytes < leastFromMemory)
    std::memcpy(destination, source, bytes);
  else
    copyBytes(&destination, 1, source, bytes, true);
}

void UnequalExchange::read(const OwnCall& call, int rank, std::size_t begin) {
  const std::size_t words = wordsOf(call.collective, rank, call.root), tableBytes = words * sizeof(std::uint64_t);
  const PostedTable posted = postedBy(rank, words);
  std::uint64_t* const table = tables_.data() + at(rank) * stride_;
  data_[at(rank)] = posted.data();
  if (posted.place() != ShortTable::Place::slot)
    for (std::size_t w = 0; w < words; ++w) table[w] = posted.word(w);
  else if (begin < tableBytes)
    std::memcpy(reinterpret_cast<std::byte*>(table) + begin, exchange_.payloadOf(rank, eagerBytes_),
                std::min(eagerBytes_, tableBytes - begin));
}

bool UnequalExchange::isAsBefore() {
  if (keptBytes_ == 0) return false;
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::byte* const line = exchange_.payloadOf(rank, linePayload);
    if (rank != rank_ && !beginEqually(line, kept_.data() + at(rank) * linePayload, keptBytes_)) return false;
    data_[at(rank)] = areKeptInLines_ ? line + keptBytes_ : postedBy(rank, stride_).data();
  }
  hasData_ = isRepeated_ = true;
  return true;
}

void UnequalExchange::keepLines(Collective collective) {
  const ShortTable shortTable(stride_);
  keptBytes_ = mine_.version != 0 && shortTable.isPossible() && !isRooted(collective) ? shortTable.headerBytes() : 0;
  areKeptInLines_ = true;
  for (int rank = 0; rank < ranks_ && keptBytes_ != 0; ++rank) {
    std::memcpy(kept_.data() + at(rank) * linePayload, exchange_.payloadOf(rank, linePayload), keptBytes_);
    const ShortTable::Place place = postedBy(rank, stride_).place();
    if (place == ShortTable::Place::slot) keptBytes_ = 0;
    areKeptInLines_ = areKeptInLines_ && place == ShortTable::Place::line;
  }
}

void UnequalExchange::take(const OwnCall& call, ReduceKernel reduce, int divisor) {
  const BlockRow& mine = all_[at(rank_)].receive;
  if (isReduction(call.collective)) {
    if (mine.counts[0] == 0) return;
    sources_.resize(at(ranks_));
    for (int from = 0; from < ranks_; ++from) sources_[at(from)] = blockFrom(call.collective, from, rank_);
    void* destination = call.receive;
    return reduce({.destinations = &destination,
                   .destinationCount = 1,
                   .sources = sources_.data(),
                   .sourceCount = ranks_,
                   .count = mine.counts[0],
                   .divisor = divisor});
  }
  for (std::size_t from = 0; from < mine.counts.size(); ++from) {
    const int rank = static_cast<int>(from);
    const std::size_t bytes = mine.counts[from] * elementBytes_;
    if (rank == rank_) {
      copyOwn(call, call.collective == Collective::allToAll ? from : 0, from);
    } else if (bytes != 0 && hasDataOf(rank)) {
      std::memcpy(call.receive + mine.offsets[from] * elementBytes_,
                  blockFrom(call.collective, rank, call.collective == Collective::allToAll ? rank_ : 0), bytes);
    }
  }
}

const std::byte* UnequalExchange::blockFrom(Collective collective, int rank, int index) const noexcept {
  return data_[at(rank)] + postedElements(collective, rank, all_[at(rank)].send, index) * elementBytes_;
}

}  // namespace tacc

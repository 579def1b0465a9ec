#include "engine/unequal_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "core/error.hpp"
#include "core/index.hpp"
#include "engine/short_table.hpp"

namespace tacc {
namespace {

/// Bytes of the blocks, one behind the other.
std::size_t packedBytes(const BlockRow& row, std::size_t elementBytes) noexcept {
  std::size_t elements = 0;
  for (const std::size_t count : row.counts) elements += count;
  return elements * elementBytes;
}

}  // namespace

BlockNumbers blocksOn(Collective collective, int rank, int ranks, int root) noexcept {
  const CollectiveShape& shape = shapeOf(collective);
  return {shape.send.blocksOn(rank, ranks, root), shape.receive.blocksOn(rank, ranks, root)};
}

void compareBlocks(Collective collective, int root, const std::vector<UnequalBlocks>& ranks,
                   const std::function<int(int)>& nameOf) {
  // A rank's only block is for all of them, or from all.
  const auto countOf = [](const BlockRow& row, std::size_t other) {
    return row.counts.size() == 1 ? row.counts[0] : row.counts[other];
  };
  const bool hasOneTarget = collective == Collective::gather, hasOneSource = collective == Collective::scatter;
  for (std::size_t from = 0; from < ranks.size(); ++from) {
    if (hasOneSource && from != at(root)) continue;
    for (std::size_t to = 0; to < ranks.size(); ++to) {
      if (hasOneTarget && to != at(root)) continue;
      const std::size_t given = countOf(ranks[from].send, to), expected = countOf(ranks[to].receive, from);
      if (given == expected) continue;
      const bool reduces = isReduction(collective);
      fail(taccInvalidUsage,
           "the counts of {}v differ: rank {} {} {} elements {} rank {}, which {} {}; what one rank gives another must "
           "be what that expects",
           tacc::nameOf(collective), nameOf(static_cast<int>(from)), reduces ? "reduces" : "gives", given,
           reduces ? "for" : "to", nameOf(static_cast<int>(to)), reduces ? "takes" : "expects", expected);
    }
  }
}

std::size_t UnequalExchange::wordsOf(Collective collective) const noexcept {
  // Of the rank that uses most; rank 0 as the root does.
  const BlockNumbers most = blocksOn(collective, 0, ranks_, 0);
  return 1 + 2 * at(most.send) + at(most.receive);
}

void UnequalExchange::fill(std::vector<std::uint64_t>& table, const UnequalBlocks& mine, bool hasData) const {
  auto next = table.begin();
  *next++ = hasData ? 1 : 0;
  next = std::ranges::copy(mine.send.counts, next).out;
  next = std::ranges::copy(mine.send.offsets, next).out;
  std::ranges::copy(mine.receive.counts, next);
}

void UnequalExchange::read(const std::uint64_t* table, BlockNumbers numbers, UnequalBlocks& blocks) const {
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

void UnequalExchange::run(std::uint64_t signature, Collective collective, int root, const UnequalBlocks& mine,
                          const std::byte* send, std::size_t elementBytes) {
  const std::size_t words = wordsOf(collective);
  tableBytes_ = words * sizeof(std::uint64_t);
  elementBytes_ = elementBytes;
  const std::size_t dataBytes = packedBytes(mine.send, elementBytes);
  const bool fits = tableBytes_ + dataBytes <= eagerBytes_;
  table_.assign(words, 0);
  fill(table_, mine, fits);
  tables_.resize(words * at(ranks_));
  const auto tableOf = [&](int rank) { return std::span(tables_).subspan(at(rank) * words, words); };
  const auto writeData = [&](std::byte* to) {
    for (std::size_t b = 0; b < mine.send.counts.size(); ++b) {
      const std::size_t length = mine.send.counts[b] * elementBytes;
      if (length != 0) std::memcpy(to, send + mine.send.offsets[b] * elementBytes, length);
      to += length;
    }
  };
  const ShortTable shortTable(words);
  const bool mayBeShort = shortTable.isPossible(), isShort = shortTable.holds(table_, dataBytes);
  isRepeated_ = false;
  // A table that is longer than a post goes in several, without data.
  for (std::size_t begin = 0; begin < tableBytes_; begin += eagerBytes_) {
    const std::size_t bytes = std::min(eagerBytes_, tableBytes_ - begin);
    exchange_.begin(signature, eagerBytes_);
    if (isShort) {
      writeData(shortTable.write(table_, exchange_.payload(linePayload)));
    } else {
      if (mayBeShort) ShortTable::writeNone(exchange_.payload(linePayload));
      std::byte* const payload = exchange_.payload(eagerBytes_);
      std::memcpy(payload, reinterpret_cast<const std::byte*>(table_.data()) + begin, bytes);
      if (fits) writeData(payload + tableBytes_);
    }
    exchange_.post();
    exchange_.awaitAll();
    if (isAsBefore(signature)) {
      for (int rank = 0; rank < ranks_; ++rank) data_[at(rank)] = exchange_.payloadOf(rank, linePayload) + keptBytes_;
      hasData_ = isRepeated_ = true;
      all_[at(rank_)].receive.offsets = mine.receive.offsets;
      return;
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::byte* const line = exchange_.payloadOf(rank, linePayload);
      if (mayBeShort && ShortTable::isIn(line)) {
        data_[at(rank)] = shortTable.read(line, tableOf(rank));
        continue;
      }
      const std::byte* const payload = exchange_.payloadOf(rank, eagerBytes_);
      std::memcpy(reinterpret_cast<std::byte*>(tableOf(rank).data()) + begin, payload, bytes);
      data_[at(rank)] = payload + tableBytes_;
    }
  }
  hasData_ = tableBytes_ <= eagerBytes_;
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::uint64_t* const table = tableOf(rank).data();
    hasData_ = hasData_ && table[0] != 0;
    read(table, blocksOn(collective, rank, ranks_, root), all_[at(rank)]);
  }
  all_[at(rank_)] = mine;
  keepLines(signature, mayBeShort ? shortTable.headerBytes() : 0);
}

bool UnequalExchange::isAsBefore(std::uint64_t signature) const noexcept {
  if (keptBytes_ == 0 || signature != keptSignature_) return false;
  for (int rank = 0; rank < ranks_; ++rank)
    if (std::memcmp(exchange_.payloadOf(rank, linePayload), kept_.data() + at(rank) * keptBytes_, keptBytes_) != 0)
      return false;
  return true;
}

void UnequalExchange::keepLines(std::uint64_t signature, std::size_t headerBytes) {
  keptSignature_ = signature;
  keptBytes_ = headerBytes;
  kept_.resize(at(ranks_) * headerBytes);
  for (int rank = 0; rank < ranks_ && keptBytes_ != 0; ++rank) {
    const std::byte* const line = exchange_.payloadOf(rank, linePayload);
    if (!ShortTable::isIn(line)) keptBytes_ = 0;
    std::memcpy(kept_.data() + at(rank) * headerBytes, line, headerBytes);
  }
}

void UnequalExchange::take(Collective collective, int root, std::byte* receive, ReduceKernel reduce, int divisor) {
  const BlockRow& mine = all_[at(rank_)].receive;
  if (isReduction(collective)) {
    if (mine.counts[0] == 0) return;
    sources_.resize(at(ranks_));
    for (int from = 0; from < ranks_; ++from) sources_[at(from)] = blockFrom(from, rank_);
    void* destination = receive;
    return reduce({.destinations = &destination,
                   .destinationCount = 1,
                   .sources = sources_.data(),
                   .sourceCount = ranks_,
                   .count = mine.counts[0],
                   .divisor = divisor});
  }
  const auto write = [&](std::size_t block, int from, int index) {
    const std::size_t bytes = mine.counts[block] * elementBytes_;
    if (bytes != 0) std::memcpy(receive + mine.offsets[block] * elementBytes_, blockFrom(from, index), bytes);
  };
  if (collective == Collective::scatter) return write(0, root, rank_);
  for (std::size_t from = 0; from < mine.counts.size(); ++from)
    write(from, static_cast<int>(from), collective == Collective::allToAll ? rank_ : 0);
}

const std::byte* UnequalExchange::blockFrom(int rank, int index) const noexcept {
  const std::byte* block = data_[at(rank)];
  for (int b = 0; b < index; ++b) block += all_[at(rank)].send.counts[at(b)] * elementBytes_;
  return block;
}

}  // namespace tacc

#include "engine/net/network_run.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/index.hpp"
#include "engine/partition.hpp"
#include "engine/signature.hpp"

namespace tacc {
namespace {

using PlaceKind = NetworkPlace::Kind;

constexpr std::int32_t noHeader = -2;     // nothing goes between the two ranks
constexpr std::int32_t headerAlone = -1;  // the first payload is too long to go with it

}  // namespace

void NetworkRun::start(const NetworkWork& work, std::size_t released) {
  work_ = work;
  released_ = released;
  started_ = 0;
  completed_ = 0;
  given_ = nullptr;
  if (work_.copiesBlocks) takeBlocks();
  const NetworkProgram& program = *work_.program;
  std::size_t most = 0;
  for (const NetworkChunk& chunk : work_.chunks) most = std::max(most, chunk.elements);
  if (program.partition == Partition::split) {
    isPacked_ = true;
    // Aligned boundaries can make a block one line longer than an even one.
    slotBytes_ = roundUp((most / at(program.blocks) + 1) * work_.elementBytes, cacheLine) + cacheLine;
  } else {
    isPacked_ = work_.chunks.size() == 1 && work_.blockBytes == most * work_.elementBytes && !hasPlaces() &&
                work_.blocks == nullptr;
    slotBytes_ = most * work_.elementBytes;
  }
  const auto number = [this](const auto& messages, std::vector<std::size_t>& first) {
    first.clear();
    std::size_t next = 0;
    for (const auto& message : messages) {
      first.push_back(next);
      next += at(piecesOf(message.blockCount));
    }
    first.push_back(next);
  };
  number(program.receives, firstReceive_);
  number(program.sends, firstSend_);
  if (chunks_.size() < work_.window) chunks_.resize(work_.window);
  for (Chunk& chunk : chunks_) chunk.active = false;
  openPairs();
}

/// Numbers the messages of the call and finds out what travels with each header.
void NetworkRun::openPairs() {
  const NetworkProgram& program = *work_.program;
  const std::size_t ranks = work_.members.size();
  inlineSend_.assign(ranks, noHeader);
  inlineReceive_.assign(ranks, noHeader);
  sendTag_.assign(ranks, 0);
  receiveTag_.assign(ranks, 0);
  isOpened_.assign(ranks, 0);
  isHeaderDue_.assign(ranks, 0);
  openHeaders_.clear();
  if (work_.chunks.empty()) return;
  Chunk first;
  const auto choose = [&](const auto& messages, std::vector<std::int32_t>& chosen, std::vector<std::int32_t>& block) {
    if (isOfPairs()) block.assign(ranks, 0);
    for (std::size_t m = 0; m < messages.size(); ++m) {
      const std::size_t bytes = bytesOf(first, messages[m].block, messages[m].blockCount);
      const auto peer = at(messages[m].peer);
      if ((bytes == 0 && !isOfPairs()) || chosen[peer] != noHeader) continue;
      const bool fits = bytes <= inlineBytes && piecesOf(messages[m].blockCount) == 1;
      chosen[peer] = fits ? static_cast<std::int32_t>(m) : headerAlone;
      if (isOfPairs()) block[peer] = messages[m].block;
    }
  };
  choose(program.sends, inlineSend_, blockTo_);
  choose(program.receives, inlineReceive_, blockFrom_);
  for (std::size_t q = 0; q < ranks; ++q) {
    const int rank = work_.members[q];
    const auto tagsTo = static_cast<std::uint32_t>(program.blocksTo[q]) * chunksWith(blockTo_, q) + 1;
    const auto tagsFrom = static_cast<std::uint32_t>(program.blocksFrom[q]) * chunksWith(blockFrom_, q) + 1;
    if (program.blocksTo[q] > 0) sendTag_[q] = peers_.takeSendTags(rank, tagsTo, MessageClass::collective);
    if (program.blocksFrom[q] > 0) receiveTag_[q] = peers_.takeReceiveTags(rank, tagsFrom, MessageClass::collective);
    if (inlineReceive_[q] == noHeader) continue;
    peers_.receiveHeader(rank, receiveTag_[q]);
    const std::int32_t together = inlineReceive_[q];
    const std::size_t bytes = together == headerAlone ? 0
                                                      : bytesOf(first, program.receives[at(together)].block,
                                                                program.receives[at(together)].blockCount);
    openHeaders_.push_back({q, bytes, headerWith(blockFrom_, q)});
    isHeaderDue_[q] = 1;
  }
}

/// A signature of such a call has no count.
CallHeader NetworkRun::headerWith(const std::vector<std::int32_t>& blocks, std::size_t peer) const {
  const std::uint64_t count = isOfPairs() ? work_.blocks->counts[at(blocks[peer])] : 0;
  return CallHeader::of(work_.signature | count << (64 - countBits), work_.call);
}

std::uint32_t NetworkRun::chunksWith(const std::vector<std::int32_t>& blocks, std::size_t peer) const {
  if (!isOfPairs()) return static_cast<std::uint32_t>(work_.chunks.size());
  const std::size_t elements = work_.chunks.front().elements;
  return static_cast<std::uint32_t>((work_.blocks->counts[at(blocks[peer])] + elements - 1) / elements);
}

void NetworkRun::failMismatch(int rank, const CallHeader& mine, const CallHeader& theirs) const {
  constexpr std::uint64_t allButCount = ~std::uint64_t{0} >> countBits;
  if (isOfPairs() && mine.call == theirs.call && (mine.signature() & allButCount) == (theirs.signature() & allButCount))
    fail(taccInvalidUsage, "the counts of {}v differ: rank {} gives {} elements to rank {}, which expects {}",
         nameOf(collectiveIn(mine.signature())), rank, countIn(theirs.signature()), work_.rank,
         countIn(mine.signature()));
  fail(taccInvalidUsage, "the ranks' calls differ: this rank's call {} is {}, rank {}'s call {} is {}", mine.call,
       describeSignature(mine.signature()), rank, theirs.call, describeSignature(theirs.signature()));
}

bool NetworkRun::advance() {
  bool moved = checkHeaders();
  while (started_ < std::min(released_, work_.chunks.size()) && started_ - completed_ < work_.window) {
    activate(chunks_[started_ % work_.window], started_);
    ++started_;
    moved = true;
  }
  for (std::size_t c = completed_; c < started_; ++c) moved |= advanceChunk(chunks_[c % work_.window]);
  while (completed_ < started_ && !chunks_[completed_ % work_.window].active) ++completed_;
  if (given_ != nullptr && completed_ == work_.chunks.size()) giveBlocks();
  return moved;
}

void NetworkRun::takeBlocks() {
  NetworkChunk& chunk = copied_ = work_.chunks.front();
  const std::size_t bytes = work_.blockBytes * work_.members.size();
  if (ordered_.size() < bytes) ordered_.resize(bytes);
  if (work_.inputHasPlaces) {
    for (std::size_t i = 0; i < work_.places.size(); ++i)
      std::memcpy(ordered_.data() + i * work_.blockBytes, chunk.input + at(work_.places[i]) * work_.blockBytes,
                  work_.blockBytes);
    chunk.input = ordered_.data();
  }
  if (work_.outputHasPlaces) {
    given_ = chunk.output;
    chunk.output = ordered_.data();
  }
  work_.chunks = {&copied_, 1};
  work_.inputHasPlaces = work_.outputHasPlaces = false;
}

void NetworkRun::giveBlocks() {
  for (std::size_t i = 0; i < work_.places.size(); ++i)
    std::memcpy(given_ + at(work_.places[i]) * work_.blockBytes, ordered_.data() + i * work_.blockBytes,
                work_.blockBytes);
  given_ = nullptr;
}

bool NetworkRun::checkHeaders() {
  const auto before = openHeaders_.size();
  std::erase_if(openHeaders_, [this](const OpenHeader& open) {
    const int rank = work_.members[open.peer];
    const CallHeader* header = peers_.arrivedHeader(rank);
    if (header == nullptr) return false;
    if (*header != open.header) failMismatch(rank, open.header, *header);
    if (peers_.arrivedBytes(rank) != open.bytes)
      fail(taccInternalError, "rank {} began call {} with {} bytes of data where {} were due", rank, work_.call,
           peers_.arrivedBytes(rank), open.bytes);
    isHeaderDue_[open.peer] = 0;
    return true;
  });
  return openHeaders_.size() != before;
}

void NetworkRun::activate(Chunk& chunk, std::size_t number) {
  const NetworkProgram& program = *work_.program;
  chunk.number = number;
  chunk.active = true;
  chunk.step = 0;
  chunk.isComputed = false;
  chunk.posted = 0;
  chunk.arrivedHere = 0;
  chunk.overHere = 0;
  chunk.startedSends = 0;
  chunk.sendsOver = 0;
  chunk.isPosted.assign(program.receives.size(), 0);
  chunk.arrivals.assign(program.receives.size(), nullptr);
  chunk.receives.assign(firstReceive_.back(), NetworkRequest());
  chunk.sends.assign(firstSend_.back(), NetworkRequest());
  const auto grow = [](std::vector<std::byte>& memory, std::size_t bytes) {
    if (memory.size() < bytes) memory.resize(bytes);
  };
  grow(chunk.incoming, at(program.incomingSlots) * slotBytes_);
  grow(chunk.outgoing, at(program.outgoingSlots) * slotBytes_);
  const bool split = program.partition == Partition::split;
  if (program.scratchBlocks > 0)
    grow(chunk.scratch, split ? dataOf(chunk).elements * work_.elementBytes : at(program.scratchBlocks) * slotBytes_);
}

bool NetworkRun::advanceChunk(Chunk& chunk) {
  if (!chunk.active) return false;
  const NetworkProgram& program = *work_.program;
  bool moved = postReceives(chunk);
  while (chunk.step < program.steps.size()) {
    const NetworkStep step = program.steps[chunk.step];
    if (!chunk.isComputed) {
      if (!isReady(chunk, step)) return moved;
      findInPlace(chunk, step);
      compute(chunk, step);
      releaseInPlace(chunk, step);
      chunk.isComputed = true;
      moved = true;
    }
    if (!startSends(chunk, step)) return moved;
    chunk.isComputed = false;
    chunk.arrivedHere = 0;
    chunk.overHere = 0;
    ++chunk.step;
    postReceives(chunk);
  }
  while (chunk.sendsOver < chunk.sends.size() && chunk.sends[chunk.sendsOver].done) ++chunk.sendsOver;
  if (chunk.sendsOver < chunk.sends.size()) return moved;
  chunk.active = false;
  return true;
}

/// Whether all that the step receives is there, and nothing is still to be sent that it overwrites.
bool NetworkRun::isReady(Chunk& chunk, const NetworkStep& step) const {
  const auto receives = static_cast<std::size_t>(std::ranges::size(step.receives));
  while (chunk.arrivedHere < receives && hasArrived(chunk, at(*step.receives.begin()) + chunk.arrivedHere))
    ++chunk.arrivedHere;
  if (chunk.arrivedHere < receives) return false;
  while (chunk.overHere < step.afterSends.size() && isOver(chunk, at(step.afterSends[chunk.overHere])))
    ++chunk.overHere;
  return chunk.overHere == step.afterSends.size();
}

bool NetworkRun::postReceives(Chunk& chunk) {
  const NetworkProgram& program = *work_.program;
  const std::size_t before = chunk.posted;
  while (chunk.posted < program.postOrder.size()) {
    const std::size_t next = at(program.postOrder[chunk.posted]);
    if (at(program.receives[next].postBefore) > chunk.step) break;
    postReceive(chunk, next);
  }
  return chunk.posted != before;
}

void NetworkRun::postReceive(Chunk& chunk, std::size_t index) {
  const NetworkReceive& receive = work_.program->receives[index];
  chunk.isPosted[index] = 1;
  ++chunk.posted;
  const auto peer = at(receive.peer);
  if (chunk.number == 0 && inlineReceive_[peer] == static_cast<std::int32_t>(index)) {
    chunk.arrivals[index] = peers_.arrivedPayload(work_.members[peer]);
    return;
  }
  std::byte* base = receive.isDirect ? const_cast<std::byte*>(addressOf(chunk, receive.to, receive.block, 0))
                                     : chunk.incoming.data() + at(receive.to.index) * slotBytes_;
  chunk.arrivals[index] = base;
  const auto tag =
      receiveTag_[peer] + 1 +
      static_cast<std::uint32_t>(chunk.number) * static_cast<std::uint32_t>(work_.program->blocksFrom[peer]) +
      static_cast<std::uint32_t>(receive.number);
  const int pieces = piecesOf(receive.blockCount);
  for (int piece = 0; piece < pieces; ++piece) {
    const std::size_t bytes = bytesOf(chunk, receive.block + piece, pieces == 1 ? receive.blockCount : 1);
    if (bytes == 0) continue;
    std::byte* to = receive.isDirect ? const_cast<std::byte*>(addressOf(chunk, receive.to, receive.block, piece))
                                     : base + at(piece) * slotBytes_;
    NetworkRequest& request = chunk.receives[firstReceive_[index] + at(piece)];
    if (staysInPlace(receive, pieces))
      peers_.transport().receiveInPlace(work_.members[peer], tag, to, bytes, request);
    else
      peers_.transport().receive(work_.members[peer], tag + static_cast<std::uint32_t>(piece), to, bytes, request);
  }
}

/// What is combined is read where it arrived, if that can be. What goes on as it is may be sent later: it needs a place
/// of its own.
bool NetworkRun::staysInPlace(const NetworkReceive& receive, int pieces) const noexcept {
  return !receive.isDirect && receive.isCombined && pieces == 1;
}

void NetworkRun::findInPlace(Chunk& chunk, const NetworkStep& step) {
  for (const std::int32_t r : step.receives)
    if (const NetworkRequest* const request = inPlace(chunk, at(r))) chunk.arrivals[at(r)] = request->place;
}

void NetworkRun::releaseInPlace(Chunk& chunk, const NetworkStep& step) {
  for (const std::int32_t r : step.receives)
    if (NetworkRequest* const request = inPlace(chunk, at(r))) peers_.transport().release(*request);
}

/// Null: it lies where it was to land.
NetworkRequest* NetworkRun::inPlace(Chunk& chunk, std::size_t index) const noexcept {
  const NetworkReceive& receive = work_.program->receives[index];
  if (!staysInPlace(receive, piecesOf(receive.blockCount))) return nullptr;
  NetworkRequest& request = chunk.receives[firstReceive_[index]];
  return request.place == nullptr ? nullptr : &request;
}

bool NetworkRun::hasArrived(const Chunk& chunk, std::size_t index) const {
  if (chunk.isPosted[index] == 0) return false;
  const auto peer = at(work_.program->receives[index].peer);
  if (chunk.number == 0 && inlineReceive_[peer] == static_cast<std::int32_t>(index)) return isHeaderDue_[peer] == 0;
  return std::all_of(chunk.receives.begin() + static_cast<std::ptrdiff_t>(firstReceive_[index]),
                     chunk.receives.begin() + static_cast<std::ptrdiff_t>(firstReceive_[index + 1]),
                     [](const NetworkRequest& request) { return request.done; });
}

bool NetworkRun::isOver(const Chunk& chunk, std::size_t send) const {
  return std::all_of(chunk.sends.begin() + static_cast<std::ptrdiff_t>(firstSend_[send]),
                     chunk.sends.begin() + static_cast<std::ptrdiff_t>(firstSend_[send + 1]),
                     [](const NetworkRequest& request) { return request.done; });
}

/// False when a header cannot be sent yet.
bool NetworkRun::startSends(Chunk& chunk, const NetworkStep& step) {
  const NetworkProgram& program = *work_.program;
  const std::int32_t first = *step.sends.begin(), end = *step.sends.end();
  for (std::int32_t number = std::max(first, static_cast<std::int32_t>(chunk.startedSends)); number < end; ++number) {
    const NetworkSend& send = program.sends[at(number)];
    const auto peer = at(send.peer);
    const int rank = work_.members[peer];
    const std::byte* base = addressOf(chunk, send.from, send.block, 0);
    const std::size_t whole = bytesOf(chunk, send.block, send.blockCount);
    const bool opens = chunk.number == 0 && (whole > 0 || isOfPairs()) && isOpened_[peer] == 0;
    if (opens) {
      if (!peers_.headerIsFree(rank)) return false;
      const bool together = inlineSend_[peer] == number;
      peers_.sendHeader(rank, sendTag_[peer], headerWith(blockTo_, peer), {base, together ? whole : 0});
      isOpened_[peer] = 1;
      if (together) {
        chunk.startedSends = at(number) + 1;
        continue;
      }
    }
    const auto tag = sendTag_[peer] + 1 +
                     static_cast<std::uint32_t>(chunk.number) * static_cast<std::uint32_t>(program.blocksTo[peer]) +
                     static_cast<std::uint32_t>(send.number);
    const int pieces = piecesOf(send.blockCount);
    for (int piece = 0; piece < pieces; ++piece) {
      const std::size_t bytes = bytesOf(chunk, send.block + piece, pieces == 1 ? send.blockCount : 1);
      if (bytes == 0) continue;
      peers_.transport().send(rank, tag + static_cast<std::uint32_t>(piece),
                              addressOf(chunk, send.from, send.block, piece), bytes,
                              chunk.sends[firstSend_[at(number)] + at(piece)]);
    }
    chunk.startedSends = at(number) + 1;
  }
  return true;
}

void NetworkRun::compute(Chunk& chunk, const NetworkStep& step) {
  if (step.destinations.empty()) return;
  if (work_.program->partition == Partition::split) return combine(chunk, step, 0, step.blockCount);
  for (int b = 0; b < step.blockCount; ++b) combine(chunk, step, b, 1);
}

void NetworkRun::combine(Chunk& chunk, const NetworkStep& step, int firstBlock, int blocks) {
  const std::size_t bytes = bytesOf(chunk, step.block + firstBlock, blocks);
  if (bytes == 0) return;
  sources_.clear();
  destinations_.clear();
  for (const NetworkPlace& place : step.sources) sources_.push_back(addressOf(chunk, place, step.block, firstBlock));
  for (const NetworkPlace& place : step.destinations) {
    void* address = const_cast<std::byte*>(addressOf(chunk, place, step.block, firstBlock));
    if (sources_.size() > 1 || address != sources_[0]) destinations_.push_back(address);
  }
  if (destinations_.empty()) return;  // it landed where it belongs
  const auto count = static_cast<int>(destinations_.size());
  if (sources_.size() == 1) return copyBytes(destinations_.data(), count, sources_[0], bytes, false);
  work_.reduce({.destinations = destinations_.data(),
                .destinationCount = count,
                .sources = sources_.data(),
                .sourceCount = static_cast<int>(sources_.size()),
                .count = bytes / work_.elementBytes,
                .divisor = step.completes ? work_.divisor : 1});
}

/// Stack: the distance of two blocks.
std::size_t NetworkRun::strideOf(NetworkPlace place) const {
  return place.kind == PlaceKind::input || place.kind == PlaceKind::output ? work_.blockBytes : slotBytes_;
}

std::size_t NetworkRun::placeOf(bool isPlaced, std::size_t index) const {
  return isPlaced && hasPlaces() ? at(work_.places[index]) : index;
}

std::size_t NetworkRun::elementOf(const Chunk& chunk, int block) const {
  return blockBegin(dataOf(chunk).elements, work_.program->blocks, block,
                    work_.cutBytes != 0 ? work_.cutBytes : work_.elementBytes);
}

std::size_t NetworkRun::bytesOf(const Chunk& chunk, int block, int count) const {
  if (work_.blocks != nullptr) {
    std::size_t elements = 0;
    for (int b = block; b < block + count; ++b) {
      const std::size_t length = work_.blocks->counts[at(b)], first = dataOf(chunk).first;
      if (length > first) elements += std::min(length - first, dataOf(chunk).elements);
    }
    return elements * work_.elementBytes;
  }
  if (work_.program->partition == Partition::stack) return at(count) * dataOf(chunk).elements * work_.elementBytes;
  return (elementOf(chunk, block + count) - elementOf(chunk, block)) * work_.elementBytes;
}

const std::byte* NetworkRun::addressOf(const Chunk& chunk, NetworkPlace place, int block, int offset) const {
  const bool split = work_.program->partition == Partition::split;
  const NetworkChunk& data = dataOf(chunk);
  const auto inVector = [&] { return elementOf(chunk, block + offset) * work_.elementBytes; };
  const auto inPiece = [&] { return inVector() - elementOf(chunk, block) * work_.elementBytes; };
  const auto index = at(place.index), shift = at(offset);
  if (work_.blocks != nullptr && place.kind == PlaceKind::input)
    return data.input + work_.blocks->inputAt[index + shift] * work_.elementBytes;
  if (work_.blocks != nullptr && place.kind == PlaceKind::output)
    return data.output + work_.blocks->outputAt[index + shift] * work_.elementBytes;
  switch (place.kind) {
    case PlaceKind::input:
      return data.input + (split ? inVector() : placeOf(work_.inputHasPlaces, index + shift) * work_.blockBytes);
    case PlaceKind::output:
      return data.output + (split ? inVector() : placeOf(work_.outputHasPlaces, index + shift) * work_.blockBytes);
    case PlaceKind::scratch:
      return chunk.scratch.data() + (split ? inVector() : (index + shift) * slotBytes_);
    case PlaceKind::slot:
      return chunk.outgoing.data() + index * slotBytes_ + (split ? inPiece() : shift * slotBytes_);
    case PlaceKind::arrived:
      break;
  }
  const NetworkReceive& receive = work_.program->receives[index];
  if ((hasPlaces() || work_.blocks != nullptr) && receive.isDirect && offset > 0)
    return addressOf(chunk, receive.to, block, offset);
  return chunk.arrivals[index] + (split ? inPiece() : shift * strideOf(receive.to));
}

std::vector<int> NetworkRun::awaited() const {
  std::vector<int> ranks;
  const auto add = [&](int rank) {
    if (std::ranges::find(ranks, rank) == ranks.end()) ranks.push_back(rank);
  };
  for (std::size_t c = completed_; c < started_; ++c) {
    const Chunk& chunk = chunks_[c % work_.window];
    if (!chunk.active) continue;
    if (chunk.step < work_.program->steps.size()) {
      for (const std::int32_t r : work_.program->steps[chunk.step].receives)
        if (!hasArrived(chunk, at(r))) add(work_.members[at(work_.program->receives[at(r)].peer)]);
    }
    for (std::size_t s = 0; s < chunk.startedSends; ++s)
      if (!isOver(chunk, s)) add(work_.members[at(work_.program->sends[s].peer)]);
  }
  for (const OpenHeader& open : openHeaders_) add(work_.members[open.peer]);
  return ranks;
}

/// Steps of a chunk follow one another, so all that its step receives is needed, whatever else comes.
int NetworkRun::nextSender() const {
  if (started_ - completed_ > 1) return -1;
  if (started_ > completed_) {
    const Chunk& chunk = chunks_[completed_ % work_.window];
    if (chunk.step == work_.program->steps.size() || chunk.isComputed) return -1;  // it waits for its sends
    for (const std::int32_t r : work_.program->steps[chunk.step].receives)
      if (chunk.isPosted[at(r)] != 0 && !hasArrived(chunk, at(r)))
        return work_.members[at(work_.program->receives[at(r)].peer)];
    return -1;
  }
  return completed_ == work_.chunks.size() && !openHeaders_.empty() ? work_.members[openHeaders_.front().peer] : -1;
}

}  // namespace tacc

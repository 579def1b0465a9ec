#include "transports/shm/local_messages.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "transports/shm/cma.hpp"
#include "transports/shm/wake_socket.hpp"

namespace tacc {
namespace {

constexpr std::uint32_t firstPiece = smallSlots, firstLarge = firstPiece + 2, allSlots = smallSlots + largeSlots;
constexpr std::uint32_t noticeBits = 30;
/// From here on one read through the kernel is cheaper than a copy into a slot and another one out of it.
constexpr std::size_t leastRead = 16 * 1024;

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

template <class T>
T takeLast(std::vector<T>& from) {
  T last = from.back();
  from.pop_back();
  return last;
}

}  // namespace

LocalMessages::LocalMessages(const NodeSegment& segment, int rank, const Waiter& waiter, std::vector<int> processes)
    : segment_(segment),
      rank_(rank),
      ranks_(segment.geometry().ranks),
      waiter_(waiter),
      processes_(std::move(processes)),
      peers_(static_cast<std::size_t>(ranks_)) {
  for (std::uint32_t slot = 0; slot < allSlots; ++slot) segment_.messageSlotEmptied(rank, slot).store(1);
  (void)wakeDescriptor();  // this thread's, now and not in the middle of a call
}

void LocalMessages::send(int peer, std::uint32_t tag, const void* data, std::size_t bytes, NetworkRequest& request) {
  request.done = false;
  const std::uint32_t number = keep({peer, tag, static_cast<const std::byte*>(data), bytes, 0, &request});
  Peer& to = at(peer);
  if (to.waiting.empty() && post(outgoing_[number], number)) return;
  to.waiting.push_back(number);
}

std::uint32_t LocalMessages::keep(const Outgoing& message) {
  if (numbers_.empty()) {
    numbers_.reserve(outgoing_.size() + 1);
    outgoing_.push_back(message);
    return static_cast<std::uint32_t>(outgoing_.size() - 1);
  }
  const std::uint32_t number = takeLast(numbers_);
  outgoing_[number] = message;
  return number;
}

void LocalMessages::finish(std::uint32_t number) {
  NetworkRequest* const request = std::exchange(outgoing_[number].request, nullptr);
  numbers_.push_back(number);
  request->done = true;
}

MessageLine* LocalMessages::nextLine(int peer) {
  Peer& to = at(peer);
  if (to.posted - to.takenSeen >= messageLines) {
    to.takenSeen = segment_.messagesTaken(peer, rank_).load(std::memory_order_acquire);
    if (to.posted - to.takenSeen >= messageLines) return nullptr;
  }
  return &segment_.messageLine(rank_, peer, to.posted + 1);
}

void LocalMessages::publish(int peer, MessageLine& line) {
  line.sequence.store(++at(peer).posted, std::memory_order_seq_cst);
  ring(peer);
}

/// A sleeper names itself, then looks at the words once more; here the words are written, then the name is read.
void LocalMessages::ring(int peer) noexcept {
  std::atomic<std::uint64_t>& sleeper = segment_.messageBell(peer).sleeper;
  std::uint64_t name = sleeper.load(std::memory_order_seq_cst);
  if (name != 0 && sleeper.compare_exchange_strong(name, 0)) wakeThread(name);
}

std::uint32_t LocalMessages::takeSlot(std::uint32_t first, std::uint32_t end) noexcept {
  for (std::uint32_t slot = first; slot < end; ++slot) {
    std::atomic<std::uint32_t>& emptied = segment_.messageSlotEmptied(rank_, slot);
    if (emptied.load(std::memory_order_acquire) == 0) continue;
    emptied.store(0, std::memory_order_relaxed);  // seen by a rank that sees the line that names it
    return slot;
  }
  return end;
}

void LocalMessages::empty(int peer, std::uint32_t slot) noexcept {
  segment_.messageSlotEmptied(peer, slot).store(1, std::memory_order_seq_cst);
  if (slot >= firstPiece && slot < firstLarge) ring(peer);  // nobody waits for others
}

/// False: there is no line for it.
bool LocalMessages::post(const Outgoing& message, std::uint32_t number) {
  MessageLine* const line = nextLine(message.peer);
  if (line == nullptr) return false;
  const std::size_t bytes = message.bytes;
  const bool canRead = !processes_.empty();
  line->tag = message.tag;
  line->bytes = bytes;
  line->number = number;
  std::uint32_t slot = firstPiece;  // none
  if (bytes > lineMessage && bytes <= smallSlotBytes) slot = takeSlot(0, firstPiece);
  if (slot == firstPiece)
    slot = bytes > lineMessage && bytes <= (canRead ? leastRead : largeSlotBytes) ? takeSlot(firstLarge, allSlots)
                                                                                  : allSlots;
  if (bytes <= lineMessage) {
    line->kind = Kind::inlined;
    copy(line->payload, message.data, bytes);
  } else if (slot < allSlots) {
    line->kind = Kind::slotted;
    line->number = slot;
    copy(segment_.messageSlot(rank_, slot), message.data, bytes);
  } else if (canRead) {
    line->kind = Kind::readable;
    copy(line->payload, &message.data, sizeof message.data);
  } else {
    line->kind = Kind::announced;
  }
  const bool isCopied = line->kind == Kind::inlined || line->kind == Kind::slotted;
  publish(message.peer, *line);
  if (isCopied) finish(number);
  return true;
}

bool LocalMessages::sendWaiting(int peer) {
  std::vector<std::uint32_t>& waiting = at(peer).waiting;
  std::size_t sent = 0;
  while (sent < waiting.size() && post(outgoing_[waiting[sent]], waiting[sent])) ++sent;
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(sent));
  return sent > 0;
}

bool LocalMessages::sendPieces() {
  bool moved = false;
  for (std::size_t i = 0; i < wanted_.size();) {
    const std::uint32_t number = wanted_[i];
    Outgoing& message = outgoing_[number];
    MessageLine* const line = nextLine(message.peer);
    if (line == nullptr) {
      ++i;
      continue;
    }
    const std::uint32_t slot = takeSlot(firstPiece, firstLarge);
    if (slot == firstLarge) break;
    const std::size_t bytes = std::min(largeSlotBytes, message.bytes - message.sent);
    copy(segment_.messageSlot(rank_, slot), message.data + message.sent, bytes);
    const std::uint64_t offset = message.sent;
    line->kind = Kind::piece;
    line->tag = number;
    line->number = slot;
    line->bytes = bytes;
    copy(line->payload, &offset, sizeof offset);
    message.sent += bytes;
    publish(message.peer, *line);
    moved = true;
    if (message.sent < message.bytes) continue;
    wanted_.erase(wanted_.begin() + static_cast<std::ptrdiff_t>(i));
    finish(number);
  }
  return moved;
}

void LocalMessages::receive(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) {
  post(peer, {tag, static_cast<std::byte*>(data), capacity, &request, false});
}

void LocalMessages::receiveInPlace(int peer, std::uint32_t tag, void* data, std::size_t capacity,
                                   NetworkRequest& request) {
  request.place = static_cast<const std::byte*>(data);
  request.handle = nullptr;
  post(peer, {tag, static_cast<std::byte*>(data), capacity, &request, true});
}

void LocalMessages::release(NetworkRequest& request) {
  if (request.handle != this) return;
  request.handle = nullptr;
  empty(static_cast<int>(request.slot >> 16), request.slot & 0xffff);
}

void LocalMessages::post(int peer, const Incoming& receive) {
  receive.request->done = false;
  Peer& from = at(peer);
  const auto found = std::ranges::find(from.arrived, receive.tag, &Arrived::tag);
  if (found == from.arrived.end()) return from.expected.push(receive);
  const Arrived message = *found;
  from.arrived.erase(found);
  deliver(peer, message, receive);
}

const std::byte* LocalMessages::slotOf(int peer, std::uint32_t slot, std::size_t bytes) const {
  const std::size_t room = slot < smallSlots ? smallSlotBytes : largeSlotBytes;
  if (slot >= allSlots || bytes > room)
    fail(taccInternalError, "rank {} says that {} bytes are in its message slot {}, which has {}", waiter_.nameOf(peer),
         bytes, slot, slot < allSlots ? room : 0);
  return segment_.messageSlot(peer, slot);
}

void LocalMessages::deliver(int peer, const Arrived& message, const Incoming& receive) {
  if (message.bytes > receive.capacity)
    fail(taccInvalidUsage, "rank {} sends {} bytes to rank {}, which expects at most {}", waiter_.nameOf(peer),
         message.bytes, waiter_.nameOf(rank_), receive.capacity);
  receive.request->bytes = message.bytes;
  switch (message.kind) {
    case Kind::inlined:
      if (message.bytes > lineMessage)
        fail(taccInternalError, "rank {} says that {} bytes are in one line", waiter_.nameOf(peer), message.bytes);
      copy(receive.data, message.payload, message.bytes);
      break;
    case Kind::slotted: {
      const std::byte* const slot = slotOf(peer, message.number, message.bytes);
      if (receive.inPlace) {
        receive.request->place = slot;
        receive.request->handle = this;
        receive.request->slot = static_cast<std::uint32_t>(peer) << 16 | message.number;
      } else {
        copy(receive.data, slot, message.bytes);
        empty(peer, message.number);
      }
      break;
    }
    case Kind::readable:
      read(peer, message, receive);
      tell(peer, Notice::read, message.number);
      break;
    case Kind::announced:
      at(peer).asked.push_back({message.number, receive.data, message.bytes, 0, receive.request});
      return tell(peer, Notice::wanted, message.number);
    default:
      fail(taccInternalError, "rank {} sends a message of kind {}", waiter_.nameOf(peer),
           static_cast<std::uint32_t>(message.kind));
  }
  receive.request->done = true;
}

void LocalMessages::read(int peer, const Arrived& message, const Incoming& receive) {
  if (processes_.empty())
    fail(taccInternalError, "rank {} sends where its memory is, which cannot be read", waiter_.nameOf(peer));
  const void* from = nullptr;
  std::memcpy(&from, message.payload, sizeof from);
  try {
    readRemote(processes_[static_cast<std::size_t>(peer)], receive.data, from, message.bytes);
  } catch (const Error&) {
    waiter_.checkErrors();  // a rank that fails says why before its memory goes
    throw;
  }
  waiter_.checkAfterReading();
}

void LocalMessages::takePiece(int peer, const Arrived& piece) {
  std::vector<Asked>& asked = at(peer).asked;
  const auto found = std::ranges::find(asked, piece.tag, &Asked::number);
  std::uint64_t offset = 0;
  std::memcpy(&offset, piece.payload, sizeof offset);
  if (found == asked.end() || offset != found->received || piece.bytes > found->bytes - found->received)
    fail(taccInternalError, "rank {} sends {} bytes at {} of a message that rank {} has not asked for",
         waiter_.nameOf(peer), piece.bytes, offset, waiter_.nameOf(rank_));
  copy(found->data + offset, slotOf(peer, piece.number, piece.bytes), piece.bytes);
  empty(peer, piece.number);
  found->received += piece.bytes;
  if (found->received < found->bytes) return;
  NetworkRequest* const request = found->request;
  asked.erase(found);
  request->done = true;
}

bool LocalMessages::takeLines(int peer) {
  Peer& from = at(peer);
  std::uint32_t taken = from.taken;
  for (;; ++taken) {
    const MessageLine& line = segment_.messageLine(peer, rank_, taken + 1);
    if (line.sequence.load(std::memory_order_acquire) != taken + 1) break;
    // A copy: it is not to change behind the checks.
    Arrived message{line.tag, line.kind, line.number, line.bytes, {}};
    std::memcpy(message.payload, line.payload, lineMessage);
    if (message.kind == Kind::piece) {
      takePiece(peer, message);
      continue;
    }
    const auto found = std::ranges::find(from.expected, message.tag, &Incoming::tag);
    if (found == from.expected.end()) {
      from.arrived.push(message);
      continue;
    }
    const Incoming receive = *found;
    from.expected.erase(found);
    deliver(peer, message, receive);
  }
  if (taken == from.taken) return false;
  segment_.messagesTaken(rank_, peer).store(taken, std::memory_order_seq_cst);
  // Only who had filled the ring may wait for this: it did so before it looked whether there is room.
  const std::uint32_t last = std::exchange(from.taken, taken) + messageLines;
  if (segment_.messageLine(peer, rank_, last).sequence.load(std::memory_order_seq_cst) == last) ring(peer);
  return true;
}

void LocalMessages::tell(int peer, Notice notice, std::uint32_t value) {
  at(peer).untold.push_back(static_cast<std::uint32_t>(notice) << noticeBits | value);
  tellUntold(peer);
}

bool LocalMessages::tellUntold(int peer) {
  Peer& to = at(peer);
  std::size_t told = 0;
  for (; told < to.untold.size(); ++told) {
    if (to.told - to.toldSeen >= messageNotices) {
      to.toldSeen = segment_.noticesTaken(peer, rank_).load(std::memory_order_acquire);
      if (to.told - to.toldSeen >= messageNotices) break;
    }
    const std::uint32_t sequence = ++to.told;
    segment_.messageNotice(rank_, peer, sequence)
        .store(static_cast<std::uint64_t>(sequence) << 32 | to.untold[told], std::memory_order_seq_cst);
  }
  if (told == 0) return false;
  to.untold.erase(to.untold.begin(), to.untold.begin() + static_cast<std::ptrdiff_t>(told));
  ring(peer);
  return true;
}

bool LocalMessages::takeNotices(int peer) {
  Peer& from = at(peer);
  std::uint32_t noticed = from.noticed;
  for (;; ++noticed) {
    const std::uint64_t notice = segment_.messageNotice(peer, rank_, noticed + 1).load(std::memory_order_acquire);
    if (notice >> 32 != noticed + 1) break;
    const auto what = static_cast<std::uint32_t>(notice);
    heed(peer, static_cast<Notice>(what >> noticeBits), what & ((1U << noticeBits) - 1));
  }
  if (noticed == from.noticed) return false;
  segment_.noticesTaken(rank_, peer).store(noticed, std::memory_order_seq_cst);
  const std::uint32_t last = std::exchange(from.noticed, noticed) + messageNotices;
  if (segment_.messageNotice(peer, rank_, last).load(std::memory_order_seq_cst) >> 32 == last) ring(peer);
  return true;
}

void LocalMessages::heed(int peer, Notice notice, std::uint32_t value) {
  const bool isKnown = value < outgoing_.size() && outgoing_[value].request != nullptr && outgoing_[value].peer == peer;
  if (isKnown && notice == Notice::read) return finish(value);
  if (!isKnown || notice != Notice::wanted || std::ranges::find(wanted_, value) != wanted_.end())
    fail(taccInternalError, "rank {} tells of a message {} that rank {} has not sent it", waiter_.nameOf(peer), value,
         waiter_.nameOf(rank_));
  wanted_.push_back(value);
}

bool LocalMessages::progress() {
  disarm();
  bool moved = false;
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_) continue;
    moved = takeLines(peer) || moved;
    moved = takeNotices(peer) || moved;
    if (!at(peer).untold.empty()) moved = tellUntold(peer) || moved;
    if (!at(peer).waiting.empty()) moved = sendWaiting(peer) || moved;
  }
  if (!wanted_.empty()) moved = sendPieces() || moved;
  return moved;
}

bool LocalMessages::drain() {
  bool isDrained = true;
  for (int peer = 0; peer < ranks_; ++peer) {
    if (!at(peer).untold.empty()) tellUntold(peer);
    isDrained = isDrained && at(peer).untold.empty();
  }
  return isDrained;
}

bool LocalMessages::arm() {
  armedAs_ = wakeName();
  segment_.messageBell(rank_).sleeper.store(armedAs_, std::memory_order_seq_cst);
  if (!hasNews()) return true;
  disarm();
  return false;
}

bool LocalMessages::hasNews() const {
  const auto hasLine = [&](int peer) {
    const std::uint32_t taken = segment_.messagesTaken(peer, rank_).load(std::memory_order_seq_cst);
    return peers_[static_cast<std::size_t>(peer)].posted - taken < messageLines;
  };
  bool hasSlot = false;
  for (std::uint32_t slot = firstPiece; slot < firstLarge; ++slot)
    hasSlot = hasSlot || segment_.messageSlotEmptied(rank_, slot).load(std::memory_order_seq_cst) != 0;
  if (hasSlot && std::ranges::any_of(wanted_, [&](std::uint32_t w) { return hasLine(outgoing_[w].peer); })) return true;
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_) continue;
    const Peer& from = peers_[static_cast<std::size_t>(peer)];
    const std::uint32_t line = from.taken + 1, notice = from.noticed + 1;
    if (segment_.messageLine(peer, rank_, line).sequence.load(std::memory_order_seq_cst) == line ||
        segment_.messageNotice(peer, rank_, notice).load(std::memory_order_seq_cst) >> 32 == notice ||
        (!from.waiting.empty() && hasLine(peer)) ||
        (!from.untold.empty() && segment_.noticesTaken(peer, rank_).load(std::memory_order_seq_cst) != from.toldSeen))
      return true;
  }
  return false;
}

void LocalMessages::disarm() noexcept {
  if (std::exchange(armedAs_, 0) != 0) segment_.messageBell(rank_).sleeper.store(0, std::memory_order_seq_cst);
}

void LocalMessages::cancelReceives() noexcept {
  for (Peer& peer : peers_) {
    peer.expected.clear();
    peer.asked.clear();
  }
}

}  // namespace tacc

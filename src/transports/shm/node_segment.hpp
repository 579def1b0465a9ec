// The memory that the ranks of one node share, and who writes what in it.
//
//   header | rank 0: lines, eager slots, arena | rank 1: ... | ... | board
//
// Every word has a single writer (the rank that owns the area), except the doorbells, the error board, what attendance
// says of agreements, open copies, and the board. So there is no read-modify-write on the path of a collective, but
// where two ranks share a copy of 128 KiB and more, and one cache line moves per message.
//
//   CallLine   one a call, `callSlots` deep: the call's number and signature, and 48 bytes: a tiny payload, or where
//              the call's buffers are, or where in the eager ring a short payload lies. Posting it tells the others
//              three things at once: what I call, that I have finished the call before, and my data or its address.
//   CallNote   one a call, beside its line: the payload of a tiny call that goes one way.
//   Clock      how far the rank has come in the plans that it runs; see engine/shm/executor.hpp.
//   Doorbell   how many ranks sleep on one of my words; read by me after every publication.
//   Attendance whether I am still in the communicator.
//   PostTime   how long calls that were timed took me.
//   OpenCopy   what I read of another rank's memory, of which that one may do a part.
//   PipeOffer  the pipe through which I give pages to a rank.
//   eager      a ring of bytes for payloads that do not fit the line, with room for `eagerSlots` of the longest.
//   arena      staging slots of the plans that copy.
//   pairs      send and receive windows of the point-to-point messages.
//   board      what ranks share that only saves them work (price_board.hpp), where this node is a part of a
//              communicator over several hosts.
//   messages   of plans over several hosts, where this node is a part of such a communicator (local_messages.hpp): for
//              every peer a ring of lines and what it tells back, and slots for what does not fit a line.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "tacc/tacc.h"
#include "transports/shm/pages.hpp"

namespace tacc {

inline constexpr std::size_t cacheLine = 64;
inline constexpr std::string_view segmentPurpose = "node";  // memfd:tacc-node in /proc/PID/maps
/// Call lines of a rank: how far a rank that waits for nobody can run ahead. Where ranks share a core, it changes hands
/// every half of them.
inline constexpr int callSlots = 64;
inline constexpr int eagerSlots = 4;
/// What a post of `bytes` takes of the eager ring, with what its reader's core fetches ahead behind it: the next post
/// would be written there at the same time. Not a power of two, or the first lines of all would share one set of the
/// caches.
constexpr std::size_t roomForPost(std::size_t bytes) noexcept {
  constexpr std::size_t linesBehind = 17;
  return ((bytes + cacheLine - 1) / cacheLine + linesBehind) * cacheLine;
}
inline constexpr std::size_t linePayload = 48;
inline constexpr std::size_t noteBytes = 16;
inline constexpr std::size_t notePayload = 8;
inline constexpr int pairWindow = 4;  // messages of one pair in flight
inline constexpr std::size_t boardBytes = 20 * pageBytes;

/// Others may look at the first three words while the owner rewrites the line for a later call; the payload is read
/// only while it cannot (engine/shm/call_exchange.hpp).
struct alignas(cacheLine) CallLine {
  std::atomic<std::uint32_t> sequence;   // number of the call whose line this is; written last
  std::atomic<std::uint32_t> history;    // digest of the signatures of this and all earlier calls of the rank
  std::atomic<std::uint64_t> signature;  // of this call
  std::byte payload[linePayload];
};
static_assert(sizeof(CallLine) == cacheLine);

/// The payload of a tiny call in which the rank that has one waits for nobody, as a broadcast's root: four calls share
/// a cache line, so a stream of them moves fewer. Every call writes one, so that who waits for it sees a call that is
/// another.
struct alignas(noteBytes) CallNote {
  std::atomic<std::uint32_t> sequence;  // written last
  std::uint32_t history;
  std::byte payload[notePayload];
};
static_assert(sizeof(CallNote) == noteBytes);

struct alignas(cacheLine) Clock {
  std::atomic<std::uint32_t> ticks;
};

inline constexpr std::uint32_t postRows = 4;

/// How long the last rows of short calls that went one way took here, for those who wrote what was read in them. Row n
/// is at n modulo their number.
struct alignas(cacheLine) PostTime {
  std::atomic<std::uint64_t> rows[postRows];  // number of its last call << 32 | bits of a float, seconds
};

inline constexpr int mostPiped = 8;  // ranks of a communicator that has page pipes

/// The pipe through which a rank gives pages to another one, in the area of the rank that writes it (page_pipes.hpp).
struct PipeOffer {
  std::uint32_t descriptor;  // there
  std::uint64_t device, inode;
};

inline constexpr int openCopies = 4;  // of a rank

/// A copy of private memory that both ends make, in the area of the rank that wants it (engine/shm/shared_copies.hpp).
/// The claims are both ends' to change, `written` and `refused` the other end's.
struct alignas(cacheLine) OpenCopy {
  std::atomic<std::uint64_t> claims;      // its number << 32 | the first piece that is nobody's << 16 | behind the last
  std::atomic<std::uint32_t> written;     // pieces that the other end is done with, of this and all copies before
  std::atomic<std::uint32_t> refused;     // number of the last copy of which it could not write what it had claimed
  std::atomic<std::uint32_t> source;      // the other end
  std::atomic<std::uint64_t> from, to;    // addresses there and here
  std::atomic<std::uint64_t> bytes;       // in all
  std::atomic<std::uint64_t> pieceBytes;  // of each piece but the last
};
static_assert(sizeof(OpenCopy) == cacheLine);

struct alignas(cacheLine) Doorbell {
  std::atomic<std::uint32_t> sleepers;  // ranks asleep on a word of this area
  std::atomic<std::uint32_t> core;      // 1 + where this rank last waited long
  std::atomic<std::uint32_t> rings;     // changed by any rank that did something this rank may wait for (pairs only)
};

/// One message of a pair: where its bytes are, and what the sender's whole operation is.
struct PairMessage {
  std::uint64_t segment;    // library segment and offset, or 0 and an offset into the sender's pair buffer
  std::uint64_t address;    // (among threads: 0 and the address itself, with `direct` set)
  std::uint64_t bytes;      // of this message
  std::uint64_t operation;  // bytes of the whole operation << 8 | type << 1 | direct
};

/// Sender's side of a pair; in the sender's area.
struct alignas(cacheLine) PairSend {
  std::atomic<std::uint32_t> posted;  // messages posted since the beginning
  PairMessage messages[pairWindow];
};

/// Receiver's side of a pair; in the receiver's area.
struct alignas(cacheLine) PairReceive {
  std::atomic<std::uint32_t> taken;  // messages taken since the beginning
};

inline constexpr std::uint32_t messageLines = 16;  // messages of one pair that nobody has looked at yet
inline constexpr std::size_t lineMessage = 40;     // bytes of a message that travels in its line
inline constexpr std::uint32_t messageNotices = 16;
inline constexpr std::uint32_t smallSlots = 24;  // of a rank, for messages to any
inline constexpr std::uint32_t largeSlots = 6;
inline constexpr std::size_t smallSlotBytes = 4096 + cacheLine;
inline constexpr std::size_t largeSlotBytes = std::size_t{64} << 10;

/// A message of a pair, or a piece of one; in the sender's area. Its receiver takes it out at once, whether it expects
/// it or not.
struct alignas(cacheLine) MessageLine {
  enum class Kind : std::uint32_t {
    inlined,    // the payload is here
    slotted,    // in slot `slot`
    readable,   // at an address of the sender's process: the receiver reads it there
    announced,  // to be asked for
    piece,      // of a message that was asked for, in slot `slot`; the payload says where it belongs
  };
  std::atomic<std::uint32_t> sequence;  // number of the line among those of the pair, from 1; written last
  std::uint32_t tag;                    // piece: the receiver's number of the message
  Kind kind;
  std::uint32_t number;  // slot, or the sender's number of the message
  std::uint64_t bytes;   // of the message; piece: of the piece
  std::byte payload[lineMessage];
};
static_assert(sizeof(MessageLine) == cacheLine);

/// What a receiver tells a sender, in the receiver's area: number of the notice << 32 | what it says.
struct alignas(cacheLine) MessageNotices {
  std::atomic<std::uint64_t> notices[messageNotices];
};

/// How many lines, or notices, of the other side have been taken out.
struct alignas(cacheLine) MessageCount {
  std::atomic<std::uint32_t> taken;
};

/// Whose turn a message slot is: its owner fills it, posts a line that names it, and may do so again once the rank that
/// emptied it has set this.
struct alignas(cacheLine) MessageSlots {
  std::atomic<std::uint32_t> emptied[smallSlots + largeSlots];
};
static_assert(sizeof(MessageSlots) == 2 * cacheLine);

/// Whether a rank is still in the communicator, beyond what the kernel tells of its process (presence.hpp).
struct alignas(cacheLine) Attendance {
  std::atomic<std::uint32_t> left;    // 1: the owner has left and reads and writes nothing any more
  std::atomic<std::uint32_t> passed;  // 1 + number of the last agreement that others decided without the owner
};

/// Not 0: the owner sleeps, and is woken by this name (wake_socket.hpp) by the rank that makes it 0.
struct alignas(cacheLine) MessageBell {
  std::atomic<std::uint64_t> sleeper;
};

/// The first error of the communicator: everyone who waits looks here now and then.
struct ErrorBoard {
  static constexpr std::size_t messageBytes = 496;
  std::atomic<std::uint32_t> state;  // 0: none, 1: being written, 2: written
  std::int32_t rank;                 // who wrote it
  std::int32_t result;
  char message[messageBytes];

  /// Writes the first Error there is; later ones are dropped.
  void post(int writer, taccResult_t error, std::string_view text) noexcept {
    std::uint32_t none = 0;
    if (!state.compare_exchange_strong(none, 1)) return;
    rank = writer;
    result = error;
    const auto length = std::min(text.size(), messageBytes - 1);
    std::memcpy(message, text.data(), length);
    message[length] = '\0';
    state.store(2, std::memory_order_release);
  }
};

/// Sizes that all ranks agree on.
struct NodeGeometry {
  int ranks = 0;
  std::size_t eagerBytes = 0;  // of the longest post
  std::size_t arenaBytes = 0;  // of one rank's arena
  std::size_t pairBytes = 0;   // of one rank's point-to-point buffer
  bool hasMessages = false;    // of plans over several hosts
  friend bool operator==(const NodeGeometry&, const NodeGeometry&) = default;
};

/// Parts of a rank's area, one after the other, by when they are needed.
enum class AreaPart : std::uint8_t {
  lines,  // what others look at, whatever is called
  eager,
  arena,
  pairs,   // the buffer of the point-to-point messages
  windows  // what others look at of point-to-point messages, and all of plans over several hosts
};

/// Bytes of the segment, from its base.
struct Extent {
  std::size_t begin = 0, end = 0;
};

/// Finds the parts of the shared memory at `base`. A value; copying it copies no memory.
class NodeSegment {
 public:
  static constexpr std::size_t linesBytes = 2 * pageBytes;            // of AreaPart::lines
  static constexpr std::size_t notesAt = linesBytes - pageBytes / 2;  // in it, behind the words
  static constexpr std::uint32_t callDepth = callSlots;               // calls until a line and a note are used again

  NodeSegment() = default;
  NodeSegment(std::byte* base, const NodeGeometry& geometry) noexcept
      : base_(base), geometry_(geometry), areaBytes_(areaBytes(geometry)), eagerRingBytes_(eagerRingBytes(geometry)) {}

  static std::size_t bytesFor(const NodeGeometry& g) noexcept { return boardExtent(g).end; }
  /// Where the area of `rank` begins, in bytes from the base; before that of rank 0 lies the header.
  static std::size_t areaOffset(const NodeGeometry& g, int rank) noexcept {
    return pageBytes + static_cast<std::size_t>(rank) * areaBytes(g);
  }
  static Extent extentOf(const NodeGeometry& g, int rank, AreaPart part) noexcept {
    const std::size_t lines = areaOffset(g, rank), eager = lines + linesBytes, arena = eager + eagerRingBytes(g),
                      pairs = arena + g.arenaBytes, windows = pairs + g.pairBytes;
    switch (part) {
      case AreaPart::lines:
        return {lines, eager};
      case AreaPart::eager:
        return {eager, arena};
      case AreaPart::arena:
        return {arena, pairs};
      case AreaPart::pairs:
        return {pairs, windows};
      case AreaPart::windows:
        break;
    }
    return {windows, areaOffset(g, rank + 1)};
  }
  static Extent boardExtent(const NodeGeometry& g) noexcept {
    const std::size_t begin = areaOffset(g, g.ranks);
    return {begin, begin + (g.hasMessages ? boardBytes : 0)};
  }
  std::byte* base() const noexcept { return base_; }
  const NodeGeometry& geometry() const noexcept { return geometry_; }
  bool isMapped() const noexcept { return base_ != nullptr; }

  ErrorBoard& errorBoard() const noexcept { return *reinterpret_cast<ErrorBoard*>(base_); }
  /// Zeros at first; its user says who writes what.
  std::span<std::byte> board() const noexcept {
    const Extent extent = boardExtent(geometry_);
    return {base_ + extent.begin, extent.end - extent.begin};
  }
  CallLine& callLine(int rank, std::uint32_t sequence) const noexcept {
    return reinterpret_cast<CallLine*>(area(rank))[sequence % callSlots];
  }
  CallNote& callNote(int rank, std::uint32_t sequence) const noexcept {
    return at<CallNote>(rank, notesAt)[sequence % callSlots];
  }
  Clock& clock(int rank) const noexcept { return *at<Clock>(rank, callSlots * cacheLine); }
  Doorbell& doorbell(int rank) const noexcept { return *at<Doorbell>(rank, (callSlots + 2) * cacheLine); }
  std::atomic<std::uint32_t>& messageSlotEmptied(int rank, std::uint32_t slot) const noexcept {
    return at<MessageSlots>(rank, (callSlots + 5) * cacheLine)->emptied[slot];
  }
  MessageBell& messageBell(int rank) const noexcept { return *at<MessageBell>(rank, (callSlots + 4) * cacheLine); }
  Attendance& attendance(int rank) const noexcept { return *at<Attendance>(rank, (callSlots + 7) * cacheLine); }
  PostTime& postTime(int rank) const noexcept { return *at<PostTime>(rank, (callSlots + 8) * cacheLine); }
  OpenCopy& openCopy(int rank, int index) const noexcept {
    static_assert((callSlots + 9 + openCopies) * cacheLine <= notesAt);
    return *at<OpenCopy>(rank, (callSlots + 9 + static_cast<std::size_t>(index)) * cacheLine);
  }
  PipeOffer& pipeOffer(int writer, int reader) const noexcept {
    static_assert(notesAt + callSlots * sizeof(CallNote) + mostPiped * sizeof(PipeOffer) <= linesBytes);
    return at<PipeOffer>(writer, notesAt + callSlots * sizeof(CallNote))[reader];
  }
  std::byte* eagerRing(int rank) const noexcept { return area(rank) + linesBytes; }
  std::size_t eagerRingBytes() const noexcept { return eagerRingBytes_; }
  std::byte* arena(int rank) const noexcept { return eagerRing(rank) + eagerRingBytes(); }
  std::byte* pairBuffer(int rank) const noexcept { return arena(rank) + geometry_.arenaBytes; }
  PairSend& pairSend(int sender, int receiver) const noexcept {
    return reinterpret_cast<PairSend*>(pairLines(sender))[receiver];
  }
  PairReceive& pairReceive(int receiver, int sender) const noexcept {
    auto* lines = pairLines(receiver) + static_cast<std::size_t>(geometry_.ranks) * sizeof(PairSend);
    return reinterpret_cast<PairReceive*>(lines)[sender];
  }
  // With messages only:
  MessageLine& messageLine(int sender, int receiver, std::uint32_t sequence) const noexcept {
    return messagePair(sender, receiver)->lines[sequence % messageLines];
  }
  std::atomic<std::uint32_t>& messagesTaken(int receiver, int sender) const noexcept {
    return messagePair(receiver, sender)->messages.taken;
  }
  std::atomic<std::uint64_t>& messageNotice(int receiver, int sender, std::uint32_t sequence) const noexcept {
    return messagePair(receiver, sender)->notices.notices[sequence % messageNotices];
  }
  std::atomic<std::uint32_t>& noticesTaken(int sender, int receiver) const noexcept {
    return messagePair(sender, receiver)->taken.taken;
  }
  /// Small slots are those below `smallSlots`, large ones follow.
  std::byte* messageSlot(int rank, std::uint32_t slot) const noexcept {
    std::byte* const slots = pairLines(rank) + pairLineBytes(geometry_);
    return slot < smallSlots ? slots + slot * smallSlotBytes
                             : slots + smallSlots * smallSlotBytes + (slot - smallSlots) * largeSlotStride;
  }

 private:
  /// What a rank has of its messages with one peer, both ways.
  struct MessagePair {
    MessageLine lines[messageLines];  // to the peer
    MessageCount taken;               // of the peer's notices
    MessageCount messages;            // taken of the peer's lines
    MessageNotices notices;           // to the peer
  };
  static constexpr std::size_t largeSlotStride = largeSlotBytes + cacheLine;
  static constexpr std::size_t allSlotBytes = smallSlots * smallSlotBytes + largeSlots * largeSlotStride;
  static std::size_t pairLineBytes(const NodeGeometry& g) noexcept {
    return static_cast<std::size_t>(g.ranks) * (sizeof(PairSend) + sizeof(PairReceive));
  }
  static std::size_t messageBytes(const NodeGeometry& g) noexcept {
    return g.hasMessages ? allSlotBytes + static_cast<std::size_t>(g.ranks) * sizeof(MessagePair) : 0;
  }
  MessagePair* messagePair(int owner, int peer) const noexcept {
    return reinterpret_cast<MessagePair*>(messageSlot(owner, 0) + allSlotBytes) + peer;
  }
  static std::size_t eagerRingBytes(const NodeGeometry& g) noexcept { return eagerSlots * roomForPost(g.eagerBytes); }
  static std::size_t areaBytes(const NodeGeometry& g) noexcept {
    const auto bytes = linesBytes + eagerRingBytes(g) + g.arenaBytes + g.pairBytes + pairLineBytes(g) + messageBytes(g);
    return (bytes + pageBytes - 1) / pageBytes * pageBytes;
  }
  std::byte* area(int rank) const noexcept { return base_ + pageBytes + static_cast<std::size_t>(rank) * areaBytes_; }
  std::byte* pairLines(int rank) const noexcept { return pairBuffer(rank) + geometry_.pairBytes; }
  template <class T>
  T* at(int rank, std::size_t offset) const noexcept {
    return reinterpret_cast<T*>(area(rank) + offset);
  }

  std::byte* base_ = nullptr;
  NodeGeometry geometry_;
  std::size_t areaBytes_ = 0, eagerRingBytes_ = 0;  // of the geometry: every call asks for them several times
};

}  // namespace tacc

// Messages, with descriptors, over a unix or TCP stream socket that never blocks; descriptors over unix ones only.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "transports/file_descriptor.hpp"
#include "transports/tcp/sealed_records.hpp"

namespace tacc {

enum class MessageKind : std::uint32_t {
  challenge = 1,
  hello,
  welcome,
  admitted,  // after a welcome: the joiner has its place there
  redirect,  // after a welcome: the joiner is to go on to a gateway
  arrivals,  // a gateway tells of ranks that have joined behind it
  complete,  // all ranks have joined
  failure,   // the sender has failed: result, then text
  report,    // a rank behind the sender has failed: the same, and the text names it
  gather,    // a rank's part of allGather
  parts,     // parts of ranks behind the sender
  gathered,  // all parts
  descriptor,
  // After init, in the control plane:
  announced,  // a rank has failed: which, then as in `failure`
  farewell,   // the sender leaves
  gone,       // ranks that left, died or were cut off
  stuck,      // the sender's operation has timed out
  query,      // rank 0 asks what the receiver is doing
  state,      // the answer
  verdict,    // rank 0 tells why the operation does not end
  // Among survivors:
  meeting,     // a MeetingNote
  leftBehind,  // a LeftBehind, without any proof of who says so but its own
  // Between a center and its workers (src/easgd/center_protocol.hpp):
  centerJoin,
  centerSeat,
  centerRequest,
  centerReply,
  centerFailure,
};

struct Message {
  MessageKind kind{};
  std::vector<std::byte> payload;
  std::vector<FileDescriptor> descriptors;
};

/// Bytes to send, shared when several receive the same.
using Payload = std::shared_ptr<const std::vector<std::byte>>;

Payload makePayload(std::vector<std::byte> bytes);

/// Bytes of a plain value.
template <class Value>
requires std::is_trivially_copyable_v<Value> Payload payloadOf(const Value& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  return makePayload({bytes, bytes + sizeof value});
}

/// The plain value that a message carries, if the length is right.
template <class Value>
requires std::is_trivially_copyable_v<Value> std::optional<Value> valueIn(const Message& message) {
  if (message.payload.size() != sizeof(Value)) return std::nullopt;
  Value value;
  std::memcpy(&value, message.payload.data(), sizeof value);
  return value;
}

/// One end of a connection. Both directions go on only while flush() and receive() are called.
class Channel {
 public:
  /// At first the other end is not trusted: it may send short messages only, and descriptors are thrown away.
  explicit Channel(FileDescriptor socket) noexcept : socket_(std::move(socket)) {}

  Channel(Channel&&) = default;
  Channel& operator=(Channel&&) = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int fd() const noexcept { return socket_.get(); }
  void trust() noexcept { trusted_ = true; }
  /// The longest payload that a trusted end may send from now on; 1 GiB if this is not called.
  void limitPayload(std::uint64_t bytes) noexcept { payloadLimit_ = bytes; }
  /// What is queued and received from now on is encrypted. For a trusted end, before anything else of it is received.
  void seal(const LinkKeys& keys);

  /// Appends a message to what flush() sends. The descriptors must stay open until it is sent.
  void queue(MessageKind kind, Payload payload, std::span<const int> descriptors = {});
  /// Prepares a message for sayLastWord().
  void setLastWord(MessageKind kind, Payload payload);
  /// Sends it after what is queued. Allocates nothing.
  void sayLastWord() noexcept;
  /// Forgets the messages of which no byte is sent, whose descriptors may therefore be closed.
  void dropUnsent() noexcept;
  /// Sends what the socket takes now. False when the other end is closed.
  bool flush();
  bool hasOutput() const noexcept { return !outgoing_.empty() || saysLastWord_; }
  /// The kernel has too many descriptors in flight: try again in a millisecond, not when the socket is writable.
  bool stalled() const noexcept { return stalled_; }

  /// Why it is no longer open, for messages: "closed by the other end", "sent what is no message of tacc", or what the
  /// kernel says, such as "Connection timed out".
  std::string whyClosed() const;
  /// The kernel gave up on the other end, which may not even know: its host has gone, or the network.
  bool isLost() const noexcept { return error_ != 0; }
  /// Whether bytes came that no message has taken: half a message, or what is none.
  bool hasSpoken() const noexcept { return !incoming_.empty(); }
  /// Before closing after the last message: closes this direction, and throws away what came, without which TCP would
  /// throw away what is still to be sent.
  void finish() noexcept;

  /// Reads what is there, 16 KiB in each of at most `reads` reads, so that one busy connection does not keep the
  /// others waiting. False when the other end is closed or sent what is no message; what came before can be taken.
  bool receive(int reads = 64);
  /// The next whole message.
  std::optional<Message> take();

 private:
  struct Header {
    std::uint32_t magic;
    MessageKind kind;
    std::uint64_t payloadBytes;
    std::uint32_t descriptors;
    std::uint32_t more;  // 1: descriptors of a message that goes on in the next frame
  };
  struct Frame {
    Header header;
    Payload payload;
    std::vector<int> descriptors;  // until they are sent, with the first byte
    bool isSealed = false;
    bool isBegun = false;
    std::size_t sent = 0;  // or, of a sealed one, what lies in records
  };

  std::optional<Header> peekHeader() const;
  /// What flush() sends now; null: nothing.
  Frame* nextFrame() noexcept;
  void dropFrame() noexcept;         // which has been sent
  std::size_t missingBytes() const;  // of the frame at hand, as far as its length is known
  bool noteLoss(int code) noexcept;  // whether it is that the connection has ended
  bool isAcceptable(const Header& header) const noexcept;
  bool isRecordPending() const noexcept { return sealed_ && !sealed_->out.pending().empty(); }
  std::size_t gather(Frame& frame, std::array<iovec, 2>& parts);
  void composeRecord(Frame& frame);
  void keep(std::span<const std::byte> bytes);
  void keepText(std::span<const std::byte> bytes);
  bool isGarbled() const;

  FileDescriptor socket_;
  bool trusted_ = false;
  std::uint64_t payloadLimit_ = std::uint64_t{1} << 30;
  bool stalled_ = false;
  bool garbled_ = false;                // something came that is no message
  bool forged_ = false;                 // or that the other end has not sealed
  int error_ = 0;                       // errno when the kernel gave up on the connection
  std::unique_ptr<SealedLink> sealed_;  // null: in the clear
  std::list<Frame> outgoing_;           // lists need no memory while they are empty
  std::optional<Frame> lastWord_;
  bool saysLastWord_ = false;
  std::vector<std::byte> incoming_;
  std::list<FileDescriptor> incomingDescriptors_;
  std::vector<FileDescriptor> gatheredDescriptors_;  // of frames with more = 1
};

}  // namespace tacc

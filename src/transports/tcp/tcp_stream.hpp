// Messages over one TCP connection, in both directions: what waits to be sent, and what has been read.
//
// On the wire a message is its tag, its channel, its length and whether the next may be held, 12 bytes, and its data.
// Nothing here waits. Small messages are read many at a time into a staging buffer; the rest of a long one goes
// straight to where it belongs, and the same system call reads the beginning of what follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "transports/file_descriptor.hpp"
#include "transports/network_transport.hpp"
#include "transports/tcp/sealed_records.hpp"
#include "transports/tcp/tcp_coalescing.hpp"
#include "transports/tcp/tcp_inbox.hpp"

namespace tacc {

class TcpStream {
 public:
  enum class State : std::uint8_t { open, closed };

  static constexpr std::uint32_t longestMessage = (std::uint32_t{1} << 31) - 1;

  /// `reads`: how many times its rank has read something. Throws where the message is too long.
  void send(TcpChannel& channel, std::uint32_t tag, const void* data, std::size_t bytes, std::uint64_t reads,
            NetworkRequest& request);
  /// Tells the other end.
  void send(const TcpPause& pause);
  /// Sends nothing more of the channel, but the rest of a message that has begun, of which a copy is made. Afterwards
  /// its data are not read any more. False: there was no memory for that, and the connection has to be closed.
  bool abandon(const TcpChannel& channel) noexcept;

  /// Messages may be given before there is a connection.
  void open(FileDescriptor socket) noexcept { socket_ = std::move(socket); }
  /// From the first byte on both directions are encrypted (sealed_records.hpp).
  void seal(const LinkKeys& keys) { sealed_ = std::make_unique<SealedLink>(keys); }
  /// Closes so that TCP delivers what it has taken: it would not if something stayed unread.
  void close() noexcept;
  int fd() const noexcept { return socket_.get(); }
  bool isOpen() const noexcept { return socket_.valid(); }

  /// The socket is to take something.
  bool hasOutput() const noexcept {
    return !outgoing_.empty() || !rest_.empty() || (sealed_ && !sealed_->out.pending().empty());
  }
  /// Something of the channel has not been taken by the socket, or may not have been.
  bool hasOutputOf(const TcpChannel& channel) const noexcept;
  /// Sends what the socket takes now. Closed: the other end is gone, errno says how.
  State flush();
  /// Reads what is there, or a good part of it, while the inbox has room; `moved` becomes true when something was.
  /// `hasEnded`: the connection has, so all is to be read. Closed: nothing more will come. Throws what the inbox does,
  /// and taccRemoteError for what the peer has not sent.
  State receive(TcpInbox& inbox, const TcpChannels& channels, bool hasEnded, bool& moved);

  /// acknowledge() has to come before its rank waits for long.
  bool isOwing() const noexcept { return coalescing_.isOwing(); }
  void acknowledge() noexcept { coalescing_.acknowledge(socket_.get()); }

 private:
  struct Head {
    std::uint32_t tag;      // of a signal: the channel that it is about
    std::uint32_t channel;  // or TcpChannels::signals
    std::uint32_t word;     // the length, and in the highest bit whether the next may be held (tcp_coalescing.hpp);
                            // of a signal: whether the channel has to wait

    std::size_t bytes() const noexcept { return word & longestMessage; }
    bool mayHoldNext() const noexcept { return word > longestMessage; }
  };
  static_assert(sizeof(Head) == 12);
  struct Outgoing {
    Head head;
    const std::byte* data;
    NetworkRequest* request;  // null: a signal
    TcpChannel* channel;      // null too
    std::size_t bytes() const noexcept { return channel == nullptr ? 0 : head.bytes(); }
  };

  template <class Add>
  void addOutput(std::size_t messages, const Add& add) const;
  void advanceOutput(std::size_t sent);
  State flushSealed();
  void composeRecord();
  State receiveSealed(TcpInbox& inbox, const TcpChannels& channels, bool hasEnded, bool& moved);
  void moveStagedToFront();
  void parse(TcpInbox& inbox, const TcpChannels& channels);
  bool isHeld(const TcpChannel* channel) const noexcept;
  void setHeld(TcpChannel* channel, bool isOn);

  FileDescriptor socket_;
  TcpCoalescing coalescing_;
  std::unique_ptr<SealedLink> sealed_;  // null: in the clear
  std::vector<std::byte> rest_;         // of a message whose channel has been closed; before all others
  std::deque<Outgoing> outgoing_;
  std::size_t sent_ = 0;                    // of the rest or, where there is none, of the first
  std::vector<const TcpChannel*> sealing_;  // whose messages are in the record that is pending
  std::vector<const TcpChannel*> paused_;   // the other end is not ready for more of them
  std::deque<Outgoing> held_;               // of these
  std::vector<std::byte> staging_;          // made at the first read
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace tacc

// Messages over one TCP connection, in both directions: what waits to be sent, and what has been read.
//
// On the wire a message is its tag, its length and whether the next may be held, 8 bytes, and its data. Nothing here
// waits. Small messages are read many at a time into a staging buffer; the rest of a long one goes straight to where it
// belongs, and the same system call reads the beginning of what follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "transports/file_descriptor.hpp"
#include "transports/network_transport.hpp"
#include "transports/sealed_records.hpp"
#include "transports/tcp_coalescing.hpp"
#include "transports/tcp_inbox.hpp"

namespace tacc {

class TcpStream {
 public:
  enum class State : std::uint8_t { open, closed };

  static constexpr std::uint32_t longestMessage = (std::uint32_t{1} << 31) - 1;

  /// `reads`: how many times its rank has read something. Throws where the message is too long.
  void send(std::uint32_t tag, const void* data, std::size_t bytes, std::uint64_t reads, NetworkRequest& request);

  /// Messages may be given before there is a connection.
  void open(FileDescriptor socket) noexcept { socket_ = std::move(socket); }
  /// From the first byte on both directions are encrypted (sealed_records.hpp).
  void seal(const LinkKeys& keys) { sealed_ = std::make_unique<SealedLink>(keys); }
  /// Closes so that TCP delivers what it has taken: it would not if something stayed unread.
  void close() noexcept;
  int fd() const noexcept { return socket_.get(); }
  bool isOpen() const noexcept { return socket_.valid(); }

  bool hasOutput() const noexcept { return !outgoing_.empty() || (sealed_ && !sealed_->out.pending().empty()); }
  /// Sends what the socket takes now. Closed: the other end is gone, errno says how.
  State flush();
  /// Reads what is there, or a good part of it, while the inbox has room; `moved` becomes true when something was.
  /// `hasEnded`: the connection has, so all is to be read. Closed: nothing more will come. Throws what the inbox does.
  State receive(TcpInbox& inbox, bool hasEnded, bool& moved);

  /// acknowledge() has to come before its rank waits for long.
  bool isOwing() const noexcept { return coalescing_.isOwing(); }
  void acknowledge() noexcept { coalescing_.acknowledge(socket_.get()); }

 private:
  struct Head {
    std::uint32_t tag;
    std::uint32_t word;  // the length, and in the highest bit whether the next may be held (tcp_coalescing.hpp)

    std::size_t bytes() const noexcept { return word & longestMessage; }
    bool mayHoldNext() const noexcept { return word > longestMessage; }
  };
  static_assert(sizeof(Head) == 8);
  struct Outgoing {
    Head head;
    const std::byte* data;
    NetworkRequest* request;
  };

  void advanceOutput(std::size_t sent);
  State flushSealed();
  void composeRecord();
  State receiveSealed(TcpInbox& inbox, bool hasEnded, bool& moved);
  void moveStagedToFront();
  void parse(TcpInbox& inbox);

  FileDescriptor socket_;
  TcpCoalescing coalescing_;
  std::unique_ptr<SealedLink> sealed_;  // null: in the clear
  std::deque<Outgoing> outgoing_;
  std::size_t sent_ = 0;            // of the first
  std::vector<std::byte> staging_;  // made at the first read
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace tacc

#include "transports/tcp_stream.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"

namespace tacc {
namespace {

constexpr std::size_t stagingBytes = std::size_t{64} << 10;
constexpr std::size_t sealedReadBytes = std::size_t{128} << 10;  // two records
constexpr std::size_t piecesAtOnce = 32;                         // of one system call; two for a message
/// Reads in a row before others have their turn, and before the engine can use what has come.
constexpr int readsAtOnce = 4;

bool isAgain(int code) noexcept { return code == EAGAIN || code == EWOULDBLOCK; }

}  // namespace

void TcpStream::send(std::uint32_t tag, const void* data, std::size_t bytes, std::uint64_t reads,
                     NetworkRequest& request) {
  if (bytes > longestMessage)
    fail(taccInternalError, "a message of {} bytes, over TCP it is {} at most", bytes, longestMessage);
  request.done = false;
  const bool mayHoldNext = isOpen() && coalescing_.beforeSend(socket_.get(), bytes, reads);
  const std::uint32_t word = static_cast<std::uint32_t>(bytes) + (mayHoldNext ? longestMessage + 1 : 0);
  outgoing_.push_back({{tag, word}, static_cast<const std::byte*>(data), &request});
}

void TcpStream::close() noexcept {
  if (!socket_.valid()) return;
  ::shutdown(socket_.get(), SHUT_WR);
  while (!staging_.empty() && ::recv(socket_.get(), staging_.data(), staging_.size(), MSG_DONTWAIT) > 0) continue;
  socket_.reset();
}

TcpStream::State TcpStream::flush() {
  if (sealed_) return flushSealed();
  while (!outgoing_.empty()) {
    std::array<iovec, piecesAtOnce> pieces;
    std::size_t count = 0, total = 0, skip = sent_;
    const auto add = [&](const std::byte* data, std::size_t bytes) {
      const std::size_t skipped = std::min(skip, bytes);
      skip -= skipped;
      if (bytes == skipped) return;
      pieces[count++] = {const_cast<std::byte*>(data) + skipped, bytes - skipped};
      total += bytes - skipped;
    };
    for (const Outgoing& message : outgoing_) {
      if (count + 2 > piecesAtOnce) break;
      add(reinterpret_cast<const std::byte*>(&message.head), sizeof message.head);
      add(message.data, message.head.bytes());
    }
    msghdr header{};
    header.msg_iov = pieces.data();
    header.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return isAgain(errno) ? State::open : State::closed;
    advanceOutput(static_cast<std::size_t>(sent));
    if (static_cast<std::size_t>(sent) < total) return State::open;
  }
  return State::open;
}

/// What is in a record has left its caller's memory, and is `done`; drain() waits for the record.
TcpStream::State TcpStream::flushSealed() {
  for (;;) {
    if (sealed_->out.pending().empty()) {
      if (outgoing_.empty()) return State::open;
      composeRecord();
    }
    const std::span<const std::byte> pending = sealed_->out.pending();
    const ssize_t sent = ::send(socket_.get(), pending.data(), pending.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return isAgain(errno) ? State::open : State::closed;
    sealed_->out.advance(static_cast<std::size_t>(sent));
    if (static_cast<std::size_t>(sent) < pending.size()) return State::open;
  }
}

/// As many of the messages as one record takes.
void TcpStream::composeRecord() {
  std::size_t total = 0;
  for (const Outgoing& message : outgoing_) {
    total += sizeof message.head + message.head.bytes();
    if (total - sent_ >= RecordCipher::longestText) break;
  }
  const std::span<std::byte> text = sealed_->out.compose(std::min(total - sent_, RecordCipher::longestText));
  std::size_t skip = sent_, filled = 0;
  const auto add = [&](const void* data, std::size_t bytes) {
    const std::size_t skipped = std::min(skip, bytes);
    skip -= skipped;
    const std::size_t count = std::min(bytes - skipped, text.size() - filled);
    if (count > 0) std::memcpy(text.data() + filled, static_cast<const std::byte*>(data) + skipped, count);
    filled += count;
  };
  for (auto message = outgoing_.begin(); filled < text.size(); ++message) {
    add(&message->head, sizeof message->head);
    add(message->data, message->head.bytes());
  }
  sealed_->out.seal();
  advanceOutput(text.size());
}

void TcpStream::advanceOutput(std::size_t sent) {
  sent_ += sent;
  while (!outgoing_.empty()) {
    const Outgoing& first = outgoing_.front();
    const std::size_t whole = sizeof first.head + first.head.bytes();
    if (sent_ < whole) return;
    sent_ -= whole;
    first.request->done = true;
    outgoing_.pop_front();
  }
}

/// Half a header at most is left.
void TcpStream::moveStagedToFront() {
  std::memmove(staging_.data(), staging_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
}

TcpStream::State TcpStream::receive(TcpInbox& inbox, bool hasEnded, bool& moved) {
  if (sealed_) return receiveSealed(inbox, hasEnded, moved);
  if (staging_.empty()) staging_.resize(stagingBytes);
  for (int turn = 0; hasEnded || (turn < readsAtOnce && inbox.hasRoom()); ++turn) {
    moveStagedToFront();
    const std::span<std::byte> landing = inbox.landing();
    iovec pieces[2] = {{landing.data(), landing.size()}, {staging_.data() + end_, stagingBytes - end_}};
    const bool direct = !landing.empty();
    const std::size_t wanted = landing.size() + stagingBytes - end_;
    msghdr header{};
    header.msg_iov = pieces;
    header.msg_iovlen = 2;
    // A look at one piece costs the kernel half of one at a list.
    const ssize_t got = direct ? ::recvmsg(socket_.get(), &header, MSG_DONTWAIT)
                               : ::recv(socket_.get(), pieces[1].iov_base, pieces[1].iov_len, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return isAgain(errno) ? State::open : State::closed;
    if (got == 0) {
      errno = ECONNRESET;
      return State::closed;
    }
    moved = true;
    const auto bytes = static_cast<std::size_t>(got);
    const std::size_t landed = std::min(bytes, landing.size());
    inbox.landed(landed);
    end_ += bytes - landed;
    parse(inbox);
    if (bytes < wanted && !hasEnded) return State::open;  // that was all
  }
  return State::open;
}

TcpStream::State TcpStream::receiveSealed(TcpInbox& inbox, bool hasEnded, bool& moved) {
  for (int turn = 0; hasEnded || (turn < readsAtOnce && inbox.hasRoom()); ++turn) {
    const std::span<std::byte> room = sealed_->in.room(sealedReadBytes);
    const ssize_t got = ::recv(socket_.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return isAgain(errno) ? State::open : State::closed;
    if (got == 0) {
      errno = ECONNRESET;
      return State::closed;
    }
    moved = true;
    sealed_->in.arrived(static_cast<std::size_t>(got));
    while (const auto text = sealed_->in.next()) {
      moveStagedToFront();
      if (staging_.size() < end_ + text->size()) staging_.resize(end_ + text->size());
      std::memcpy(staging_.data() + end_, text->data(), text->size());
      end_ += text->size();
      parse(inbox);
    }
    if (sealed_->in.isForged()) inbox.failForged();
    if (static_cast<std::size_t>(got) < room.size() && !hasEnded) return State::open;  // that was all
  }
  return State::open;
}

void TcpStream::parse(TcpInbox& inbox) {
  for (;;) {
    // A message that is kept makes room bit by bit.
    for (std::span<std::byte> landing = inbox.landing(); !landing.empty(); landing = inbox.landing()) {
      const std::size_t bytes = std::min(landing.size(), end_ - begin_);
      if (bytes == 0) return;
      std::memcpy(landing.data(), staging_.data() + begin_, bytes);
      begin_ += bytes;
      inbox.landed(bytes);
    }
    Head head;
    if (end_ - begin_ < sizeof head) return;
    std::memcpy(&head, staging_.data() + begin_, sizeof head);
    inbox.begin(head.tag, head.bytes());
    begin_ += sizeof head;  // afterwards: a message that is an Error stays one
    coalescing_.onRead(socket_.get(), head.mayHoldNext());
  }
}

}  // namespace tacc

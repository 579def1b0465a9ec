#include "transports/tcp/tcp_stream.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "core/error.hpp"

namespace tacc {
namespace {

constexpr std::size_t stagingBytes = std::size_t{64} << 10;
constexpr std::size_t sealedReadBytes = std::size_t{128} << 10;  // two records
constexpr std::size_t piecesAtOnce = 32;                         // of one system call; two for a message
/// Reads in a row before others have their turn, and before the engine can use what has come.
constexpr int readsAtOnce = 4;

bool isAgain(int code) noexcept { return code == EAGAIN || code == EWOULDBLOCK; }

}  // namespace

void TcpStream::send(TcpChannel& channel, std::uint32_t tag, const void* data, std::size_t bytes, std::uint64_t reads,
                     NetworkRequest& request) {
  if (bytes > longestMessage)
    fail(taccInternalError, "a message of {} bytes, over TCP it is {} at most", bytes, longestMessage);
  request.done = false;
  const bool mayHoldNext = isOpen() && coalescing_.beforeSend(socket_.get(), bytes, reads);
  const std::uint32_t word = static_cast<std::uint32_t>(bytes) + (mayHoldNext ? longestMessage + 1 : 0);
  auto& queue = paused_.empty() || !isHeld(&channel) ? outgoing_ : held_;
  queue.push_back({{tag, channel.number, word}, static_cast<const std::byte*>(data), &request, &channel});
}

void TcpStream::send(const TcpPause& pause) {
  outgoing_.push_back({{pause.channel, TcpChannels::signals, pause.isOn ? 1U : 0U}, nullptr, nullptr, nullptr});
}

bool TcpStream::isHeld(const TcpChannel* channel) const noexcept {
  return std::ranges::find(paused_, channel) != paused_.end();
}

/// A message that has begun goes on; the others of the channel keep their order.
void TcpStream::setHeld(TcpChannel* channel, bool isOn) {
  if (channel == nullptr || isHeld(channel) == isOn) return;
  if (isOn)
    paused_.push_back(channel);
  else
    std::erase(paused_, channel);
  auto& from = isOn ? outgoing_ : held_;
  auto& to = isOn ? held_ : outgoing_;
  const bool hasBegun = isOn && rest_.empty() && sent_ > 0;
  const auto first = from.begin() + (hasBegun ? 1 : 0);
  const auto isOthers = [channel](const Outgoing& message) { return message.channel != channel; };
  const auto moved = std::stable_partition(first, from.end(), isOthers);
  to.insert(to.end(), moved, from.end());
  from.erase(moved, from.end());
}

bool TcpStream::abandon(const TcpChannel& channel) noexcept {
  const auto isIts = [&](const Outgoing& message) { return message.channel == &channel; };
  std::erase(paused_, &channel);
  std::erase(sealing_, &channel);
  std::erase_if(held_, isIts);
  const bool hasBegun = rest_.empty() && sent_ > 0 && isIts(outgoing_.front());
  bool isWell = true;
  if (hasBegun) {
    try {
      addOutput(1, [&](const std::byte* data, std::size_t bytes) { rest_.insert(rest_.end(), data, data + bytes); });
    } catch (const std::bad_alloc&) {
      isWell = false;
    }
    sent_ = 0;
  }
  std::erase_if(outgoing_, isIts);
  return isWell;
}

bool TcpStream::hasOutputOf(const TcpChannel& channel) const noexcept {
  const auto isIts = [&](const Outgoing& message) { return message.channel == &channel; };
  const bool isSealed =
      sealed_ && !sealed_->out.pending().empty() && std::ranges::find(sealing_, &channel) != sealing_.end();
  return isSealed || std::ranges::any_of(outgoing_, isIts) || std::ranges::any_of(held_, isIts);
}

/// What is left of the next messages, `messages` of them, in order.
template <class Add>
void TcpStream::addOutput(std::size_t messages, const Add& add) const {
  std::size_t skip = sent_;
  const auto addRest = [&](const std::byte* data, std::size_t bytes) {
    const std::size_t skipped = std::min(skip, bytes);
    skip -= skipped;
    if (bytes > skipped) add(data + skipped, bytes - skipped);
  };
  addRest(rest_.data(), rest_.size());
  for (std::size_t i = 0; i < outgoing_.size() && i < messages; ++i) {
    addRest(reinterpret_cast<const std::byte*>(&outgoing_[i].head), sizeof(Head));
    addRest(outgoing_[i].data, outgoing_[i].bytes());
  }
}

void TcpStream::close() noexcept {
  if (!socket_.valid()) return;
  ::shutdown(socket_.get(), SHUT_WR);
  while (!staging_.empty() && ::recv(socket_.get(), staging_.data(), staging_.size(), MSG_DONTWAIT) > 0) continue;
  socket_.reset();
}

TcpStream::State TcpStream::flush() {
  if (sealed_) return flushSealed();
  while (hasOutput()) {
    std::array<iovec, piecesAtOnce> pieces;
    std::size_t count = 0, total = 0;
    addOutput((piecesAtOnce - 1) / 2, [&](const std::byte* data, std::size_t bytes) {
      pieces[count++] = {const_cast<std::byte*>(data), bytes};
      total += bytes;
    });
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
      if (outgoing_.empty() && rest_.empty()) return State::open;
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
  std::size_t total = rest_.size(), messages = 0;
  sealing_.clear();
  for (; messages < outgoing_.size() && total < sent_ + RecordCipher::longestText; ++messages) {
    const Outgoing& message = outgoing_[messages];
    total += sizeof(Head) + message.bytes();
    if (std::ranges::find(sealing_, message.channel) == sealing_.end()) sealing_.push_back(message.channel);
  }
  const std::span<std::byte> text = sealed_->out.compose(std::min(total - sent_, RecordCipher::longestText));
  std::size_t filled = 0;
  addOutput(messages, [&](const std::byte* data, std::size_t bytes) {
    const std::size_t count = std::min(bytes, text.size() - filled);
    if (count > 0) std::memcpy(text.data() + filled, data, count);
    filled += count;
  });
  sealed_->out.seal();
  advanceOutput(text.size());
}

void TcpStream::advanceOutput(std::size_t sent) {
  sent_ += sent;
  if (!rest_.empty()) {
    if (sent_ < rest_.size()) return;
    sent_ -= rest_.size();
    rest_.clear();
  }
  while (!outgoing_.empty()) {
    const Outgoing& first = outgoing_.front();
    const std::size_t whole = sizeof first.head + first.bytes();
    if (sent_ < whole) return;
    sent_ -= whole;
    if (first.channel != nullptr) first.channel->complete(*first.request);
    outgoing_.pop_front();
  }
}

/// Half a header at most is left.
void TcpStream::moveStagedToFront() {
  if (end_ > begin_) std::memmove(staging_.data(), staging_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
}

TcpStream::State TcpStream::receive(TcpInbox& inbox, const TcpChannels& channels, bool hasEnded, bool& moved) {
  if (sealed_) return receiveSealed(inbox, channels, hasEnded, moved);
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
    parse(inbox, channels);
    if (bytes < wanted && !hasEnded) return State::open;  // that was all
  }
  return State::open;
}

TcpStream::State TcpStream::receiveSealed(TcpInbox& inbox, const TcpChannels& channels, bool hasEnded, bool& moved) {
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
      parse(inbox, channels);
    }
    if (sealed_->in.isForged())
      fail(taccRemoteError, "they were changed, repeated or left out on their way (TACC_ENCRYPTION=on, tcp)");
    if (static_cast<std::size_t>(got) < room.size() && !hasEnded) return State::open;  // that was all
  }
  return State::open;
}

void TcpStream::parse(TcpInbox& inbox, const TcpChannels& channels) {
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
    begin_ += sizeof head;
    if (head.channel == TcpChannels::signals) {
      setHeld(channels.find(head.tag), head.word != 0);
      continue;
    }
    inbox.begin(channels.find(head.channel), head.tag, head.bytes());
    coalescing_.onRead(socket_.get(), head.mayHoldNext());
  }
}

}  // namespace tacc

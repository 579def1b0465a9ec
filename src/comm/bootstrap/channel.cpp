#include "comm/bootstrap/channel.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "transports/spare_descriptors.hpp"
#include "transports/unix_socket.hpp"

namespace tacc {
namespace {

constexpr std::uint32_t frameMagic = 0x7acc0f0a;
/// The kernel passes at most 253 in one call.
constexpr std::size_t descriptorsPerFrame = 128;
constexpr std::uint64_t strangerPayloadLimit = 256;
constexpr std::uint64_t reserveLimit = std::uint64_t{1} << 26;
/// Of what finish() throws away.
constexpr int readsAtOnce = 64;

using ControlBuffer = std::array<std::byte, CMSG_SPACE(descriptorsPerFrame * sizeof(int))>;

}  // namespace

Payload makePayload(std::vector<std::byte> bytes) {
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

void Channel::queue(MessageKind kind, Payload payload, std::span<const int> descriptors) {
  if (payload == nullptr) payload = makePayload({});
  const Payload nothing = makePayload({});
  for (;;) {
    const std::span<const int> some = descriptors.first(std::min(descriptors.size(), descriptorsPerFrame));
    descriptors = descriptors.subspan(some.size());
    const bool more = !descriptors.empty();
    const Payload& carried = more ? nothing : payload;
    const Header header{frameMagic, kind, carried->size(), static_cast<std::uint32_t>(some.size()), more ? 1u : 0u};
    outgoing_.push_back({header, carried, {some.begin(), some.end()}, sealed_ != nullptr});
    if (!more) return;
  }
}

void Channel::setLastWord(MessageKind kind, Payload payload) {
  const Header header{frameMagic, kind, payload->size(), 0, 0};
  lastWord_ = Frame{header, std::move(payload), {}};
}

void Channel::sayLastWord() noexcept {
  if (!lastWord_ || !socket_.valid()) return;
  if (!saysLastWord_) lastWord_->isSealed = sealed_ != nullptr;
  saysLastWord_ = true;
  try {
    (void)flush();
  } catch (const std::exception&) {
    // The connection has ended.
  }
}

Channel::Frame* Channel::nextFrame() noexcept {
  if (!outgoing_.empty()) return &outgoing_.front();
  return saysLastWord_ ? &*lastWord_ : nullptr;
}

void Channel::dropFrame() noexcept {
  if (!outgoing_.empty()) return outgoing_.pop_front();
  saysLastWord_ = false;
  lastWord_.reset();
}

void Channel::seal(const LinkKeys& keys) { sealed_ = std::make_unique<SealedLink>(keys); }

/// The next piece of the frame becomes a record, which never goes beyond its frame: descriptors go with a frame's
/// first byte.
void Channel::composeRecord(Frame& frame) {
  const std::size_t left = sizeof(Header) + frame.payload->size() - frame.sent;
  const std::span<std::byte> text = sealed_->out.compose(std::min(left, RecordCipher::longestText));
  const auto header = bytesOf(frame.header);
  const std::size_t ofHeader = frame.sent < header.size() ? std::min(header.size() - frame.sent, text.size()) : 0;
  if (ofHeader > 0) std::memcpy(text.data(), header.data() + frame.sent, ofHeader);
  if (text.size() > ofHeader)
    std::memcpy(text.data() + ofHeader, frame.payload->data() + (frame.sent + ofHeader - header.size()),
                text.size() - ofHeader);
  frame.sent += text.size();
  sealed_->out.seal();
}

void Channel::dropUnsent() noexcept {
  const bool isBegun = !outgoing_.empty() && outgoing_.front().isBegun;
  if (!isBegun && isRecordPending()) sealed_->out.takeBack();
  outgoing_.erase(std::next(outgoing_.begin(), isBegun ? 1 : 0), outgoing_.end());
}

/// What is to be sent of the frame now: how many parts there are.
std::size_t Channel::gather(Frame& frame, std::array<iovec, 2>& parts) {
  if (frame.isSealed) {
    if (!isRecordPending()) composeRecord(frame);
    const std::span<const std::byte> record = sealed_->out.pending();
    parts[0] = {const_cast<std::byte*>(record.data()), record.size()};
    return 1;
  }
  const std::size_t ofHeader = std::min(frame.sent, sizeof(Header)), ofPayload = frame.sent - ofHeader;
  parts[0] = {reinterpret_cast<std::byte*>(&frame.header) + ofHeader, sizeof(Header) - ofHeader};
  parts[1] = {const_cast<std::byte*>(frame.payload->data()) + ofPayload, frame.payload->size() - ofPayload};
  return 2;
}

bool Channel::flush() {
  stalled_ = false;
  while (Frame* const next = nextFrame()) {
    Frame& frame = *next;
    std::array<iovec, 2> parts;
    msghdr message{};
    message.msg_iovlen = gather(frame, parts);
    message.msg_iov = parts.data();
    alignas(cmsghdr) ControlBuffer control{};
    if (!frame.descriptors.empty()) {
      const std::size_t bytes = frame.descriptors.size() * sizeof(int);
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(bytes);
      cmsghdr* rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(bytes);
      std::memcpy(CMSG_DATA(rights), frame.descriptors.data(), bytes);
    }
    const ssize_t count = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return true;
      if (errno == ETOOMANYREFS) {
        stalled_ = true;
        return true;
      }
      if (noteLoss(errno)) return false;
      failErrno("cannot send to another rank");
    }
    frame.isBegun = true;
    frame.descriptors.clear();
    if (frame.isSealed)
      sealed_->out.advance(static_cast<std::size_t>(count));
    else
      frame.sent += static_cast<std::size_t>(count);
    if (frame.sent == sizeof(Header) + frame.payload->size() && !(frame.isSealed && isRecordPending())) dropFrame();
  }
  return true;
}

bool Channel::receive(int reads) {
  if (garbled_) return false;
  std::array<std::byte, 16384> buffer;
  for (int read = 0; read < reads; ++read) {
    // From a stranger no byte beyond the message at hand: what follows may already be sent to a trusted end, with
    // descriptors.
    const std::size_t wanted = trusted_ ? buffer.size() : missingBytes();
    if (wanted == 0) return true;
    iovec part{buffer.data(), std::min(buffer.size(), wanted)};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) ControlBuffer control;
    // Without room for them the kernel closes a stranger's descriptors again.
    if (trusted_) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
    }
    std::optional<TakenStandardNumbers> taken;
    if (trusted_) taken.emplace();
    const ssize_t count = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return true;
      if (noteLoss(errno)) return false;
      failErrno("cannot receive from another rank");
    }
    if (count == 0) return false;
    if (trusted_) {
      std::ranges::move(takeDescriptors(message), std::back_inserter(incomingDescriptors_));
      if ((message.msg_flags & MSG_CTRUNC) != 0) {
        fail(taccSystemError, "descriptors from another rank were lost: Too many open files{}",
             describeShortage(EMFILE));
      }
    }
    keep(std::span(buffer).first(static_cast<std::size_t>(count)));
    if (garbled_) return false;
  }
  return true;
}

/// Bytes that have come.
void Channel::keep(std::span<const std::byte> bytes) {
  if (!sealed_) return keepText(bytes);
  std::ranges::copy(bytes, sealed_->in.room(bytes.size()).begin());
  sealed_->in.arrived(bytes.size());
  while (const auto text = sealed_->in.next()) keepText(*text);
  forged_ = sealed_->in.isForged();
  garbled_ = garbled_ || forged_;
}

void Channel::keepText(std::span<const std::byte> bytes) {
  incoming_.insert(incoming_.end(), bytes.begin(), bytes.end());
  garbled_ = garbled_ || isGarbled();
  const std::optional<Header> header = peekHeader();
  if (!header) return;
  // Else it would be copied again and again as it grows.
  if (!garbled_) incoming_.reserve(sizeof(Header) + std::min(header->payloadBytes, reserveLimit));
}

bool Channel::noteLoss(int code) noexcept {
  switch (code) {
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
      return true;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
    case ENETRESET:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ENONET:
    case EPROTO:
      error_ = code;
      return true;
    default:
      return false;
  }
}

std::string Channel::whyClosed() const {
  if (forged_) return "bytes were changed, repeated or left out on their way here (TACC_ENCRYPTION=on)";
  if (garbled_) return "sent what is no message of tacc";
  return error_ != 0 ? std::strerror(error_) : "closed by the other end";
}

void Channel::finish() noexcept {
  if (!socket_.valid()) return;
  (void)::shutdown(socket_.get(), SHUT_WR);
  std::array<std::byte, 4096> waste;
  for (int read = 0; read < readsAtOnce; ++read) {
    if (::recv(socket_.get(), waste.data(), waste.size(), MSG_DONTWAIT) <= 0) return;
  }
}

std::optional<Channel::Header> Channel::peekHeader() const {
  if (incoming_.size() < sizeof(Header)) return std::nullopt;
  Header header;
  std::memcpy(&header, incoming_.data(), sizeof header);
  return header;
}

std::size_t Channel::missingBytes() const {
  const std::optional<Header> header = peekHeader();
  const std::size_t end = sizeof(Header) + (header ? header->payloadBytes : 0);
  return end - std::min(end, incoming_.size());
}

bool Channel::isAcceptable(const Header& header) const noexcept {
  return header.magic == frameMagic && header.payloadBytes <= (trusted_ ? payloadLimit_ : strangerPayloadLimit) &&
         header.descriptors <= (trusted_ ? descriptorsPerFrame : 0);
}

/// Whether something came that is no message, also behind whole ones that are, or descriptors that no message has.
bool Channel::isGarbled() const {
  std::size_t descriptors = 0, at = 0;
  while (incoming_.size() - at >= sizeof(Header)) {
    Header header;
    std::memcpy(&header, incoming_.data() + at, sizeof header);
    if (!isAcceptable(header)) return true;
    descriptors += header.descriptors;
    if (header.payloadBytes > incoming_.size() - at - sizeof header) {
      at = incoming_.size();
      break;
    }
    at += sizeof header + header.payloadBytes;
  }
  // They come with the first byte of their frame, and of a sealed one before its first record is whole.
  if (at < incoming_.size() || sealed_) descriptors += descriptorsPerFrame;
  return incomingDescriptors_.size() > descriptors;
}

std::optional<Message> Channel::take() {
  for (;;) {
    const std::optional<Header> header = peekHeader();
    if (!header || !isAcceptable(*header)) return std::nullopt;
    const std::size_t end = sizeof(Header) + header->payloadBytes;
    if (incoming_.size() < end || incomingDescriptors_.size() < header->descriptors) return std::nullopt;
    for (std::uint32_t i = 0; i < header->descriptors; ++i) {
      gatheredDescriptors_.push_back(std::move(incomingDescriptors_.front()));
      incomingDescriptors_.pop_front();
    }
    Message message;
    message.kind = header->kind;
    message.payload.assign(incoming_.begin() + sizeof(Header), incoming_.begin() + static_cast<std::ptrdiff_t>(end));
    incoming_.erase(incoming_.begin(), incoming_.begin() + static_cast<std::ptrdiff_t>(end));
    if (header->more != 0) continue;
    message.descriptors = std::exchange(gatheredDescriptors_, {});
    return message;
  }
}

}  // namespace tacc

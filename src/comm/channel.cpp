#include "comm/channel.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "transports/spare_descriptors.hpp"

namespace tacc {
namespace {

constexpr std::uint32_t frameMagic = 0x7acc0f0a;
/// The kernel passes at most 253 in one call.
constexpr std::size_t descriptorsPerFrame = 128;
constexpr std::uint64_t payloadLimit = std::uint64_t{1} << 30;
constexpr std::uint64_t strangerPayloadLimit = 256;
constexpr std::uint64_t reserveLimit = std::uint64_t{1} << 26;
/// Calls of recvmsg in a row, so that one busy connection does not keep the others waiting.
constexpr int readsAtOnce = 64;

using ControlBuffer = std::array<std::byte, CMSG_SPACE(descriptorsPerFrame * sizeof(int))>;

/// Takes the descriptors out of a received control message.
void collectDescriptors(msghdr& message, std::deque<FileDescriptor>& descriptors) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
}

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
    outgoing_.push_back({header, carried, {some.begin(), some.end()}, 0});
    if (!more) return;
  }
}

void Channel::setLastWord(MessageKind kind, Payload payload) {
  const Header header{frameMagic, kind, payload->size(), 0, 0};
  lastWord_ = Frame{header, std::move(payload), {}, 0};
}

void Channel::sayLastWord() noexcept {
  if (!lastWord_ || !socket_.valid()) return;
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

void Channel::dropUnsent() noexcept {
  const bool isBegun = !outgoing_.empty() && outgoing_.front().sent > 0;
  outgoing_.erase(outgoing_.begin() + (isBegun ? 1 : 0), outgoing_.end());
}

bool Channel::flush() {
  stalled_ = false;
  while (Frame* const next = nextFrame()) {
    Frame& frame = *next;
    const std::size_t headerSent = std::min(frame.sent, sizeof(Header));
    const std::size_t payloadSent = frame.sent - headerSent;
    std::array<iovec, 2> parts;
    parts[0] = {reinterpret_cast<std::byte*>(&frame.header) + headerSent, sizeof(Header) - headerSent};
    parts[1] = {const_cast<std::byte*>(frame.payload->data()) + payloadSent, frame.payload->size() - payloadSent};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    alignas(cmsghdr) ControlBuffer control{};
    if (frame.sent == 0 && !frame.descriptors.empty()) {
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
    frame.sent += static_cast<std::size_t>(count);
    if (frame.sent == sizeof(Header) + frame.payload->size()) dropFrame();
  }
  return true;
}

bool Channel::receive() {
  if (garbled_) return false;
  std::array<std::byte, 16384> buffer;
  for (int read = 0; read < readsAtOnce; ++read) {
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
    const ssize_t count = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return true;
      if (noteLoss(errno)) return false;
      failErrno("cannot receive from another rank");
    }
    if (count == 0) return false;
    if (trusted_) {
      collectDescriptors(message, incomingDescriptors_);
      if ((message.msg_flags & MSG_CTRUNC) != 0) {
        fail(taccSystemError, "descriptors from another rank were lost: Too many open files{}",
             describeShortage(EMFILE));
      }
    }
    incoming_.insert(incoming_.end(), buffer.begin(), buffer.begin() + count);
    const std::optional<Header> header = peekHeader();
    if (header && !isAcceptable(*header)) {
      garbled_ = true;
      return false;
    }
    // Else it would be copied again and again as it grows.
    if (header) incoming_.reserve(sizeof(Header) + std::min(header->payloadBytes, reserveLimit));
  }
  return true;
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
  return header.magic == frameMagic && header.payloadBytes <= (trusted_ ? payloadLimit : strangerPayloadLimit) &&
         header.descriptors <= (trusted_ ? descriptorsPerFrame : 0);
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

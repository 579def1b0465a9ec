#include "fuzz/memory_sockets.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

namespace tacc::fuzz {
namespace {

constexpr std::size_t capacity = 212992;  // as the kernel's, of a stream and of a queue of datagrams
constexpr std::size_t mostDatagrams = 64, mostCallers = 128;
constexpr std::size_t mostPassed = 253;

/// Descriptors are closed until the very end of the process.
std::map<std::string, MemorySocket*>& names() {
  static auto* const only = new std::map<std::string, MemorySocket*>;
  return *only;
}

std::size_t sizeOf(const msghdr& message) noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < message.msg_iovlen; ++i) bytes += message.msg_iov[i].iov_len;
  return bytes;
}

}  // namespace

MemorySocket::~MemorySocket() {
  if (!name_.empty()) names().erase(name_);
  if (peer_ == nullptr) return;
  peer_->peer_ = nullptr;
  peer_->isShut_ = true;
  peer_->isReset_ = !incoming_.empty();
}

void MemorySocket::connect(const Shared& one, const Shared& other) noexcept {
  one->peer_ = other.get();
  other->peer_ = one.get();
  one->wasConnected_ = other->wasConnected_ = true;
}

MemorySocket* MemorySocket::find(const std::string& name) noexcept {
  const auto found = names().find(name);
  return found == names().end() ? nullptr : found->second;
}

int MemorySocket::bind(std::string name) {
  if (!names().emplace(name, this).second) return -EADDRINUSE;
  name_ = std::move(name);
  return 0;
}

int MemorySocket::listen() noexcept {
  isListening_ = true;
  return 0;
}

int MemorySocket::call(const std::string& name) {
  MemorySocket* const listener = find(name);
  if (listener == nullptr || !listener->isListening_) return -ECONNREFUSED;
  if (listener->callers_.size() >= mostCallers) return -EAGAIN;
  auto accepted = std::make_shared<MemorySocket>(Kind::stream);
  accepted->peer_ = this;
  peer_ = accepted.get();
  wasConnected_ = accepted->wasConnected_ = true;
  listener->callers_.push_back(std::move(accepted));
  return 0;
}

MemorySocket::Shared MemorySocket::accept() noexcept {
  if (callers_.empty()) return nullptr;
  Shared first = std::move(callers_.front());
  callers_.pop_front();
  return first;
}

void MemorySocket::shutdown() noexcept {
  if (peer_ != nullptr) peer_->isShut_ = true;
}

bool MemorySocket::isFull() const noexcept {
  return waiting_ >= capacity || (kind_ == Kind::datagram && incoming_.size() >= mostDatagrams);
}

ssize_t MemorySocket::send(const msghdr& message) {
  if (kind_ == Kind::datagram) {
    if (message.msg_name == nullptr) return -ENOTCONN;
    const auto* address = static_cast<const char*>(message.msg_name);
    MemorySocket* const to = find({address, message.msg_namelen});
    return to == nullptr ? -ECONNREFUSED : to->enqueue(message);
  }
  if (!wasConnected_) return -ENOTCONN;
  if (peer_ == nullptr || peer_->isShut_) return -EPIPE;
  return peer_->enqueue(message);
}

ssize_t MemorySocket::enqueue(const msghdr& message) {
  const std::size_t bytes = sizeOf(message);
  if (isFull() || (kind_ == Kind::datagram && bytes > capacity)) return -EAGAIN;
  if (kind_ == Kind::stream && bytes == 0) return 0;
  std::size_t left = kind_ == Kind::stream ? std::min(bytes, capacity - waiting_) : bytes;
  const std::size_t taken = left;
  std::vector<Passed> passed = passedWith(message);
  if (passed.size() > mostPassed) return -EINVAL;
  const bool joins = kind_ == Kind::stream && passed.empty() && !incoming_.empty() && incoming_.back().passed.empty();
  Piece& piece = joins ? incoming_.back() : incoming_.emplace_back();
  piece.passed = std::move(passed);
  for (std::size_t i = 0; i < message.msg_iovlen && left > 0; ++i) {
    const iovec& part = message.msg_iov[i];
    const std::size_t some = std::min(left, part.iov_len);
    const auto* begin = static_cast<const std::byte*>(part.iov_base);
    piece.bytes.insert(piece.bytes.end(), begin, begin + some);
    left -= some;
  }
  waiting_ += taken;
  return static_cast<ssize_t>(taken);
}

ssize_t MemorySocket::receive(msghdr& message, int flags) {
  std::size_t room = message.msg_control == nullptr ? 0 : message.msg_controllen;
  message.msg_controllen = 0;
  message.msg_flags = 0;
  if (incoming_.empty()) {
    if (std::exchange(isReset_, false)) return -ECONNRESET;
    if (kind_ == Kind::stream && !wasConnected_) return -EINVAL;
    return kind_ == Kind::stream && isShut_ ? 0 : -EAGAIN;
  }
  std::size_t got = 0;
  for (std::size_t i = 0, at = 0; i < message.msg_iovlen && !incoming_.empty();) {
    Piece& piece = incoming_.front();
    if (!piece.passed.empty()) handOver(piece.passed, message, room);
    const iovec& part = message.msg_iov[i];
    const std::size_t some = std::min(part.iov_len - at, piece.bytes.size() - piece.read);
    if (some > 0) std::memcpy(static_cast<std::byte*>(part.iov_base) + at, piece.bytes.data() + piece.read, some);
    if ((flags & MSG_PEEK) != 0) return static_cast<ssize_t>(some);
    at += some;
    got += some;
    piece.read += some;
    const bool isWhole = piece.read == piece.bytes.size();
    if (at == part.iov_len) {
      ++i;
      at = 0;
    }
    const bool endsHere =
        kind_ == Kind::datagram ? isWhole || i == message.msg_iovlen : isWhole && message.msg_controllen > 0;
    if (isWhole || (kind_ == Kind::datagram && endsHere)) {
      waiting_ -= piece.bytes.size();
      if (kind_ == Kind::datagram && !isWhole) message.msg_flags |= MSG_TRUNC;
      incoming_.pop_front();
    }
    if (endsHere) break;
  }
  return static_cast<ssize_t>(got);
}

std::vector<MemorySocket::Passed> MemorySocket::passedWith(const msghdr& message) {
  std::vector<Passed> passed;
  if (message.msg_control == nullptr) return passed;
  auto& copy = const_cast<msghdr&>(message);
  for (cmsghdr* part = CMSG_FIRSTHDR(&copy); part != nullptr; part = CMSG_NXTHDR(&copy, part)) {
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      if (DescriptorTable::isOurs(fd))
        passed.emplace_back(DescriptorTable::get().find(fd), -1);
      else
        passed.emplace_back(nullptr, ::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    }
  }
  return passed;
}

/// What there is no room for is closed, as the kernel does.
void MemorySocket::handOver(std::vector<Passed>& passed, msghdr& message, std::size_t& room) {
  const std::size_t fit = room < CMSG_LEN(0) ? 0 : std::min((room - CMSG_LEN(0)) / sizeof(int), passed.size());
  if (fit < passed.size()) message.msg_flags |= MSG_CTRUNC;
  if (fit > 0) {
    auto* const rights = static_cast<cmsghdr*>(message.msg_control);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fit * sizeof(int));
    for (std::size_t i = 0; i < fit; ++i) {
      const int fd = passed[i].take();
      std::memcpy(CMSG_DATA(rights) + i * sizeof fd, &fd, sizeof fd);
    }
    message.msg_controllen = std::min(room, CMSG_SPACE(fit * sizeof(int)));
  }
  room = 0;
  passed.clear();
}

MemorySocket::Passed::~Passed() {
  if (fd >= 0) ::close(fd);
}

int MemorySocket::Passed::take() {
  return socket ? DescriptorTable::get().add(std::move(socket)) : std::exchange(fd, -1);
}

ssize_t MemorySocket::ring() noexcept {
  isRung_ = true;
  return sizeof(std::uint64_t);
}

ssize_t MemorySocket::silence() noexcept {
  return std::exchange(isRung_, false) ? static_cast<ssize_t>(sizeof(std::uint64_t)) : -EAGAIN;
}

short MemorySocket::events(short wanted) const noexcept {
  int happened = 0;
  if (kind_ == Kind::event) return static_cast<short>(isRung_ ? wanted & POLLIN : 0);
  if (isListening_) return static_cast<short>(callers_.empty() ? 0 : wanted & POLLIN);
  if (!incoming_.empty() || (kind_ == Kind::stream && isShut_)) happened |= POLLIN;
  if (kind_ == Kind::datagram || (peer_ != nullptr && !peer_->isFull())) happened |= POLLOUT;
  if (kind_ == Kind::stream && isShut_) happened |= POLLRDHUP;
  happened &= wanted;
  if (kind_ == Kind::stream && peer_ == nullptr) happened |= POLLHUP;
  if (isReset_) happened |= POLLERR;
  return static_cast<short>(happened);
}

DescriptorTable& DescriptorTable::get() noexcept {
  static auto* const only = new DescriptorTable;
  return *only;
}

int DescriptorTable::add(MemorySocket::Shared socket) {
  ++open_;
  if (free_.empty()) {
    sockets_.push_back(std::move(socket));
    return first + static_cast<int>(sockets_.size()) - 1;
  }
  const int index = free_.back();
  free_.pop_back();
  sockets_[static_cast<std::size_t>(index)] = std::move(socket);
  return first + index;
}

MemorySocket::Shared DescriptorTable::find(int fd) const noexcept {
  const auto index = static_cast<std::size_t>(fd - first);
  return index < sockets_.size() ? sockets_[index] : nullptr;
}

MemorySocket* DescriptorTable::at(int fd) const noexcept {
  const auto index = static_cast<std::size_t>(fd - first);
  return index < sockets_.size() ? sockets_[index].get() : nullptr;
}

bool DescriptorTable::close(int fd) noexcept {
  const auto index = static_cast<std::size_t>(fd - first);
  if (index >= sockets_.size() || !sockets_[index]) return false;
  const MemorySocket::Shared last = std::move(sockets_[index]);
  free_.push_back(static_cast<int>(index));
  --open_;
  return true;
}

int openDescriptors() noexcept { return DescriptorTable::get().open(); }

}  // namespace tacc::fuzz

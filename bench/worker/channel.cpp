#include "worker/channel.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace tacc::bench {

SocketName::SocketName(const std::string& address) {
  name.sun_family = AF_UNIX;
  if (address.size() + 1 > sizeof(name.sun_path)) throw std::invalid_argument("socket name too long: " + address);
  // A first byte of 0 makes it abstract.
  std::memcpy(name.sun_path + (address.front() == '/' ? 0 : 1), address.data(), address.size());
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.size());
}

Channel::Channel(Channel&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), unread_(std::move(other.unread_)) {}

Channel& Channel::operator=(Channel&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(unread_, other.unread_);
  return *this;
}

Channel::~Channel() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Channel Channel::connectTo(const std::string& address) {
  const SocketName name(address);
  Channel channel(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (channel.descriptor_ < 0 || ::connect(channel.descriptor_, name.get(), name.length) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot reach the coordinator at " + address);
  return channel;
}

void Channel::send(const std::string& line) {
  const std::string text = line + '\n';
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t n = ::send(descriptor_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw std::system_error(errno, std::generic_category(), "send");
    sent += static_cast<size_t>(n);
  }
}

std::optional<std::string> Channel::receive() {
  for (;;) {
    if (auto line = takeLine()) return line;
    if (!pump()) return std::nullopt;
  }
}

bool Channel::pump() {
  char bytes[4096];
  for (;;) {
    const ssize_t n = ::read(descriptor_, bytes, sizeof(bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    unread_.append(bytes, static_cast<size_t>(n));
    return true;
  }
}

std::optional<std::string> Channel::takeLine() {
  const size_t end = unread_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

}  // namespace tacc::bench

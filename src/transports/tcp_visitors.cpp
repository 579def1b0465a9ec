#include "transports/tcp_visitors.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/log.hpp"
#include "transports/spare_descriptors.hpp"
#include "transports/tcp.hpp"

namespace tacc {
namespace {

constexpr std::chrono::seconds patience{5};
constexpr std::size_t strangerLimit = 64;
/// A shortage of descriptors that lasts is an Error: the rank that connects cannot know of it.
constexpr std::chrono::milliseconds shortageLimit{300};
/// Where there is no descriptor for the next visitor, one that has not spoken by then has to go.
constexpr std::chrono::milliseconds silenceLimit{500};

}  // namespace

std::optional<int> TcpVisitors::accept(int listener) {
  FileDescriptor socket =
      ownDescriptor([&] { return ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
  if (!socket.valid()) {
    if (!isDescriptorShortage(errno)) return std::nullopt;
    const auto now = std::chrono::steady_clock::now();
    if (!visitors_.empty()) {
      // Whoever has been silent for long makes room; a rank of the job is about to speak.
      if (now > visitors_.begin()->second.until - patience + silenceLimit) visitors_.erase(visitors_.begin());
      return std::nullopt;
    }
    if (!shortSince_) shortSince_ = now;
    if (now - *shortSince_ < shortageLimit) return std::nullopt;
    failDescriptor("rank {}: cannot accept the connection of another rank (tcp)", rank_);
  }
  shortSince_.reset();
  tuneTcpForData(socket.get());
  if (visitors_.size() >= ranks_ + strangerLimit)
    dismiss(visitors_.begin(), "too many connections have not proven that they are of this job");
  const int number = next_++;
  visitors_[number] = {std::move(socket), std::chrono::steady_clock::now() + patience, {}, 0};
  return number;
}

std::optional<TcpVisitors::Guest> TcpVisitors::listen(int number) {
  const auto found = visitors_.find(number);
  if (found == visitors_.end()) return std::nullopt;
  Visitor& visitor = found->second;
  auto* hello = reinterpret_cast<std::byte*>(&visitor.hello);
  const ssize_t got = ::recv(visitor.socket.get(), hello + visitor.bytes, sizeof(TcpHello) - visitor.bytes, 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return std::nullopt;
  if (got <= 0) {  // a rank of the job goes without a word when the other connection of a pair is the one that stays
    visitors_.erase(found);
    return std::nullopt;
  }
  visitor.bytes += static_cast<std::size_t>(got);
  if (visitor.bytes < sizeof(TcpHello)) return std::nullopt;
  if (!isGenuine(visitor.hello, key_, rank_, ranks_)) {
    dismiss(found, "it does not know this rank's key");
    return std::nullopt;
  }
  Guest guest{static_cast<int>(visitor.hello.from), std::move(visitor.socket)};
  visitors_.erase(found);
  return guest;
}

void TcpVisitors::dismissSilent() {
  const auto now = std::chrono::steady_clock::now();
  while (!visitors_.empty() && visitors_.begin()->second.until < now)
    dismiss(visitors_.begin(), "it did not say who it is");
}

void TcpVisitors::dismiss(std::map<int, Visitor>::iterator visitor, const char* why) {
  const auto peer = InetAddress::ofPeer(visitor->second.socket.get());
  log(LogLevel::warn, rank_, "refused a connection from {}: {}", peer ? peer->text() : "an unknown address", why);
  visitors_.erase(visitor);
}

}  // namespace tacc

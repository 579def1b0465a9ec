#include "transports/tcp/tcp_visitors.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transports/spare_descriptors.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

/// A rank that has made a connection answers as soon as it gets on with the call that needed it.
constexpr std::chrono::seconds patience{5};
/// More visitors than ranks.
constexpr std::size_t strangerLimit = 64;
/// A shortage of descriptors that lasts is an Error: the rank that connects cannot know of it.
constexpr std::chrono::milliseconds shortageLimit{300};

constexpr const char* tooMany = "too many connections have not proven that they are of this job";

}  // namespace

void TcpVisitors::checkShortage() {
  const int code = errno;
  const auto now = std::chrono::steady_clock::now();
  if (!shortSince_) shortSince_ = now;
  errno = code;
  if (now - *shortSince_ > shortageLimit)
    failDescriptor("rank {}: cannot accept the connection of another rank (tcp)", credentials_.rank());
}

std::optional<int> TcpVisitors::accept(int listener) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  FileDescriptor socket;
  for (;;) {
    socket = ownDescriptor([&] { return ::accept4(listener, address, &length, SOCK_CLOEXEC | SOCK_NONBLOCK); });
    isShort_ = !socket.valid() && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
    // One from a rank's host may be a rank, which would come again and push out the next.
    if (socket.valid() || !isShort_ || far_ == 0 || !makeRoom("this process has no more descriptors")) break;
    length = sizeof storage;
  }
  if (isShort_) checkShortage();
  if (!socket.valid()) return std::nullopt;
  shortSince_.reset();
  TcpChallenge challenge;
  challenge.nonce = makeNonce();
  // A new connection has room for it.
  if (::send(socket.get(), &challenge, sizeof challenge, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof challenge))
    return std::nullopt;
  if (visitors_.size() >= credentials_.ranks() + strangerLimit) (void)makeRoom(tooMany);
  const auto from = InetAddress::of(address);
  const bool isNear = from && hosts_.contains(from->v6());
  far_ += isNear ? 0 : 1;
  const int number = next_++;
  visitors_.emplace(number, Visitor{std::move(socket), from, isNear, std::chrono::steady_clock::now() + patience,
                                    challenge, TcpHello(), 0});
  return number;
}

/// Sends one away. False: nobody is there.
bool TcpVisitors::makeRoom(const char* why) {
  const bool hasFar = far_ > 0;
  auto found = std::ranges::find_if(visitors_, [&](const auto& entry) { return !hasFar || !entry.second.isNear; });
  if (found == visitors_.end()) return false;
  // Its proof may be there already.
  const int number = found->first;
  const std::size_t before = visitors_.size();
  listen(number);
  if (visitors_.size() == before) dismiss(visitors_.find(number), why);
  return true;
}

void TcpVisitors::listen(int number) {
  const auto found = visitors_.find(number);
  if (found == visitors_.end()) return;
  Visitor& visitor = found->second;
  auto* hello = reinterpret_cast<std::byte*>(&visitor.hello);
  const ssize_t got =
      ::recv(visitor.socket.get(), hello + visitor.bytes, sizeof(TcpHello) - visitor.bytes, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  // A rank of the job goes without a word when the other connection of a pair is the one that stays.
  if (got <= 0) return dismiss(found, nullptr);
  visitor.bytes += static_cast<std::size_t>(got);
  if (visitor.bytes < sizeof(TcpHello)) return;
  if (!isGenuineHello(visitor)) return dismiss(found, "it has not proven to be a rank of this job");
  guests_.push_back(
      {static_cast<int>(visitor.hello.from), std::move(visitor.socket), visitor.challenge, visitor.hello});
  dismiss(found, nullptr);
}

bool TcpVisitors::isGenuineHello(const Visitor& visitor) {
  const TcpHello& hello = visitor.hello;
  const auto self = static_cast<std::uint32_t>(credentials_.rank());
  if (hello.magic != tcpMagic || hello.to != self || hello.from == self || hello.from >= credentials_.ranks())
    return false;
  const std::optional<Key>& key = credentials_.keyWith(static_cast<int>(hello.from));
  return key && isGenuine(*key, visitor.challenge, hello);
}

std::optional<TcpVisitors::Guest> TcpVisitors::nextGuest() {
  if (guests_.empty()) return std::nullopt;
  Guest guest = std::move(guests_.front());
  guests_.pop_front();
  return guest;
}

void TcpVisitors::dismissSilent() {
  const auto now = std::chrono::steady_clock::now();
  while (!visitors_.empty() && visitors_.begin()->second.until < now)
    dismiss(visitors_.begin(), "it did not say who it is");
}

/// `why`: null for one that is no stranger, or perhaps none.
void TcpVisitors::dismiss(Visitors::iterator visitor, const char* why) {
  const std::optional<InetAddress>& from = visitor->second.from;
  if (why != nullptr) refusals_.note(from ? from->text() : "an unknown address", from.has_value(), why);
  far_ -= visitor->second.isNear ? 0 : 1;
  visitors_.erase(visitor);
}

}  // namespace tacc

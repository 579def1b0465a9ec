#include "transports/tcp/tcp_visitors.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "transports/spare_descriptors.hpp"

namespace tacc {

class TcpVisitors::Visitor : public Stranger {
 public:
  Visitor(TcpVisitors& visitors, FileDescriptor socket) : visitors_(visitors), socket_(std::move(socket)) {
    challenge_.nonce = makeNonce();
  }
  bool challenge() const {
    // A new connection has room for it.
    return ::send(socket_.get(), &challenge_, sizeof challenge_, MSG_NOSIGNAL) ==
           static_cast<ssize_t>(sizeof challenge_);
  }

  pollfd descriptor() const noexcept override { return {socket_.get(), POLLIN, 0}; }

  Hearing hear() override {
    auto* const hello = reinterpret_cast<std::byte*>(&hello_);
    const ssize_t got = ::recv(socket_.get(), hello + bytes_, sizeof hello_ - bytes_, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return {Standing::waits, ""};
    // A rank of the job goes without a word when the other connection of a pair is the one that stays.
    if (got <= 0) return {Standing::gone, ""};
    bytes_ += static_cast<std::size_t>(got);
    if (bytes_ < sizeof hello_) return {Standing::waits, ""};
    if (!isGenuineHello()) return {Standing::refused, "it has not proven to be a rank of this job"};
    visitors_.guests_.push_back({static_cast<int>(hello_.from), std::move(socket_), challenge_, hello_});
    return {Standing::proven, ""};
  }

 private:
  bool isGenuineHello() const {
    TcpCredentials& credentials = visitors_.credentials_;
    const auto self = static_cast<std::uint32_t>(credentials.rank());
    if (hello_.magic != tcpMagic || hello_.to != self || hello_.from == self || hello_.from >= credentials.ranks())
      return false;
    const std::optional<Key>& key = credentials.keyWith(static_cast<int>(hello_.from));
    return key && isGenuine(*key, challenge_, hello_);
  }

  TcpVisitors& visitors_;
  FileDescriptor socket_;
  TcpChallenge challenge_;
  TcpHello hello_;
  std::size_t bytes_ = 0;  // of it
};

TcpVisitors::TcpVisitors(TcpCredentials& credentials)
    : credentials_(credentials),
      admission_(credentials.rank(), credentials.ranks(),
                 [this](FileDescriptor socket, const Origin&) -> std::unique_ptr<Stranger> {
                   auto visitor = std::make_unique<Visitor>(*this, std::move(socket));
                   return visitor->challenge() ? std::move(visitor) : nullptr;
                 }) {}

std::optional<int> TcpVisitors::accept(int listener) {
  const std::optional<int> visitor = admission_.accept(listener, true);
  if (const int code = admission_.lastingShortage(); code != 0) {
    errno = code;
    failDescriptor("rank {}: cannot accept the connection of another rank (tcp)", credentials_.rank());
  }
  return visitor;
}

std::optional<TcpVisitors::Guest> TcpVisitors::nextGuest() {
  if (guests_.empty()) return std::nullopt;
  Guest guest = std::move(guests_.front());
  guests_.pop_front();
  return guest;
}

}  // namespace tacc

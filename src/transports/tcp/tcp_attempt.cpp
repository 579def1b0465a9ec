#include "transports/tcp/tcp_attempt.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

/// For the kernel of the other host to answer: then the next of its addresses is tried. Where there are others, also
/// for the rank to do so: at one of its addresses somebody else may be listening.
constexpr std::chrono::seconds answerTime{5};
constexpr std::chrono::milliseconds firstPause{10}, longestPause{500};
/// For a link or a route that is down to come back.
constexpr std::chrono::seconds routeTime{3};

/// Whether it is the network that does not reach the host now, and not the host that has nobody there.
bool mayPass(int code) noexcept {
  return code == EHOSTUNREACH || code == ENETUNREACH || code == EHOSTDOWN || code == ENETDOWN;
}

}  // namespace

TcpAttempt::Outcome TcpAttempt::begin() {
  pause_ = firstPause;
  return tryAddresses();
}

/// Begins with the next of the other rank's addresses that a connection can be tried to. When all have failed and there
/// was no route to one of them, all are tried again for a while.
TcpAttempt::Outcome TcpAttempt::tryAddresses() {
  for (; failed_ < addresses_.size(); ++failed_, turnToNext()) {
    sockaddr_storage storage;
    const socklen_t bytes = addresses_[address_].fill(storage);
    stage_ = Stage::connecting;
    bytes_ = 0;
    socket_ = ownDescriptor([&] { return ::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
    deadline_ = Clock::now() + answerTime;
    isRenewed_ = true;
    if (socket_.valid() && (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&storage), bytes) == 0 ||
                            errno == EINPROGRESS || errno == EINTR))
      return Outcome::pending;
    note(errno);
  }
  failed_ = 0;
  if (!std::exchange(hasNoRoute_, false) || Clock::now() >= routeDeadline_) {
    socket_.reset();
    return Outcome::unreachable;
  }
  return pause();
}

void TcpAttempt::note(int code) {
  problem_ = std::strerror(code);
  if (!mayPass(code)) return;
  hasNoRoute_ = true;
  if (routeDeadline_ == Clock::time_point::max()) routeDeadline_ = Clock::now() + routeTime;
}

TcpAttempt::Outcome TcpAttempt::giveUpAddress() {
  ++failed_;
  turnToNext();
  return tryAddresses();
}

TcpAttempt::Outcome TcpAttempt::giveUpAddress(int code) {
  note(code);
  return giveUpAddress();
}

TcpAttempt::Outcome TcpAttempt::giveUpStranger() {
  problem_ = "who listens there is no rank of this job";
  return giveUpAddress();
}

TcpAttempt::Outcome TcpAttempt::beginAgain() {
  turnToNext();  // who ends it may be another rank, whose host has this address too
  return pause();
}

TcpAttempt::Outcome TcpAttempt::pause() {
  socket_.reset();
  stage_ = Stage::pausing;
  deadline_ = Clock::now() + pause_;
  pause_ = std::min(2 * pause_, longestPause);
  return Outcome::pending;
}

TcpAttempt::Outcome TcpAttempt::advance() {
  switch (stage_) {
    case Stage::connecting: {
      int error = 0;
      socklen_t length = sizeof error;
      ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
      if (error != 0) return giveUpAddress(error);
      setOption(socket_.get(), IPPROTO_TCP, TCP_NODELAY, 1);
      stage_ = Stage::greeting;
      failed_ = 0;
      hasNoRoute_ = false;
      routeDeadline_ = Clock::time_point::max();
      deadline_ = addresses_.size() > 1 ? Clock::now() + answerTime : Clock::time_point::max();
      return Outcome::pending;
    }
    case Stage::greeting:
      return readChallenge();
    case Stage::proving:
      return readAnswer();
    case Stage::pausing:
      break;
  }
  return Outcome::pending;
}

TcpAttempt::Outcome TcpAttempt::onDue() {
  switch (stage_) {
    case Stage::connecting:
      return giveUpAddress(ETIMEDOUT);
    case Stage::greeting:
      turnToNext();
      return tryAddresses();
    case Stage::pausing:
      return tryAddresses();
    case Stage::proving:
      break;
  }
  return Outcome::pending;
}

TcpAttempt::Outcome TcpAttempt::read(void* data, std::size_t bytes) {
  while (bytes_ < bytes) {
    const ssize_t got = ::recv(socket_.get(), static_cast<std::byte*>(data) + bytes_, bytes - bytes_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Outcome::pending;
    if (got <= 0) return beginAgain();
    bytes_ += static_cast<std::size_t>(got);
  }
  bytes_ = 0;
  return Outcome::taken;
}

TcpAttempt::Outcome TcpAttempt::readChallenge() {
  if (const Outcome outcome = read(&challenge_, sizeof challenge_); outcome != Outcome::taken) return outcome;
  const std::optional<Key>& key = credentials_.keyWith(peer_);
  if (challenge_.magic != tcpMagic || !key) return giveUpStranger();
  hello_ = greetBack(*key, challenge_, credentials_.rank(), peer_);
  // A new connection has room for it.
  if (::send(socket_.get(), &hello_, sizeof hello_, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof hello_))
    return beginAgain();
  stage_ = Stage::proving;
  deadline_ = Clock::time_point::max();  // the other rank may be in no call of tacc now
  return Outcome::pending;
}

TcpAttempt::Outcome TcpAttempt::readAnswer() {
  if (const Outcome outcome = read(&answer_, sizeof answer_); outcome != Outcome::taken) return outcome;
  if (!isGenuine(*credentials_.keyWith(peer_), challenge_, hello_, answer_)) return giveUpStranger();
  if (answer_.verdict == TcpVerdict::taken) return Outcome::taken;
  socket_.reset();
  return Outcome::refused;
}

std::string TcpAttempt::describeAddresses() const {
  std::string text;
  for (const InetAddress& address : addresses_) text += (text.empty() ? "" : ", ") + address.text();
  return text;
}

}  // namespace tacc

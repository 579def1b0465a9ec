#include "transports/tcp_transport.hpp"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "transports/interfaces.hpp"
#include "transports/tcp.hpp"
#include "transports/tcp_attempt.hpp"
#include "transports/tcp_credentials.hpp"
#include "transports/tcp_stream.hpp"
#include "transports/tcp_visitors.hpp"

namespace tacc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int eventsAtOnce = 32;
/// So many times in a row only the connection is looked at from which the next message is due: a system call less.
constexpr int looksAtOne = 8;
/// A rank that owes an acknowledgement waits for more messages so many times before it gives it.
constexpr int looksBeforeAcknowledging = 8;
constexpr std::size_t addressesAtMost = 16;
/// Connections in a row before messages have their turn.
constexpr int acceptedAtOnce = 16;
/// Without a descriptor for another connection.
constexpr std::chrono::milliseconds shortPause{100};

struct Peer {
  enum class Link : std::uint8_t {
    none,
    connecting,  // `attempt`
    expected,    // the other rank connects
    open,
    lost,
  };
  Peer(int rank, int peer) : inbox(rank, peer) {}

  std::vector<InetAddress> addresses;
  Link link = Link::none;
  std::unique_ptr<TcpAttempt> attempt;
  std::uint32_t events = 0;  // that epoll looks for
  int error = 0;             // errno of a link that is lost
  TcpInbox inbox;
  TcpStream stream;
};

/// Both ranks of a pair may connect at the same time. The connection of the lower rank is the one that stays.
class TcpTransport final : public NetworkTransport {
 public:
  explicit TcpTransport(const NetworkOptions& options);
  ~TcpTransport() override;

  std::vector<std::byte> address() const override;
  void setPeers(std::vector<std::vector<std::byte>> addresses) override;
  void send(int peer, std::uint32_t tag, const void* data, std::size_t bytes, NetworkRequest& request) override;
  void receive(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) override;
  void expect(int peer) override { expected_ = peer; }
  bool progress() override;
  bool drain() override;
  int descriptor() const override { return events_.get(); }
  bool arm() override;
  bool closesBrokenConnections() const override { return true; }
  std::string describe() const override;

 private:
  using Link = Peer::Link;
  enum class Source : std::uint32_t { listener, visitor, attempt, stream };

  Peer& at(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  void watch(int operation, int fd, std::uint32_t events, Source source, int index);
  void update(int rank);
  void connect(int rank);
  void follow(int rank, TcpAttempt::Outcome outcome);
  void endAttempt(int rank);
  void acceptSome();
  void listenAgain(Clock::time_point now);
  void onGuest(TcpVisitors::Guest guest);
  void adopt(int rank, FileDescriptor socket, const LinkKeys& keys);
  bool onStream(int rank, std::uint32_t events);
  void acknowledgeInTime(bool moved);
  void checkDeadlines();
  void lose(int rank, int error);
  [[noreturn]] void failLost(int rank, int error) const;

  int rank_;
  bool encrypts_;
  double silence_;
  std::vector<InterfaceAddress> own_;
  FileDescriptor listener_;
  FileDescriptor events_;
  TcpCredentials credentials_;
  TcpVisitors visitors_;
  std::optional<Clock::time_point> deafUntil_;  // the listener is not looked at
  std::vector<Peer> peers_;
  std::vector<int> attempts_;  // peers that one is made to
  int latest_ = 0;             // of which a message was asked for last
  int expected_ = -1;
  int looks_ = 0;  // at its connection alone
  std::uint64_t reads_ = 0;
  std::vector<int> owed_;  // peers whose streams are owing, or were
  int fruitless_ = 0;      // looks since something came
};

std::vector<InterfaceAddress> chooseOwn(const NetworkOptions& options) {
  const std::vector<InterfaceAddress> all = interfaceAddresses();
  try {
    std::vector<InterfaceAddress> own = chooseAddresses(all, options.interface);
    own.erase(own.begin() + static_cast<std::ptrdiff_t>(std::min(own.size(), addressesAtMost)), own.end());
    if (!own.empty()) return own;
  } catch (const Error& error) {
    fail(taccSystemError, "rank {}: {}", options.rank, error.what());
  }
  fail(taccSystemError, "rank {}: this host has no network interface with an address", options.rank);
}

TcpTransport::TcpTransport(const NetworkOptions& options)
    : rank_(options.rank),
      encrypts_(options.encrypts),
      silence_(options.silenceSeconds),
      own_(chooseOwn(options)),
      listener_(bindTcp(0)),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      credentials_(options.rank, static_cast<std::size_t>(options.ranks), options.secret),
      visitors_(credentials_) {
  if (!listener_.valid() || ::listen(listener_.get(), SOMAXCONN) != 0)
    failErrno("rank {}: cannot listen on TCP", rank_);
  if (!events_.valid()) failErrno("rank {}: cannot watch its connections", rank_);
  watch(EPOLL_CTL_ADD, listener_.get(), EPOLLIN, Source::listener, 0);
  peers_.reserve(static_cast<std::size_t>(options.ranks));
  for (int peer = 0; peer < options.ranks; ++peer) peers_.emplace_back(rank_, peer);
}

TcpTransport::~TcpTransport() {
  for (Peer& peer : peers_) peer.stream.close();
}

std::string TcpTransport::describe() const {
  return fmt::format("{}tcp on {}", encrypts_ ? "encrypted " : "", describeAddresses(own_));
}

std::vector<std::byte> TcpTransport::address() const {
  TcpAddress mine{portOf(listener_.get()), credentials_.publicKey(), {}};
  for (const InterfaceAddress& one : own_) mine.hosts.push_back(one.address.v6());
  return packTcpAddress(mine);
}

void TcpTransport::setPeers(std::vector<std::vector<std::byte>> addresses) {
  for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
    const std::optional<TcpAddress> address = unpackTcpAddress(addresses[rank]);
    if (!address) fail(taccInternalError, "rank {}: rank {} has no TCP address", rank_, rank);
    credentials_.setPublicKey(static_cast<int>(rank), address->publicKey);
    for (const InetAddress::V6& host : address->hosts) {
      peers_[rank].addresses.emplace_back(host, address->port);
      visitors_.addHost(host);
    }
  }
}

void TcpTransport::watch(int operation, int fd, std::uint32_t events, Source source, int index) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = std::uint64_t{static_cast<std::uint32_t>(source)} << 32 | static_cast<std::uint32_t>(index);
  if (::epoll_ctl(events_.get(), operation, fd, &event) != 0) failErrno("rank {}: cannot watch a connection", rank_);
}

/// Looks for what the connection is good for now.
void TcpTransport::update(int rank) {
  Peer& peer = at(rank);
  const std::uint32_t events = (peer.inbox.hasRoom() ? EPOLLIN : 0u) | (peer.stream.hasOutput() ? EPOLLOUT : 0u);
  if (peer.link != Link::open || events == peer.events) return;
  watch(EPOLL_CTL_MOD, peer.stream.fd(), events, Source::stream, rank);
  peer.events = events;
}

void TcpTransport::send(int rank, std::uint32_t tag, const void* data, std::size_t bytes, NetworkRequest& request) {
  Peer& peer = at(rank);
  if (peer.link == Link::lost) failLost(rank, peer.error);
  const bool isBehind = peer.stream.hasOutput();
  peer.stream.send(tag, data, bytes, reads_, request);
  if (peer.link == Link::none) return connect(rank);
  if (peer.link != Link::open || isBehind) return;
  if (peer.stream.flush() == TcpStream::State::closed) lose(rank, errno);
  update(rank);
}

void TcpTransport::receive(int rank, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) {
  Peer& peer = at(rank);
  latest_ = rank;
  peer.inbox.post(tag, data, capacity, request);
  if (peer.link == Link::lost && !request.done) failLost(rank, peer.error);
  update(rank);
}

void TcpTransport::connect(int rank) {
  Peer& peer = at(rank);
  peer.link = Link::connecting;
  peer.attempt = std::make_unique<TcpAttempt>(credentials_, rank, peer.addresses);
  attempts_.push_back(rank);
  follow(rank, peer.attempt->begin());
}

/// What comes after a step of an attempt.
void TcpTransport::follow(int rank, TcpAttempt::Outcome outcome) {
  Peer& peer = at(rank);
  switch (outcome) {
    case TcpAttempt::Outcome::pending: {
      const int operation = peer.attempt->isRenewed() ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
      if (const int fd = peer.attempt->descriptor(); fd >= 0)
        watch(operation, fd, peer.attempt->isConnecting() ? EPOLLOUT : EPOLLIN, Source::attempt, rank);
      return;
    }
    case TcpAttempt::Outcome::taken: {
      const LinkKeys keys = peer.attempt->keys();
      FileDescriptor socket = peer.attempt->takeSocket();
      endAttempt(rank);
      return adopt(rank, std::move(socket), keys);
    }
    case TcpAttempt::Outcome::refused:
      endAttempt(rank);
      peer.link = Link::expected;
      // The lower rank's connection is refused by one that has lost this rank.
      if (rank_ < rank) lose(rank, ECONNRESET);
      return;
    case TcpAttempt::Outcome::unreachable: {
      const std::string tried = peer.attempt->describeAddresses(), problem = peer.attempt->problem();
      endAttempt(rank);
      peer.link = Link::lost;
      peer.error = EHOSTUNREACH;
      fail(taccRemoteError, "rank {} cannot reach rank {} at {}: {} (tcp)", rank_, rank, tried, problem);
    }
  }
}

void TcpTransport::endAttempt(int rank) {
  at(rank).attempt.reset();
  std::erase(attempts_, rank);
}

void TcpTransport::acceptSome() {
  for (int turn = 0; turn < acceptedAtOnce; ++turn) {
    const std::optional<int> visitor = visitors_.accept(listener_.get());
    if (!visitor) break;
    watch(EPOLL_CTL_ADD, visitors_.descriptorOf(*visitor), EPOLLIN, Source::visitor, *visitor);
  }
  if (!visitors_.isShort()) return;
  log(LogLevel::warn, rank_,
      "no descriptor is left for the connection of another rank, which has to wait; raise ulimit -n");
  watch(EPOLL_CTL_MOD, listener_.get(), 0, Source::listener, 0);
  deafUntil_ = Clock::now() + shortPause;
}

void TcpTransport::listenAgain(Clock::time_point now) {
  if (now < *deafUntil_) return;
  watch(EPOLL_CTL_MOD, listener_.get(), EPOLLIN, Source::listener, 0);
  deafUntil_.reset();
}

void TcpTransport::onGuest(TcpVisitors::Guest guest) {
  Peer& peer = at(guest.rank);
  const bool isLower = guest.rank < rank_;
  const bool isTaken = peer.link != Link::open && peer.link != Link::lost && (isLower || peer.link != Link::connecting);
  const Key& key = *credentials_.keyWith(guest.rank);
  const TcpAnswer answer =
      answerHello(key, guest.challenge, guest.hello, isTaken ? TcpVerdict::taken : TcpVerdict::refused);
  if (::send(guest.socket.get(), &answer, sizeof answer, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof answer)) return;
  if (!isTaken) return;
  if (peer.attempt) endAttempt(guest.rank);
  adopt(guest.rank, std::move(guest.socket), linkKeys(key, guest.challenge, guest.hello, false));
}

void TcpTransport::adopt(int rank, FileDescriptor socket, const LinkKeys& keys) {
  Peer& peer = at(rank);
  peer.link = Link::open;
  tuneTcpForData(socket.get(), silence_);
  peer.stream.open(std::move(socket));
  if (encrypts_) peer.stream.seal(keys);
  peer.events = EPOLLIN;
  watch(EPOLL_CTL_MOD, peer.stream.fd(), peer.events, Source::stream, rank);
  if (peer.stream.flush() == TcpStream::State::closed) lose(rank, errno);
  update(rank);
}

bool TcpTransport::onStream(int rank, std::uint32_t events) {
  Peer& peer = at(rank);
  if (peer.link != Link::open) return false;
  bool moved = false;
  const bool hasEnded = (events & (EPOLLHUP | EPOLLERR)) != 0;
  if ((events & EPOLLIN) != 0 || hasEnded) {
    const bool wasOwing = peer.stream.isOwing();
    if (peer.stream.receive(peer.inbox, hasEnded, moved) == TcpStream::State::closed) {
      lose(rank, errno);
      return true;
    }
    if (moved) ++reads_;
    if (peer.stream.isOwing() && !wasOwing) owed_.push_back(rank);
  }
  if ((events & EPOLLOUT) != 0) {
    if (peer.stream.flush() == TcpStream::State::closed) lose(rank, errno);
    moved = true;
  }
  update(rank);
  return moved;
}

/// The end of a connection is an Error for those who wait for something, or will.
void TcpTransport::lose(int rank, int error) {
  Peer& peer = at(rank);
  peer.link = Link::lost;
  peer.error = error;
  peer.stream.close();
  if (peer.inbox.isAwaited() || peer.stream.hasOutput()) failLost(rank, error);
}

void TcpTransport::failLost(int rank, int error) const {
  fail(taccRemoteError,
       "rank {} has lost rank {}: {} (tcp); its process may have died or left, or the network between them", rank_,
       rank, std::strerror(error));
}

void TcpTransport::checkDeadlines() {
  const auto now = Clock::now();
  visitors_.dismissSilent();
  if (deafUntil_) listenAgain(now);
  for (std::size_t i = attempts_.size(); i-- > 0;) {
    const int rank = attempts_[i];
    if (at(rank).attempt->isDue(now)) follow(rank, at(rank).attempt->onDue());
  }
}

bool TcpTransport::progress() {
  const int first = expected_ >= 0 ? expected_ : latest_;
  if (looks_++ % looksAtOne != 0 && at(first).link == Link::open && at(first).inbox.isAwaited()) {
    const bool moved = onStream(first, EPOLLIN);
    acknowledgeInTime(moved);
    return moved;
  }
  epoll_event events[eventsAtOnce];
  const int count = ::epoll_wait(events_.get(), events, eventsAtOnce, 0);
  if (!attempts_.empty() || !visitors_.isEmpty() || deafUntil_) checkDeadlines();
  bool moved = false;
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<int>(events[i].data.u64 & 0xFFFFFFFF);
    switch (static_cast<Source>(events[i].data.u64 >> 32)) {
      case Source::listener:
        acceptSome();
        break;
      case Source::visitor:
        visitors_.listen(index);
        break;
      case Source::attempt:
        if (at(index).attempt) follow(index, at(index).attempt->advance());
        break;
      case Source::stream:
        moved |= onStream(index, events[i].events);
        continue;
    }
    moved = true;
  }
  while (auto guest = visitors_.nextGuest()) onGuest(std::move(*guest));
  acknowledgeInTime(moved);
  return moved;
}

bool TcpTransport::arm() {
  if (!owed_.empty()) {
    ::sched_yield();  // to the rank that is ahead, if it needs this core
    return false;
  }
  looks_ = 0;
  return true;  // what there is to do keeps the descriptor readable
}

/// A rank that is ahead holds its next messages until it knows that the one before was read. So they come together, if
/// it is told late, and it must be told.
void TcpTransport::acknowledgeInTime(bool moved) {
  if (owed_.empty()) return;
  if (moved) fruitless_ = 0;
  if (moved || ++fruitless_ < looksBeforeAcknowledging) return;
  for (const int rank : owed_)
    if (at(rank).link == Link::open && at(rank).stream.isOwing()) at(rank).stream.acknowledge();
  owed_.clear();
}

bool TcpTransport::drain() {
  return std::ranges::none_of(peers_, [](const Peer& peer) { return peer.stream.hasOutput(); });
}

}  // namespace

std::unique_ptr<NetworkTransport> makeTcpTransport(const NetworkOptions& options) {
  return std::make_unique<TcpTransport>(options);
}

std::string describeTcp() {
  try {
    return fmt::format("sockets of the kernel: {}", describeAddresses(chooseAddresses(interfaceAddresses(), {})));
  } catch (const Error& error) {
    return fmt::format("cannot be used: {}", error.what());
  }
}

}  // namespace tacc

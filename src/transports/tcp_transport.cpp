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
#include "transports/interfaces.hpp"
#include "transports/tcp.hpp"
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
/// For the kernel of the other host to answer: then the next of its addresses is tried.
constexpr std::chrono::seconds connectTime{5};

struct Peer {
  enum class Link : std::uint8_t {
    none,
    connecting,  // `attempt`, to `address`
    greeted,     // `attempt` stands; the other rank has to say whether it takes it
    expected,    // the other rank connects
    open,
    lost,
  };
  Peer(int rank, int peer) : inbox(rank, peer) {}

  std::vector<InetAddress> addresses;
  TcpKey key{};
  Link link = Link::none;
  FileDescriptor attempt;
  std::size_t address = 0;  // that is tried
  Clock::time_point deadline{};
  std::uint32_t events = 0;  // that epoll looks for
  int error = 0;             // errno of a link that is lost
  TcpInbox inbox;
  TcpStream stream;
};

/// Both ranks of a pair may connect at the same time. The connection of the lower rank is the one that stays: it may be
/// used at once, while the higher rank waits for an answer.
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
  void tryAddresses(int rank);
  void giveUpAddress(int rank, int error);
  void onAttempt(int rank);
  void onAnswer(int rank);
  void onGuest(TcpVisitors::Guest guest);
  void adopt(int rank, FileDescriptor socket);
  bool onStream(int rank, std::uint32_t events);
  void acknowledgeInTime(bool moved);
  void checkDeadlines();
  void lose(int rank, int error);
  [[noreturn]] void failLost(int rank, int error) const;

  int rank_;
  std::vector<InterfaceAddress> own_;
  FileDescriptor listener_;
  FileDescriptor events_;
  TcpKey key_;
  TcpVisitors visitors_;
  std::vector<Peer> peers_;
  int attempts_ = 0;  // under way
  int latest_ = 0;    // of which a message was asked for last
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
      own_(chooseOwn(options)),
      listener_(bindTcp(0)),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      key_(makeTcpKey()),
      visitors_(options.rank, key_, static_cast<std::size_t>(options.ranks)) {
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

std::string TcpTransport::describe() const { return fmt::format("tcp on {}", describeAddresses(own_)); }

std::vector<std::byte> TcpTransport::address() const {
  TcpAddress mine{portOf(listener_.get()), key_, {}};
  for (const InterfaceAddress& one : own_) mine.hosts.push_back(one.address.v6());
  return packTcpAddress(mine);
}

void TcpTransport::setPeers(std::vector<std::vector<std::byte>> addresses) {
  for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
    const std::optional<TcpAddress> address = unpackTcpAddress(addresses[rank]);
    if (!address) fail(taccInternalError, "rank {}: rank {} has no TCP address", rank_, rank);
    peers_[rank].key = address->key;
    for (const InetAddress::V6& host : address->hosts) peers_[rank].addresses.emplace_back(host, address->port);
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
  at(rank).link = Link::connecting;
  ++attempts_;
  tryAddresses(rank);
}

/// Begins with the next of the other rank's addresses that a connection can be tried to.
void TcpTransport::tryAddresses(int rank) {
  Peer& peer = at(rank);
  for (; peer.address < peer.addresses.size(); ++peer.address) {
    sockaddr_storage storage;
    const socklen_t bytes = peer.addresses[peer.address].fill(storage);
    peer.attempt =
        ownDescriptor([&] { return ::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
    if (peer.attempt.valid() &&
        (::connect(peer.attempt.get(), reinterpret_cast<const sockaddr*>(&storage), bytes) == 0 ||
         errno == EINPROGRESS)) {
      peer.deadline = Clock::now() + connectTime;
      return watch(EPOLL_CTL_ADD, peer.attempt.get(), EPOLLOUT, Source::attempt, rank);
    }
    peer.error = errno;
  }
  --attempts_;
  peer.link = Link::lost;
  std::string tried;
  for (const InetAddress& address : peer.addresses) tried += (tried.empty() ? "" : ", ") + address.text();
  fail(taccRemoteError, "rank {} cannot reach rank {} at {}: {} (tcp)", rank_, rank, tried, std::strerror(peer.error));
}

void TcpTransport::giveUpAddress(int rank, int error) {
  Peer& peer = at(rank);
  peer.attempt.reset();
  peer.error = error;
  ++peer.address;
  tryAddresses(rank);
}

void TcpTransport::onAttempt(int rank) {
  Peer& peer = at(rank);
  if (peer.link == Link::greeted) return onAnswer(rank);
  if (peer.link != Link::connecting) return;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(peer.attempt.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return giveUpAddress(rank, error);
  tuneTcpForData(peer.attempt.get());
  TcpHello hello;
  hello.from = static_cast<std::uint32_t>(rank_);
  hello.to = static_cast<std::uint32_t>(rank);
  hello.key = peer.key;
  // A new connection has room for it.
  if (::send(peer.attempt.get(), &hello, sizeof hello, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof hello))
    return giveUpAddress(rank, errno);
  --attempts_;
  if (rank_ < rank) return adopt(rank, std::move(peer.attempt));
  peer.link = Link::greeted;
  watch(EPOLL_CTL_MOD, peer.attempt.get(), EPOLLIN, Source::attempt, rank);
}

void TcpTransport::onAnswer(int rank) {
  Peer& peer = at(rank);
  char answer = 0;
  const ssize_t got = ::recv(peer.attempt.get(), &answer, 1, 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (got == 1 && answer == tcpTaken) return adopt(rank, std::move(peer.attempt));
  peer.attempt.reset();
  peer.link = Link::expected;
  if (got != 1 || answer != tcpRefused) lose(rank, got < 0 ? errno : ECONNRESET);
}

void TcpTransport::onGuest(TcpVisitors::Guest guest) {
  Peer& peer = at(guest.rank);
  const bool isLower = guest.rank < rank_;
  const bool isTaken = peer.link != Link::open && peer.link != Link::lost && (isLower || peer.link != Link::connecting);
  const char answer = isTaken ? tcpTaken : tcpRefused;
  if (!isLower && ::send(guest.socket.get(), &answer, 1, MSG_NOSIGNAL) != 1) return;
  if (!isTaken) return;
  if (peer.link == Link::connecting) --attempts_;
  peer.attempt.reset();
  adopt(guest.rank, std::move(guest.socket));
}

void TcpTransport::adopt(int rank, FileDescriptor socket) {
  Peer& peer = at(rank);
  peer.link = Link::open;
  peer.stream.open(std::move(socket));
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
  visitors_.dismissSilent();
  if (attempts_ == 0) return;
  const auto now = Clock::now();
  for (std::size_t rank = 0; rank < peers_.size(); ++rank)
    if (peers_[rank].link == Link::connecting && peers_[rank].deadline < now)
      giveUpAddress(static_cast<int>(rank), ETIMEDOUT);
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
  if (attempts_ > 0 || !visitors_.isEmpty()) checkDeadlines();
  bool moved = false;
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<int>(events[i].data.u64 & 0xFFFFFFFF);
    switch (static_cast<Source>(events[i].data.u64 >> 32)) {
      case Source::listener:
        while (const std::optional<int> visitor = visitors_.accept(listener_.get()))
          watch(EPOLL_CTL_ADD, visitors_.descriptorOf(*visitor), EPOLLIN, Source::visitor, *visitor);
        break;
      case Source::visitor:
        if (auto guest = visitors_.listen(index)) onGuest(std::move(*guest));
        break;
      case Source::attempt:
        onAttempt(index);
        break;
      case Source::stream:
        moved |= onStream(index, events[i].events);
        continue;
    }
    moved = true;
  }
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

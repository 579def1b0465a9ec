#include "transports/tcp/tcp_link.hpp"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

using LinkClock = std::chrono::steady_clock;

constexpr int eventsAtOnce = 32;
/// How often in a row only the connection from which the next message is due is looked at: a system call less.
constexpr int looksAtOne = 8;
/// A rank that owes an acknowledgement waits for more messages this number of times before it gives it.
constexpr int looksBeforeAcknowledging = 8;
constexpr std::size_t addressesAtMost = 16;
constexpr std::chrono::seconds shortageLogPause{1};
constexpr std::size_t mostUnheard = TcpInbox::keptLimit / 8;  // a look costs as much as sending a few hundred bytes

std::vector<InterfaceAddress> chooseOwn(const NetworkOptions& options) {
  const std::vector<InterfaceAddress> all = interfaceAddresses();
  try {
    std::vector<InterfaceAddress> own = choosePresent(all, options.interfaces);
    own.erase(own.begin() + static_cast<std::ptrdiff_t>(std::min(own.size(), addressesAtMost)), own.end());
    if (!own.empty()) return own;
  } catch (const Error& error) {
    fail(taccSystemError, "rank {}: {}", options.rank, error.what());
  }
  fail(taccSystemError, "rank {}: this host has no network interface with an address", options.rank);
}

}  // namespace

TcpLink::TcpLink(const NetworkOptions& options)
    : rank_(options.rank),
      encrypts_(options.encrypts),
      silence_(options.silenceSeconds),
      own_(chooseOwn(options)),
      listener_(bindTcp(0)),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      credentials_(options.rank, static_cast<std::size_t>(options.ranks), options.secret),
      visitors_(credentials_) {
  if (!listener_.valid() || ::listen(listener_.get(), SOMAXCONN) != 0) {
    const int code = errno;
    const std::string why = describeNoPort(code);
    errno = code;
    failErrno("rank {}: cannot listen on TCP{}", rank_, why);
  }
  if (!events_.valid()) failErrno("rank {}: cannot watch its connections", rank_);
  watch(EPOLL_CTL_ADD, listener_.get(), EPOLLIN, Source::listener, 0);
  peers_.reserve(static_cast<std::size_t>(options.ranks));
  for (int peer = 0; peer < options.ranks; ++peer) peers_.emplace_back(peer);
}

TcpLink::~TcpLink() {
  for (Peer& peer : peers_) peer.stream.close();
}

std::string TcpLink::describe() const {
  return fmt::format("{}tcp on {}", encrypts_ ? "encrypted " : "", describeAddresses(own_));
}

std::vector<std::byte> TcpLink::address() const {
  TcpAddress mine{portOf(listener_.get()), credentials_.publicKey(), {}};
  for (const InterfaceAddress& one : own_) mine.hosts.push_back(one.address.v6());
  return packTcpAddress(mine);
}

void TcpLink::setPeers(const std::vector<std::vector<std::byte>>& addresses) {
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

void TcpLink::watch(int operation, int fd, std::uint32_t events, Source source, int index) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = std::uint64_t{static_cast<std::uint32_t>(source)} << 32 | static_cast<std::uint32_t>(index);
  if (::epoll_ctl(events_.get(), operation, fd, &event) != 0) failErrno("rank {}: cannot watch a connection", rank_);
}

/// Looks for what the connection is good for now.
void TcpLink::update(int rank) {
  Peer& peer = at(rank);
  const std::uint32_t events = (peer.inbox.hasRoom() ? EPOLLIN : 0u) | (peer.stream.hasOutput() ? EPOLLOUT : 0u);
  if (peer.state != State::open || events == peer.events) return;
  watch(EPOLL_CTL_MOD, peer.stream.fd(), events, Source::stream, rank);
  peer.events = events;
}

std::uint32_t TcpLink::nextChannel(const std::vector<int>& ranks) const {
  const bool isWell = std::ranges::none_of(ranks, [this](int rank) { return at(rank).state == State::lost; });
  return isWell && channels_.next() < TcpChannels::signals ? channels_.next() : 0;
}

TcpChannel& TcpLink::open(std::uint32_t number, int rank, std::vector<int> ranks) {
  if (number > 0 && !isShared_.exchange(true, std::memory_order_relaxed))
    for (Peer& peer : peers_) peer.inbox.share();
  return channels_.open(number, rank, std::move(ranks));
}

void TcpLink::abandon(TcpChannel& channel) noexcept {
  channel.isOver = true;
  for (const int rank : channel.ranks) {
    Peer& peer = at(rank);
    const bool holdsBack = peer.inbox.close(channel);
    if (!peer.stream.abandon(channel)) loseForMemory(rank);
    if (!holdsBack || peer.state != State::open) continue;
    try {
      sendNow(rank, {channel.number, false});
    } catch (...) {
      loseForMemory(rank);  // or the other rank would wait for ever
    }
  }
}

void TcpLink::close(TcpChannel& channel) noexcept {
  // With the last channel go the connections. After an Error the memory of its messages may have gone already.
  if (channels_.all().size() > 1) abandon(channel);
  channels_.close(channel);
}

void TcpLink::tolerateSilence(double seconds) {
  if (seconds <= silence_) return;
  silence_ = seconds;
  for (const Peer& peer : peers_)
    if (peer.state == State::open) tuneTcpForData(peer.stream.fd(), silence_);
}

void TcpLink::send(TcpChannel& channel, int rank, std::uint32_t tag, const void* data, std::size_t bytes,
                   NetworkRequest& request) {
  throwErrorOf(channel);
  Peer& peer = at(rank);
  lookBack(channel, rank, bytes);
  if (peer.state == State::lost) failLost(channel, rank);
  const bool isBehind = peer.stream.hasOutput();
  peer.stream.send(channel, tag, data, bytes, reads_, request);
  if (peer.state == State::none) {
    connect(rank);
  } else if (peer.state == State::open && !isBehind) {
    if (peer.stream.flush() == TcpStream::State::closed) lose(rank, errno);
    update(rank);
  }
  throwErrorOf(channel);
}

/// Sends that the kernel takes at once never wait, so that nothing is read: but the other rank may have said that it
/// has no room for more of a channel.
void TcpLink::lookBack(TcpChannel& channel, int rank, std::size_t bytes) {
  Peer& peer = at(rank);
  if (channels_.all().size() < 2 || peer.state != State::open) return;
  peer.unheard += bytes;
  if (peer.unheard < mostUnheard || !onStream(rank, EPOLLIN)) return;
  callOthers(channel);
  channel.hasNews = true;
}

void TcpLink::receive(TcpChannel& channel, int rank, std::uint32_t tag, void* data, std::size_t capacity,
                      NetworkRequest& request) {
  throwErrorOf(channel);
  Peer& peer = at(rank);
  latest_ = rank;
  peer.inbox.post(channel, tag, data, capacity, request);
  if (peer.state == State::lost && !request.done) failLost(channel, rank);
  tellPauses(peer);
  update(rank);
}

/// What its inbox has to tell the other rank.
void TcpLink::tellPauses(Peer& peer) {
  if (peer.state != State::open) return;
  while (const std::optional<TcpPause> pause = peer.inbox.takePause()) peer.stream.send(*pause);
}

/// For who does not look at the connection soon.
void TcpLink::sendNow(int rank, const TcpPause& pause) {
  Peer& peer = at(rank);
  peer.stream.send(pause);
  if (peer.stream.flush() == TcpStream::State::closed) lose(rank, errno);
  update(rank);
}

void TcpLink::connect(int rank) {
  Peer& peer = at(rank);
  peer.state = State::connecting;
  peer.attempt = std::make_unique<TcpAttempt>(credentials_, rank, peer.addresses);
  attempts_.push_back(rank);
  follow(rank, peer.attempt->begin());
}

/// What comes after a step of an attempt.
void TcpLink::follow(int rank, TcpAttempt::Outcome outcome) {
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
      peer.state = State::expected;
      // The lower rank's connection is refused by one that has lost this rank.
      if (rank_ < rank) lose(rank, ECONNRESET);
      return;
    case TcpAttempt::Outcome::unreachable:
      peer.problem = fmt::format("{}: {}", peer.attempt->describeAddresses(), peer.attempt->problem());
      peer.loss = Loss::unreachable;
      endAttempt(rank);
      return lose(rank, EHOSTUNREACH);
  }
}

void TcpLink::endAttempt(int rank) {
  at(rank).attempt.reset();
  std::erase(attempts_, rank);
}

void TcpLink::acceptSome() {
  for (int turn = 0; turn < Admission::acceptedAtOnce; ++turn) {
    const std::optional<int> visitor = visitors_.accept(listener_.get());
    if (!visitor) break;
    watch(EPOLL_CTL_ADD, visitors_.descriptorOf(*visitor), EPOLLIN, Source::visitor, *visitor);
  }
  if (!visitors_.isShort()) return;
  if (const auto now = LinkClock::now(); now >= nextShortageLog_) {
    nextShortageLog_ = now + shortageLogPause;
    log(LogLevel::warn, rank_,
        "no descriptor is left for the connection of another rank, which has to wait; raise ulimit -n");
  }
  watch(EPOLL_CTL_MOD, listener_.get(), 0, Source::listener, 0);
  deafUntil_ = visitors_.reopensAt();
}

void TcpLink::listenAgain(LinkClock::time_point now) {
  if (now < *deafUntil_) return;
  watch(EPOLL_CTL_MOD, listener_.get(), EPOLLIN, Source::listener, 0);
  deafUntil_.reset();
}

void TcpLink::onGuest(TcpVisitors::Guest guest) {
  Peer& peer = at(guest.rank);
  const bool isLower = guest.rank < rank_;
  const bool isTaken =
      peer.state != State::open && peer.state != State::lost && (isLower || peer.state != State::connecting);
  const Key& key = *credentials_.keyWith(guest.rank);
  const TcpAnswer answer =
      answerHello(key, guest.challenge, guest.hello, isTaken ? TcpVerdict::taken : TcpVerdict::refused);
  if (::send(guest.socket.get(), &answer, sizeof answer, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof answer)) return;
  if (!isTaken) return;
  if (peer.attempt) endAttempt(guest.rank);
  adopt(guest.rank, std::move(guest.socket), linkKeys(key, guest.challenge, guest.hello, false));
}

void TcpLink::adopt(int rank, FileDescriptor socket, const LinkKeys& keys) {
  Peer& peer = at(rank);
  peer.state = State::open;
  tuneTcpForData(socket.get(), silence_);
  peer.stream.open(std::move(socket));
  if (encrypts_) peer.stream.seal(keys);
  peer.events = EPOLLIN;
  watch(EPOLL_CTL_MOD, peer.stream.fd(), peer.events, Source::stream, rank);
  if (peer.stream.flush() == TcpStream::State::closed) lose(rank, errno);
  update(rank);
}

bool TcpLink::onStream(int rank, std::uint32_t events) {
  Peer& peer = at(rank);
  if (peer.state != State::open) return false;
  bool moved = false;
  const bool hasEnded = (events & (EPOLLHUP | EPOLLERR)) != 0;
  if ((events & EPOLLIN) != 0 || hasEnded) {
    peer.unheard = 0;
    const bool wasOwing = peer.stream.isOwing();
    try {
      if (peer.stream.receive(peer.inbox, channels_, hasEnded, moved) == TcpStream::State::closed) {
        lose(rank, errno);
        return true;
      }
    } catch (const Error& error) {
      peer.problem = error.what();
      peer.loss = Loss::forged;
      lose(rank, EPROTO);
      return true;
    } catch (...) {
      loseForMemory(rank);  // what came next would be taken for what is missing
      throw;
    }
    tellPauses(peer);
    if (moved) ++reads_;
    if (peer.stream.isOwing() && !wasOwing) owed_.push_back(rank);
  }
  if ((events & EPOLLOUT) != 0) {
    if (peer.stream.flush() == TcpStream::State::closed) lose(rank, errno);
    if (!peer.stream.hasOutput()) wakeAll();
    moved = true;
  }
  update(rank);
  return moved;
}

/// The end of a connection is an Error for those who wait for something, or will.
void TcpLink::lose(int rank, int error) noexcept {
  Peer& peer = at(rank);
  peer.state = State::lost;
  peer.error = error;
  peer.stream.close();
  for (const auto& channel : channels_.all()) {
    if (channel->lost >= 0 || (!peer.inbox.isAwaitedBy(*channel) && !peer.stream.hasOutputOf(*channel))) continue;
    channel->lost = rank;
    channel->hasNews = true;
    if (!std::exchange(channel->isCalled, true)) channel->wake();
  }
}

void TcpLink::loseForMemory(int rank) noexcept {
  at(rank).loss = Loss::noMemory;
  lose(rank, ENOMEM);
}

void TcpLink::throwErrorOf(const TcpChannel& channel) const {
  if (channel.error) throw Error(*channel.error);
  if (channel.lost >= 0) failLost(channel, channel.lost);
}

void TcpLink::failLost(const TcpChannel& channel, int rank) const {
  const Peer& peer = at(rank);
  const int own = channel.rank, other = channel.rankOf(rank);
  switch (peer.loss) {
    case Loss::unreachable:
      fail(taccRemoteError, "rank {} cannot reach rank {} at {} (tcp)", own, other, peer.problem);
    case Loss::forged:
      fail(taccRemoteError, "rank {} got bytes on its connection to rank {} that this rank did not send there: {}", own,
           other, peer.problem);
    case Loss::noMemory:
      // At once, and not as an Error of the other rank: that one waits to hear why its connection broke.
      throw std::bad_alloc();
    case Loss::ended:
      break;
  }
  fail(taccRemoteError,
       "rank {} has lost rank {}: {} (tcp); its process may have died or left, or the network between them", own, other,
       std::strerror(peer.error));
}

/// Those who wait for what has not their mark.
void TcpLink::wakeAll() noexcept {
  for (const auto& channel : channels_.all()) channel->hasNews = true;
}

/// What this thread has found for others that may sleep: they are called once for it.
void TcpLink::callOthers(TcpChannel& own) noexcept {
  own.hasNews = own.isCalled = false;
  for (const auto& channel : channels_.all())
    if (channel->hasNews && !std::exchange(channel->isCalled, true)) channel->wake();
}

void TcpLink::checkDeadlines() {
  const auto now = LinkClock::now();
  visitors_.dismissSilent();
  if (deafUntil_) listenAgain(now);
  for (std::size_t i = attempts_.size(); i-- > 0;) {
    const int rank = attempts_[i];
    if (at(rank).attempt->isDue(now)) follow(rank, at(rank).attempt->onDue());
  }
}

bool TcpLink::progress(TcpChannel& channel, int expected) {
  throwErrorOf(channel);
  const bool hadNews = channel.hasNews;
  const bool moved = moveSome(expected);
  callOthers(channel);
  throwErrorOf(channel);
  return moved || hadNews;
}

bool TcpLink::moveSome(int expected) {
  const int first = expected >= 0 ? expected : latest_;
  if (looks_++ % looksAtOne != 0 && at(first).state == State::open && at(first).inbox.isAwaited()) {
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

bool TcpLink::arm() {
  if (!owed_.empty()) {
    ::sched_yield();  // to the rank that is ahead, if it needs this core
    return false;
  }
  looks_ = 0;
  return true;  // what there is to do keeps the descriptor readable
}

/// A rank that is ahead holds its next messages until it knows that the one before was read. So they come together, if
/// it is told late, and it must be told.
void TcpLink::acknowledgeInTime(bool moved) {
  if (owed_.empty()) return;
  if (moved) fruitless_ = 0;
  if (moved || ++fruitless_ < looksBeforeAcknowledging) return;
  for (const int rank : owed_)
    if (at(rank).state == State::open && at(rank).stream.isOwing()) at(rank).stream.acknowledge();
  owed_.clear();
}

std::vector<int> TcpLink::unreached(const TcpChannel& channel) const {
  std::vector<int> found;
  for (std::size_t n = 0; n < channel.ranks.size(); ++n) {
    const Peer& peer = at(channel.ranks[n]);
    if (peer.state == State::open && isSentInVain(peer.stream.fd())) found.push_back(static_cast<int>(n));
  }
  return found;
}

bool TcpLink::drain(const TcpChannel& channel) const {
  return std::ranges::none_of(channel.ranks, [&](int rank) { return at(rank).stream.hasOutputOf(channel); });
}

}  // namespace tacc

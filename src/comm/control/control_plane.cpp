#include "comm/control/control_plane.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "comm/control/failure.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

/// What begins with the rank that it is of.
Payload payloadOfRank(int rank, std::span<const std::byte> rest) {
  std::vector<std::byte> bytes(sizeof rank + rest.size());
  std::memcpy(bytes.data(), &rank, sizeof rank);
  std::copy(rest.begin(), rest.end(), bytes.begin() + sizeof rank);
  return makePayload(std::move(bytes));
}

/// The rank that a message begins with; -1 if it is none of them.
int rankIn(const Message& message, std::size_t ranks) {
  int rank = -1;
  if (message.payload.size() < sizeof rank) return -1;
  std::memcpy(&rank, message.payload.data(), sizeof rank);
  return rank >= 0 && static_cast<std::size_t>(rank) < ranks ? rank : -1;
}

std::span<const std::byte> restOf(const Message& message) {
  return std::span(message.payload).subspan(std::min(sizeof(int), message.payload.size()));
}

}  // namespace

ControlPlane::ControlPlane(int rank, std::vector<RankIdentity> who, ControlTree tree)
    : rank_(rank),
      who_(std::move(who)),
      route_(std::move(tree.route)),
      parents_(std::move(tree.parents)),
      presence_(who_.size(), Presence::here) {
  if (!route_.empty()) links_.push_back({std::move(tree.up), route_.front(), {}, true});
  for (ControlTree::Branch& branch : tree.branches)
    links_.push_back({std::move(branch.channel), branch.rank, std::move(branch.behind), false});
  const Payload lack = payloadOfRank(rank_, *describeLackOfMemory());
  for (Link& link : links_) link.channel.setLastWord(MessageKind::announced, lack);
}

ControlPlane::~ControlPlane() { leave(); }

void ControlPlane::leave() noexcept {
  if (std::exchange(hasLeft_, true)) return;
  for (Link& link : links_) sendTo(link, MessageKind::farewell, nullptr);
}

void ControlPlane::sayFarewell() noexcept {
  const std::lock_guard lock(mutex_);
  leave();
}

bool ControlPlane::isAlone() const {
  const std::lock_guard lock(mutex_);
  for (std::size_t r = 0; r < presence_.size(); ++r)
    if (static_cast<int>(r) != rank_ && presence_[r] == Presence::here) return false;
  return true;
}

std::string ControlPlane::nameOf(int rank) const {
  return fmt::format("rank {} ({})", rank, who_[static_cast<std::size_t>(rank)].describe());
}

std::string ControlPlane::nameOfRankZero() const {
  std::string text = nameOf(0);
  for (std::size_t i = route_.size(); i > 1; --i)
    text += fmt::format("{}{}", i == route_.size() ? ", by way of " : " and ", nameOf(route_[i - 2]));
  return text + (route_.size() > 1 ? "," : "");
}

void ControlPlane::addDescriptors(std::vector<pollfd>& sockets) const {
  const std::lock_guard lock(mutex_);
  for (const Link& link : links_)
    if (link.channel.fd() >= 0)
      sockets.push_back(
          {link.channel.fd(), static_cast<short>(link.channel.hasOutput() ? POLLIN | POLLOUT : POLLIN), 0});
}

void ControlPlane::poll(const std::function<RankState()>& describe) {
  const std::lock_guard lock(mutex_);
  if (told_) throw Error(*told_);
  try {
    pollAll(describe);
  } catch (const Error& error) {
    told_ = error;
    throw;
  }
}

void ControlPlane::pollAll(const std::function<RankState()>& describe) {
  for (Link& link : links_)
    if (link.channel.fd() >= 0) drain(link, describe);
  spreadNotices();
  if (!inquest_) return;
  if (inquest_->isOver()) concludeInquest(describe());
}

void ControlPlane::drain(Link& link, const std::function<RankState()>& describe) {
  bool open = false;
  try {
    open = link.channel.flush() && link.channel.receive();
  } catch (const Error&) {
    // A connection that the network gave up is as good as closed.
  }
  while (const std::optional<Message> message = link.channel.take()) handle(link, *message, describe);
  if (open) return;
  // A process that ends closes its connection; from a host that is down, or cut off, nothing comes.
  const Presence how = link.channel.isLost() ? Presence::lost : Presence::dead;
  link.channel = Channel(FileDescriptor());
  markClosed(link, how);
}

void ControlPlane::handle(Link& link, const Message& message, const std::function<RankState()>& describe) {
  switch (message.kind) {
    case MessageKind::announced:
      return handleFailure(link, rankIn(message, who_.size()), restOf(message));
    case MessageKind::failure:  // of a rank that has not yet come as far as here
    case MessageKind::report:
      return handleFailure(link, link.rank, message.payload);
    case MessageKind::verdict:
      return handleVerdict(message);
    case MessageKind::farewell:
      return link.isUp ? learnGone(link.rank, Presence::left) : markGone(link.rank, Presence::left);
    case MessageKind::gone:
      return handleNotices(link, message);
    case MessageKind::query:
      wasAsked_ = true;
      sendDown(MessageKind::query, nullptr);
      (void)sendTo(link, MessageKind::state, payloadOfState(rank_, describe()));
      return;
    case MessageKind::stuck:
    case MessageKind::state:
      return handleAnswer(message);
    default:
      return;  // of no meaning after init
  }
}

void ControlPlane::handleFailure(const Link& from, int origin, std::span<const std::byte> failure) {
  if (origin < 0) return;
  Message inner;
  inner.payload.assign(failure.begin(), failure.end());
  const Error error = failureIn(inner);
  hasFailed_ = true;
  const Payload payload = payloadOfRank(origin, failure);
  for (Link& link : links_)
    if (&link != &from && link.rank != origin) sendTo(link, MessageKind::announced, payload);
  fail(taccRemoteError, "{} reported: {}", nameOf(origin), error.what());
}

void ControlPlane::handleVerdict(const Message& message) {
  hasFailed_ = true;
  sendDown(MessageKind::verdict, makePayload(message.payload));
  fail(taccTimeout, "{}", textFrom(message.payload));
}

void ControlPlane::handleNotices(const Link& from, const Message& message) {
  Notice notice;
  for (std::size_t at = 0; at + sizeof notice <= message.payload.size(); at += sizeof notice) {
    std::memcpy(&notice, message.payload.data() + at, sizeof notice);
    if (notice.rank < 0 || static_cast<std::size_t>(notice.rank) >= presence_.size() || notice.rank == rank_) continue;
    from.isUp ? learnGone(notice.rank, notice.how) : markGone(notice.rank, notice.how);
  }
}

void ControlPlane::handleAnswer(const Message& message) {
  const int origin = rankIn(message, who_.size());
  if (origin < 0) return;
  if (rank_ != 0) return sendUp(message.kind, makePayload(message.payload));
  if (message.kind == MessageKind::stuck) {
    if (!inquest_) openInquest();
    inquest_->hear(origin, stateIn(restOf(message), who_.size()));
  } else if (inquest_) {
    inquest_->answer(origin, stateIn(restOf(message), who_.size()));
  }
}

/// Seen here, or told by a branch: it goes up to rank 0, and from there to all.
void ControlPlane::markGone(int rank, Presence how) {
  Presence& presence = presence_[static_cast<std::size_t>(rank)];
  if (presence != Presence::here) return;
  presence = how;
  (isTop() ? downward_ : upward_).push_back({rank, how});
}

/// Told by the parent: it goes on to those behind this rank, who may not know even if this one did.
void ControlPlane::learnGone(int rank, Presence how) {
  Presence& presence = presence_[static_cast<std::size_t>(rank)];
  if (presence == Presence::here) presence = how;
  downward_.push_back({rank, how});
}

void ControlPlane::markClosed(const Link& link, Presence how) {
  markGone(link.rank, how);  // unless it has left
  for (const int rank : link.behind) markGone(rank, Presence::cutOff);
  if (!link.isUp) return;
  std::vector<bool> isBehind(who_.size());
  isBehind[static_cast<std::size_t>(rank_)] = true;
  for (const Link& other : links_) {
    isBehind[static_cast<std::size_t>(other.rank)] = true;
    for (const int rank : other.behind) isBehind[static_cast<std::size_t>(rank)] = true;
  }
  for (std::size_t r = 0; r < isBehind.size(); ++r)
    if (!isBehind[r]) markGone(static_cast<int>(r), Presence::cutOff);
}

bool ControlPlane::isTop() const noexcept {
  return std::ranges::none_of(links_, [](const Link& link) { return link.isUp && link.channel.fd() >= 0; });
}

void ControlPlane::spreadNotices() {
  const auto payloadOfNotices = [](const std::vector<Notice>& notices) {
    const auto bytes = std::as_bytes(std::span(notices));
    return makePayload({bytes.begin(), bytes.end()});
  };
  if (isTop()) downward_.insert(downward_.end(), upward_.begin(), upward_.end());
  if (!isTop() && !upward_.empty()) sendUp(MessageKind::gone, payloadOfNotices(upward_));
  if (!downward_.empty()) sendDown(MessageKind::gone, payloadOfNotices(downward_));
  upward_.clear();
  downward_.clear();
}

void ControlPlane::sendUp(MessageKind kind, const Payload& payload) noexcept {
  for (Link& link : links_)
    if (link.isUp) sendTo(link, kind, payload);
}

void ControlPlane::sendDown(MessageKind kind, const Payload& payload) noexcept {
  for (Link& link : links_)
    if (!link.isUp) sendTo(link, kind, payload);
}

bool ControlPlane::sendTo(Link& link, MessageKind kind, const Payload& payload) noexcept {
  if (link.channel.fd() < 0) return true;
  try {
    link.channel.queue(kind, payload);
    (void)link.channel.flush();
    return true;
  } catch (const std::exception&) {
    return false;  // its end is noticed when something is read from it
  }
}

void ControlPlane::announce(const Error& error) noexcept {
  const std::lock_guard lock(mutex_);
  if (std::exchange(hasFailed_, true)) return;
  Payload payload;
  try {
    payload = payloadOfRank(rank_, *describeFailure(error));
  } catch (const std::exception&) {
    // The last words need no memory.
  }
  for (Link& link : links_)
    if (payload == nullptr || !sendTo(link, MessageKind::announced, payload)) link.channel.sayLastWord();
}

void ControlPlane::reportStuck(const std::string& doing) {
  const std::lock_guard lock(mutex_);
  if (rank_ != 0) return sendUp(MessageKind::stuck, payloadOfState(rank_, RankState(doing)));
  if (!inquest_) openInquest();
}

bool ControlPlane::awaitsVerdict() const {
  const std::lock_guard lock(mutex_);
  return wasAsked_;
}

void ControlPlane::openInquest() {
  inquest_.emplace(who_.size());
  sendDown(MessageKind::query, nullptr);
}

void ControlPlane::concludeInquest(RankState own) {
  std::vector<int> unconfirmed;
  for (const Link& link : links_)
    if (link.channel.fd() >= 0 && isUnconfirmed(link.channel.fd(), inquest_->age())) unconfirmed.push_back(link.rank);
  const std::string verdict = inquest_->verdict(who_, parents_, unconfirmed, std::move(own));
  hasFailed_ = true;
  const auto bytes = std::as_bytes(std::span(verdict));
  sendDown(MessageKind::verdict, makePayload({bytes.begin(), bytes.end()}));
  inquest_.reset();
  fail(taccTimeout, "{}", verdict);
}

std::optional<int> ControlPlane::deadRank() const {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(presence_, [](Presence how) { return how == Presence::dead || how == Presence::lost; });
  if (found == presence_.end()) return std::nullopt;
  return static_cast<int>(found - presence_.begin());
}

std::optional<std::string> ControlPlane::describeDeath() const {
  const std::optional<int> rank = deadRank();
  if (!rank) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (presence_[static_cast<std::size_t>(*rank)] == Presence::dead) return nameOf(*rank) + " has died";
  return fmt::format("the network has lost {}, whose host is down or cut off", nameOf(*rank));
}

std::optional<int> ControlPlane::leftRank(const std::vector<int>& awaited) const {
  const std::lock_guard lock(mutex_);
  for (const int rank : awaited)
    if (presence_[static_cast<std::size_t>(rank)] == Presence::left) return rank;
  return std::nullopt;
}

}  // namespace tacc

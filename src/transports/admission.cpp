#include "transports/admission.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/error.hpp"
#include "transports/spare_descriptors.hpp"
#include "transports/unix_socket.hpp"

namespace tacc {
namespace {

/// Connections that end while they wait, or are refused at once, and are passed over in one call.
constexpr int mostPassedOver = 64;

bool isShortage(int code) noexcept { return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM; }

std::string describeCaller(int unixSocket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  const bool isKnown = ::getsockopt(unixSocket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.pid != 0;
  return isKnown ? fmt::format("process {} of this host", peer.pid) : "a process of this host";
}

}  // namespace

Admission::Admission(int rank, std::size_t ranks, Receive receive)
    : ranks_(ranks), receive_(std::move(receive)), refusals_(rank) {}

std::optional<int> Admission::accept(int listener, bool isTcp) {
  for (int turn = 0; turn < mostPassedOver; ++turn) {
    sockaddr_storage storage{};
    auto* const address = reinterpret_cast<sockaddr*>(&storage);
    socklen_t length = sizeof storage;
    FileDescriptor socket =
        ownDescriptor([&] { return ::accept4(listener, address, &length, SOCK_CLOEXEC | SOCK_NONBLOCK); });
    if (!socket.valid()) {
      const int code = errno;
      if (isShortage(code)) {
        if (noteShortage(code)) continue;
        return std::nullopt;
      }
      if (code != EAGAIN && code != EWOULDBLOCK) continue;  // the one who waited has gone, or its host has
      shortSince_.reset();
      return std::nullopt;
    }
    shortSince_.reset();
    const auto from = isTcp ? InetAddress::of(address) : std::nullopt;
    Origin origin{isTcp, !isTcp ? describeCaller(socket.get()) : from ? from->text() : "an unknown address"};
    if (!isTcp && !isSameUser(socket.get())) {
      refusals_.note(
          origin.text, isTcp,
          fmt::format("{}: ranks of one host must be of one user to meet here", describeUsers(socket.get())));
      continue;
    }
    if (entries_.size() >= ranks_ + strangerLimit)
      (void)makeRoom(false, "too many connections have not proven that they are of this job");
    std::unique_ptr<Stranger> who = receive_(std::move(socket), origin);
    if (!who) continue;
    const bool isNear = !isTcp || hosts_.empty() || (from && hosts_.contains(from->v6()));
    const int number = next_++;
    entries_.emplace(number, Entry{std::move(who), std::move(origin), isNear, Clock::now()});
    far_ += isNear ? 0 : 1;
    return number;
  }
  return std::nullopt;
}

/// Whether somebody has gone, so that there is a descriptor again.
bool Admission::noteShortage(int code) {
  shortage_ = code;
  const auto now = Clock::now();
  if (!shortSince_) shortSince_ = now;
  reopensAt_ = now + shortagePause;
  if (!makeRoom(true, "there is no descriptor for another, and it has not proven that it is of this job")) return false;
  reopensAt_ = {};
  return true;
}

int Admission::lastingShortage() const noexcept {
  return shortSince_ && Clock::now() - *shortSince_ > shortageLimit ? shortage_ : 0;
}

/// Sends one away. False: nobody is there who has to go.
bool Admission::makeRoom(bool isForDescriptor, const char* why) {
  const auto one =
      std::ranges::find_if(entries_, [this](const auto& entry) { return far_ == 0 || !entry.second.isNear; });
  if (one == entries_.end()) return false;
  if (isForDescriptor && one->second.isNear && Clock::now() - one->second.since < yieldTime) return false;
  dismiss(one, why);
  return true;
}

Admission::Entries::iterator Admission::drop(Entries::iterator one) noexcept {
  far_ -= one->second.isNear ? 0 : 1;
  return entries_.erase(one);
}

Admission::Entries::iterator Admission::hear(Entries::iterator one) {
  Stranger::Hearing hearing{};
  try {
    hearing = one->second.who->hear();
  } catch (...) {
    drop(one);  // what it said is lost: it comes again
    throw;
  }
  if (hearing.standing == Stranger::Standing::waits) return std::next(one);
  if (hearing.standing == Stranger::Standing::refused)
    refusals_.note(one->second.origin.text, one->second.origin.isTcp, hearing.why);
  return drop(one);
}

/// Its proof may have come.
Admission::Entries::iterator Admission::dismiss(Entries::iterator one, const std::string& why) {
  const std::size_t before = entries_.size();
  const auto next = hear(one);
  if (entries_.size() < before) return next;
  refusals_.note(one->second.origin.text, one->second.origin.isTcp, why);
  return drop(one);
}

void Admission::addDescriptors(std::vector<pollfd>& sockets) const {
  for (const auto& [number, entry] : entries_) sockets.push_back(entry.who->descriptor());
}

void Admission::hear(std::span<const pollfd> sockets) {
  auto one = entries_.begin();
  for (const pollfd& socket : sockets) one = socket.revents != 0 ? hear(one) : std::next(one);
}

void Admission::hear(int number) {
  if (const auto one = entries_.find(number); one != entries_.end()) hear(one);
}

void Admission::dismissSilent() {
  const auto latest = Clock::now() - patience;
  for (auto one = entries_.begin(); one != entries_.end() && one->second.since < latest;)
    one = dismiss(one, fmt::format("it did not prove within {} s that it is of this job", patience.count()));
}

std::optional<Admission::Clock::time_point> Admission::nextDue() const {
  std::optional<Clock::time_point> due;
  if (!entries_.empty()) due = entries_.begin()->second.since + patience;
  if (!isOpen()) due = due ? std::min(*due, reopensAt_) : reopensAt_;
  return due;
}

void Admission::clear() noexcept {
  entries_.clear();
  far_ = 0;
}

}  // namespace tacc

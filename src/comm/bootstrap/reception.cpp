#include "comm/bootstrap/reception.hpp"

#include <cerrno>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "transports/spare_descriptors.hpp"

namespace tacc {
namespace {

/// A connection that has not proven itself by then is closed; a slow rank of the job connects again.
constexpr double newcomerSeconds = 5.0;
/// So many more unproven connections than ranks push out the oldest, so that a stranger cannot use up the descriptors.
constexpr std::size_t strangerLimit = 256;
/// Where there is no descriptor for another connection, one that has not proven itself by then makes room.
constexpr double yieldSeconds = 0.5;
/// Accepted in one call: what comes faster than that must not keep the caller from its deadlines.
constexpr int acceptedAtOnce = 64;

}  // namespace

void Reception::addDescriptors(std::vector<pollfd>& sockets, Deadline& next) const {
  for (const Listener& listener : listeners_) sockets.push_back({isFull_ ? -1 : listener.socket.get(), POLLIN, 0});
  if (isFull_ && !newcomers_.empty()) next = std::min(next, newcomers_.front().yields);
  for (const Newcomer& newcomer : newcomers_) {
    next = std::min(next, newcomer.deadline);
    sockets.push_back(
        {newcomer.channel.fd(), static_cast<short>(newcomer.channel.hasOutput() ? POLLIN | POLLOUT : POLLIN), 0});
  }
}

void Reception::serve(std::span<const pollfd> sockets, const std::function<void(Guest& guest)>& admit) {
  std::size_t index = listeners_.size();
  for (auto newcomer = newcomers_.begin(); newcomer != newcomers_.end(); ++index) {
    bool keep = true;
    try {
      keep = sockets[index].revents == 0 || serveNewcomer(*newcomer);
    } catch (...) {
      newcomers_.erase(newcomer);  // what it said is lost: it comes again
      throw;
    }
    if (keep && newcomer->deadline.passed()) {
      refusals_.note(newcomer->from, newcomer->overTcp,
                     fmt::format("it did not prove within {} s that it is of this job", newcomerSeconds));
      keep = false;
    }
    newcomer = keep ? std::next(newcomer) : newcomers_.erase(newcomer);
  }
  // Before others are accepted: a guest that cannot stay leaves its descriptor to the next.
  while (!guests_.empty()) {
    Guest guest = std::move(guests_.front());
    guests_.pop_front();
    admit(guest);
  }
  const bool wasFull = std::exchange(isFull_, false);
  if (wasFull && !newcomers_.empty() && newcomers_.front().yields.passed()) {
    refusals_.note(
        newcomers_.front().from, newcomers_.front().overTcp,
        fmt::format("there is no descriptor for another, and it did not prove within {} s that it is of this job",
                    yieldSeconds));
    newcomers_.pop_front();
  }
  for (std::size_t i = 0; i < listeners_.size(); ++i)
    if (wasFull || sockets[i].revents != 0) acceptNewcomers(listeners_[i]);
}

void Reception::acceptNewcomers(const Listener& listener) {
  for (int accepted = 0; accepted < acceptedAtOnce; ++accepted) {
    Visitor visitor = acceptVisitor(listener);
    if (!visitor.socket.valid()) {
      // A connection that ended while it waited, or whose host did, is no fault of the listener.
      if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO || errno == ENETUNREACH || errno == EHOSTUNREACH)
        continue;
      if (errno == EAGAIN) return;
      if (newcomers_.empty()) failDescriptor("rank {}: cannot accept the connection of another rank", self_.rank);
      isFull_ = true;
      return;
    }
    if (!visitor.refusal.empty()) {
      refusals_.note(visitor.from, listener.isTcp, visitor.refusal);
      continue;
    }
    if (newcomers_.size() == self_.ranks + strangerLimit) {
      refusals_.note(newcomers_.front().from, newcomers_.front().overTcp,
                     "too many connections have not proven that they are of this job");
      newcomers_.pop_front();
    }
    Newcomer newcomer{Channel(std::move(visitor.socket)), listener.isTcp,        std::move(visitor.from), {makeNonce()},
                      Deadline(newcomerSeconds),          Deadline(yieldSeconds)};
    newcomer.channel.queue(MessageKind::challenge, payloadOf(newcomer.challenge));
    if (newcomer.channel.flush()) newcomers_.push_back(std::move(newcomer));
  }
}

/// False when it is no newcomer any more: refused, or a guest.
bool Reception::serveNewcomer(Newcomer& newcomer) {
  const bool open = newcomer.channel.flush() && newcomer.channel.receive();
  const std::optional<Message> message = newcomer.channel.take();
  if (!message) {
    // One that goes without a word is often a rank that found a better way here.
    if (!open && newcomer.channel.hasSpoken())
      refusals_.note(newcomer.from, newcomer.overTcp, newcomer.channel.whyClosed());
    return open;
  }
  const std::optional<Hello> hello = valueIn<Hello>(*message);
  if (message->kind != MessageKind::hello || !hello) {
    refusals_.note(newcomer.from, newcomer.overTcp, "it sent another message than one that joins");
    return false;
  }
  if (!isGenuine(secret_, newcomer.challenge, *hello)) {
    refusals_.note(newcomer.from, newcomer.overTcp, "it does not know the secret of the unique id");
    return false;
  }
  newcomer.channel.queue(MessageKind::welcome, payloadOf(answerHello(secret_, newcomer.challenge, *hello, self_)));
  trustJoiner(newcomer.channel, secret_, newcomer.challenge, *hello, self_);
  guests_.push_back({std::move(newcomer.channel), newcomer.overTcp, hello->who});
  return false;
}

void Reception::close() {
  listeners_.clear();
  newcomers_.clear();
  guests_.clear();
}

}  // namespace tacc

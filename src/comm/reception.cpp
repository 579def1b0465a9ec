#include "comm/reception.hpp"

#include <cerrno>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"

namespace tacc {
namespace {

/// A connection that has not proven itself by then is closed; a slow rank of the job connects again.
constexpr double newcomerSeconds = 5.0;
/// So many more unproven connections than ranks push out the oldest, so that a stranger cannot use up the descriptors.
constexpr std::size_t strangerLimit = 256;

}  // namespace

void Reception::addDescriptors(std::vector<pollfd>& sockets, Deadline& next) const {
  for (const Listener& listener : listeners_) sockets.push_back({listener.socket.get(), POLLIN, 0});
  for (const Newcomer& newcomer : newcomers_) {
    next = std::min(next, newcomer.deadline);
    sockets.push_back(
        {newcomer.channel.fd(), static_cast<short>(newcomer.channel.hasOutput() ? POLLIN | POLLOUT : POLLIN), 0});
  }
}

void Reception::serve(std::span<const pollfd> sockets, const std::function<void(Guest& guest)>& admit) {
  std::size_t index = listeners_.size();
  for (auto newcomer = newcomers_.begin(); newcomer != newcomers_.end(); ++index) {
    bool keep = sockets[index].revents == 0 || serveNewcomer(*newcomer);
    if (keep && newcomer->deadline.passed()) {
      noteRefusal(*newcomer, fmt::format("it did not prove within {} s that it is of this job", newcomerSeconds));
      keep = false;
    }
    newcomer = keep ? std::next(newcomer) : newcomers_.erase(newcomer);
  }
  for (std::size_t i = 0; i < listeners_.size(); ++i)
    if (sockets[i].revents != 0) acceptNewcomers(listeners_[i]);
  while (!guests_.empty()) {
    Guest guest = std::move(guests_.front());
    guests_.pop_front();
    admit(guest);
  }
}

void Reception::acceptNewcomers(const Listener& listener) {
  for (;;) {
    Visitor visitor = acceptVisitor(listener);
    if (!visitor.socket.valid()) {
      // A connection that ended while it waited, or whose host did, is no fault of the listener.
      if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO || errno == ENETUNREACH || errno == EHOSTUNREACH)
        continue;
      if (errno == EAGAIN) return;
      if (newcomers_.empty())
        failErrno("rank {}: cannot accept another rank (for too many open files raise ulimit -n)", self_.rank);
      newcomers_.pop_front();
      continue;
    }
    if (newcomers_.size() == self_.ranks + strangerLimit) {
      noteRefusal(newcomers_.front(), "too many connections have not proven that they are of this job");
      newcomers_.pop_front();
    }
    Newcomer newcomer{Channel(std::move(visitor.socket)),
                      listener.isTcp,
                      std::move(visitor.from),
                      {makeNonce()},
                      Deadline(newcomerSeconds)};
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
    if (!open && newcomer.channel.hasSpoken()) noteRefusal(newcomer, newcomer.channel.whyClosed());
    return open;
  }
  const std::optional<Hello> hello = valueIn<Hello>(*message);
  if (message->kind != MessageKind::hello || !hello) {
    noteRefusal(newcomer, "it sent another message than one that joins");
    return false;
  }
  if (!isGenuine(secret_, newcomer.challenge, *hello)) {
    noteRefusal(newcomer, "it does not know the secret of the unique id");
    return false;
  }
  newcomer.channel.trust();
  newcomer.channel.queue(MessageKind::welcome, payloadOf(answerHello(secret_, newcomer.challenge, *hello, self_)));
  guests_.push_back({std::move(newcomer.channel), newcomer.overTcp, hello->who});
  return false;
}

void Reception::noteRefusal(const Newcomer& newcomer, std::string_view why) {
  ++refusals_;
  lastRefusal_ = fmt::format("from {}: {}", newcomer.from, why);
  // One that tries again and again comes from another port each time, and is worth one line.
  const std::string_view from = newcomer.from;
  std::string who = fmt::format("{} {}", newcomer.overTcp ? from.substr(0, from.rfind(':')) : from, why);
  if (loggedRefusals_.size() >= strangerLimit || !loggedRefusals_.insert(std::move(who)).second) return;
  log(LogLevel::warn, static_cast<int>(self_.rank), "refused a connection {}", lastRefusal_);
}

std::string Reception::describeRefusals() const {
  if (refusals_ == 0) return "";
  return fmt::format("; {} connections were refused, the last {}", refusals_, lastRefusal_);
}

void Reception::close() {
  listeners_.clear();
  newcomers_.clear();
  guests_.clear();
}

}  // namespace tacc

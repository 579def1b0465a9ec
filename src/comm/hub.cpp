#include "comm/hub.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "base/log.hpp"
#include "comm/failure.hpp"
#include "comm/host.hpp"

namespace tacc {
namespace {

/// A connection that has not proven itself by then is closed; a slow rank of the job connects again.
constexpr double newcomerSeconds = 5.0;
/// So many more unproven connections than ranks push out the oldest, so that a stranger cannot use up the descriptors.
constexpr std::size_t strangerLimit = 256;
/// How long a failing rank 0 tries to tell the others.
constexpr double farewellSeconds = 0.5;
/// How long a rank 0 that cannot go on waits for those who still come, to tell them too.
constexpr double lingerSeconds = 1.5;
/// Between calls of idleWork.
constexpr double idleSeconds = 0.001;
/// Between attempts while the kernel has too many descriptors in flight.
constexpr double stallSeconds = 0.001;

std::string describeVersion(std::uint32_t code) {
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

/// Fails at once where the connections to all ranks cannot be had later.
void checkDescriptorLimit(int ranks) {
  constexpr rlim_t others = 16;  // what a process has open besides, at the very least
  rlimit limit{};
  const auto needed = static_cast<rlim_t>(ranks) + others;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= needed) return;
  fail(taccSystemError,
       "rank 0 keeps a connection to each of {} ranks while they join, and this process may have {} files open: raise "
       "ulimit -n to {} or more",
       ranks, limit.rlim_cur, needed + 1000);
}

/// Where the others find rank 0, for the message that they did not come.
std::string describeListening(const UniqueIdContents& id) {
  const std::vector<InetAddress> addresses = addressesIn(id);
  const bool localOnly = std::ranges::all_of(addresses, [](const auto& address) { return address.isLoopback(); });
  if (localOnly)
    return fmt::format("the id names no address of a network, so only ranks of host {} can join", hostName());
  return fmt::format("rank 0 listens on host {} at {}", hostName(), describeAddressesIn(id));
}

}  // namespace

Hub::Hub(std::vector<Listener> listeners, const UniqueIdContents& id, int ranks, double timeoutSeconds,
         const Interrupt& interrupt)
    : interrupt_(&interrupt),
      listeners_(std::move(listeners)),
      self_(introduceSelf(ranks, 0)),
      secret_(id.secret),
      members_(static_cast<std::size_t>(ranks)) {
  collective([&] {
    try {
      checkDescriptorLimit(this->ranks());
      admitAll(id, timeoutSeconds);
    } catch (const Error& error) {
      if (error.result() != taccTimeout) linger(error);
      throw;
    }
  });
}

void Hub::admitAll(const UniqueIdContents& id, double timeoutSeconds) {
  const Deadline deadline(timeoutSeconds);
  const auto isMissing = [this](int rank) { return !members_[static_cast<std::size_t>(rank)].has_value(); };
  for (;;) {
    int missing = 0;
    for (int rank = 1; rank < ranks(); ++rank) missing += isMissing(rank) ? 1 : 0;
    if (missing == 0) break;
    if (deadline.passed()) {
      fail(taccTimeout, "{} of {} did not join within {} s ({}{})", describeAll(isMissing), ranks(), timeoutSeconds,
           describeListening(id), describeRefusals());
    }
    serve(deadline, Phase::joining, MessageKind::complete);
  }
  // The port is free again before any rank knows that this communicator stands: the next may meet at the same one.
  std::erase_if(listeners_, [](const Listener& listener) { return listener.isTcp; });
  const Payload payload = payloadOf(static_cast<char>(allUnix()));
  scatter(MessageKind::complete, "init", timeoutSeconds, [&](int) { return Answer{payload, {}}; });
}

void Hub::linger(const Error& error) {
  const Interrupt* const heard = interrupt_;
  const Interrupt deaf(interrupt_->rank());  // it may be an interrupt that has to be told
  failed_ = &error;
  interrupt_ = &deaf;
  const Deadline deadline(lingerSeconds);
  try {
    while (proven_ < ranks() - 1 && !deadline.passed()) serve(deadline, Phase::lingering, MessageKind::failure);
  } catch (const Error&) {
    // The first Error is the one to report.
  }
  interrupt_ = heard;
}

std::vector<Message> Hub::gather(MessageKind kind, std::string_view operation, double timeoutSeconds) {
  const Deadline deadline(timeoutSeconds);
  const auto isMissing = [this](int rank) { return !members_[static_cast<std::size_t>(rank)]->part.has_value(); };
  for (;;) {
    int missing = 0;
    for (int rank = 1; rank < ranks(); ++rank) missing += isMissing(rank) ? 1 : 0;
    if (missing == 0) break;
    if (deadline.passed()) {
      fail(taccTimeout, "{}: {} of {} did not take part within {} s", operation, describeAll(isMissing), ranks(),
           timeoutSeconds);
    }
    serve(deadline, Phase::gathering, kind);
  }
  std::vector<Message> parts(members_.size());
  for (int rank = 1; rank < ranks(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    parts[index] = std::move(*members_[index]->part);
    members_[index]->part.reset();
  }
  return parts;
}

void Hub::listen(double seconds) {
  for (const Deadline deadline(seconds); !deadline.passed();) serve(deadline, Phase::gathering, MessageKind::gather);
}

void Hub::scatter(MessageKind kind, std::string_view operation, double timeoutSeconds,
                  const std::function<Answer(int rank)>& answerTo) {
  for (int rank = 1; rank < ranks(); ++rank) {
    const Answer answer = answerTo(rank);
    members_[static_cast<std::size_t>(rank)]->channel.queue(kind, answer.payload, answer.descriptors);
  }
  const Deadline deadline(timeoutSeconds);
  for (int rank = 1; rank < ranks(); ++rank) serveMember(rank, POLLOUT, Phase::scattering, kind);
  const auto isPending = [this](int rank) { return members_[static_cast<std::size_t>(rank)]->channel.hasOutput(); };
  for (;;) {
    int pending = 0;
    for (int rank = 1; rank < ranks(); ++rank) pending += isPending(rank) ? 1 : 0;
    if (pending == 0) return;
    if (deadline.passed()) {
      fail(taccTimeout, "{}: {} of {} did not take the answer within {} s", operation, describeAll(isPending), ranks(),
           timeoutSeconds);
    }
    serve(deadline, Phase::scattering, kind);
  }
}

void Hub::serve(const Deadline& deadline, Phase phase, MessageKind kind) {
  Deadline next = deadline;
  std::vector<pollfd> sockets;
  for (const Listener& listener : listeners_) sockets.push_back({listener.socket.get(), POLLIN, 0});
  for (const Newcomer& newcomer : newcomers_) {
    next = std::min(next, newcomer.deadline);
    sockets.push_back(
        {newcomer.channel.fd(), static_cast<short>(newcomer.channel.hasOutput() ? POLLIN | POLLOUT : POLLIN), 0});
  }
  const std::size_t firstMember = sockets.size();
  for (const std::optional<Member>& member : members_) {
    pollfd socket{-1, 0, 0};  // poll() skips it
    if (phase == Phase::lingering) {
      // What they send is of no interest any more.
    } else if (member && member->channel.stalled()) {
      next = std::min(next, Deadline(stallSeconds));
    } else if (member && (phase != Phase::scattering || member->channel.hasOutput())) {
      socket = {member->channel.fd(), static_cast<short>(member->channel.hasOutput() ? POLLOUT : 0), 0};
      if (phase != Phase::scattering) socket.events = static_cast<short>(socket.events | POLLIN);
    }
    sockets.push_back(socket);
  }
  if (idleWork) {
    idleWork();
    next = std::min(next, Deadline(idleSeconds));
  }
  waitFor(sockets, *interrupt_, next);

  for (int rank = 1; rank < ranks(); ++rank) {
    const std::size_t index = firstMember + static_cast<std::size_t>(rank);
    const std::optional<Member>& member = members_[static_cast<std::size_t>(rank)];
    if (sockets[index].revents != 0)
      serveMember(rank, sockets[index].revents, phase, kind);
    else if (phase != Phase::lingering && member && member->channel.stalled())
      serveMember(rank, POLLOUT, phase, kind);
  }
  std::size_t index = listeners_.size();
  for (auto newcomer = newcomers_.begin(); newcomer != newcomers_.end(); ++index) {
    bool keep = sockets[index].revents == 0 || serveNewcomer(*newcomer);
    if (keep && newcomer->deadline.passed()) {
      noteRefusal(*newcomer, fmt::format("it did not prove within {} s that it is of this job", newcomerSeconds));
      keep = false;
    }
    newcomer = keep ? std::next(newcomer) : newcomers_.erase(newcomer);
  }
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    if (sockets[i].revents != 0) acceptNewcomers(listeners_[i]);
  }
}

void Hub::acceptNewcomers(const Listener& listener) {
  for (;;) {
    Visitor visitor = acceptVisitor(listener);
    if (!visitor.socket.valid()) {
      // A connection that ended while it waited, or whose host did, is no fault of the listener.
      if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO || errno == ENETUNREACH || errno == EHOSTUNREACH)
        continue;
      if (errno == EAGAIN) return;
      if (newcomers_.empty()) failErrno("rank 0: cannot accept another rank (for too many open files raise ulimit -n)");
      newcomers_.pop_front();
      continue;
    }
    if (newcomers_.size() == members_.size() + strangerLimit) {
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

void Hub::noteRefusal(const Newcomer& newcomer, std::string_view why) {
  ++refusals_;
  lastRefusal_ = fmt::format("from {}: {}", newcomer.from, why);
  // One that tries again and again comes from another port each time, and is worth one line.
  const std::string_view from = newcomer.from;
  std::string who = fmt::format("{} {}", newcomer.overTcp ? from.substr(0, from.rfind(':')) : from, why);
  if (loggedRefusals_.size() >= strangerLimit || !loggedRefusals_.insert(std::move(who)).second) return;
  log(LogLevel::warn, 0, "refused a connection {}", lastRefusal_);
}

std::string Hub::describeRefusals() const {
  if (refusals_ == 0) return "";
  return fmt::format("; {} connections were refused, the last {}", refusals_, lastRefusal_);
}

/// False when the connection is to be closed.
bool Hub::serveNewcomer(Newcomer& newcomer) {
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
  admit(newcomer, *hello);
  return false;  // its channel has moved
}

void Hub::admit(Newcomer& newcomer, const Hello& hello) {
  Channel channel = std::move(newcomer.channel);
  channel.trust();
  channel.queue(MessageKind::welcome, payloadOf(answerHello(secret_, newcomer.challenge, hello, self_)));
  ++proven_;
  if (failed_ != nullptr) {
    channel.queue(MessageKind::failure, describeFailure(*failed_));
    (void)channel.flush();
    channel.finish();
    return;
  }
  try {
    checkFits(hello.who, newcomer.overTcp);
    if (!channel.flush()) return;  // gone already: it is missing then
    members_[hello.who.rank] = Member{std::move(channel), newcomer.overTcp, hello.who, std::nullopt};
  } catch (const Error& error) {
    // The others are told by whoever called; this one is no member and is told here.
    channel.queue(MessageKind::failure, describeFailure(error));
    (void)channel.flush();
    channel.finish();
    throw;
  }
}

void Hub::checkFits(const Introduction& who, bool overTcp) const {
  const std::string place = describePlace(who, overTcp);
  const std::string here = describePlace(self_, overTcp);
  if (who.libraryVersion != TACC_VERSION_CODE) {
    fail(taccInvalidUsage, "rank {} ({}) runs tacc {}, rank 0 ({}) runs tacc {}: use one version", who.rank, place,
         describeVersion(who.libraryVersion), here, describeVersion(TACC_VERSION_CODE));
  }
  if (who.ranks != members_.size()) {
    fail(taccInvalidUsage, "rank {} ({}) asks for {} ranks, rank 0 ({}) for {}: all must ask for the same", who.rank,
         place, who.ranks, here, members_.size());
  }
  if (who.rank >= who.ranks)
    fail(taccInvalidUsage, "{} is rank {} of {}: ranks count from 0", place, who.rank, who.ranks);
  const std::optional<Member>& taken = members_[who.rank];
  if (who.rank == 0 || taken) {
    fail(taccInvalidUsage, "rank {} is taken twice, by {} and by {}", who.rank,
         taken ? describePlace(taken->who, taken->overTcp) : here, place);
  }
}

bool Hub::allUnix() const noexcept {
  return std::ranges::none_of(members_, [](const auto& member) { return member && member->overTcp; });
}

std::vector<Channel> Hub::release() {
  std::vector<Channel> channels;
  for (std::optional<Member>& member : members_) {
    channels.push_back(member ? std::move(member->channel) : Channel(FileDescriptor()));
    member.reset();
  }
  listeners_.clear();
  newcomers_.clear();
  return channels;
}

void Hub::serveMember(int rank, short events, Phase phase, MessageKind kind) {
  Member& member = *members_[static_cast<std::size_t>(rank)];
  if ((events & POLLOUT) != 0 && !member.channel.flush()) failMemberEnded(rank);
  if (phase == Phase::scattering) {
    if ((events & (POLLHUP | POLLERR)) != 0) failMemberEnded(rank);
    return;
  }
  if ((events & ~POLLOUT) == 0) return;
  const bool open = member.channel.receive();
  while (std::optional<Message> message = member.channel.take()) {
    if (message->kind == MessageKind::failure) {
      fail(taccRemoteError, "{} failed: {}", describe(rank), failureIn(*message).what());
    }
    if (phase == Phase::joining || message->kind != kind || member.part) {
      fail(taccInternalError, "{} sent message {} where {} was due: the ranks are not at the same call", describe(rank),
           static_cast<int>(message->kind), static_cast<int>(kind));
    }
    member.part = std::move(message);
  }
  if (!open) failLost(rank, phase == Phase::joining ? " before all had joined" : "");
}

void Hub::failMemberEnded(int rank) {
  // It may have said why before it closed.
  Channel& channel = members_[static_cast<std::size_t>(rank)]->channel;
  (void)channel.receive();
  while (const std::optional<Message> message = channel.take()) {
    if (message->kind == MessageKind::failure) {
      fail(taccRemoteError, "{} failed: {}", describe(rank), failureIn(*message).what());
    }
  }
  failLost(rank, "");
}

void Hub::failLost(int rank, std::string_view when) {
  const Channel& channel = members_[static_cast<std::size_t>(rank)]->channel;
  if (channel.isLost()) {
    fail(taccRemoteError, "{} cannot be reached any more{} ({})", describe(rank), when, channel.whyClosed());
  }
  fail(taccRemoteError, "{} has ended{}", describe(rank), when);
}

void Hub::tellFailure(const Error& error) noexcept {
  try {
    const Payload payload = describeFailure(error);
    for (std::optional<Member>& member : members_) {
      if (member) member->channel.queue(MessageKind::failure, payload);
    }
    const Deadline deadline(farewellSeconds);
    for (;;) {
      std::vector<pollfd> sockets;
      for (std::optional<Member>& member : members_) {
        if (member && !member->channel.flush()) member.reset();
        if (member && member->channel.hasOutput()) sockets.push_back({member->channel.fd(), POLLOUT, 0});
      }
      if (sockets.empty() || deadline.passed()) break;
      (void)::poll(sockets.data(), sockets.size(), std::min(deadline.milliseconds(), 10));
    }
  } catch (const std::exception&) {
    // The connections close below; the others then see that rank 0 has ended.
  }
  listeners_.clear();
  newcomers_.clear();
  for (std::optional<Member>& member : members_) {
    if (member) member->channel.finish();
    member.reset();
  }
}

std::string Hub::describe(int rank) const {
  const std::optional<Member>& member = members_[static_cast<std::size_t>(rank)];
  if (!member) return fmt::format("rank {}", rank);
  return fmt::format("rank {} ({})", rank, describeState(member->who, member->overTcp));
}

template <class Missing>
std::string Hub::describeAll(const Missing& missing) const {
  constexpr int shown = 8;
  std::string text;
  int count = 0;
  for (int rank = 1; rank < ranks(); ++rank) {
    if (!missing(rank)) continue;
    if (count++ < shown) text += (text.empty() ? "" : ", ") + describe(rank);
  }
  return count > shown ? text + fmt::format(" and {} more", count - shown) : text;
}

}  // namespace tacc

#include "comm/hub.hpp"

#include <sodium.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "comm/failure.hpp"
#include "comm/rendezvous_address.hpp"
#include "transports/liveness.hpp"

namespace tacc {
namespace {

/// A connection that has not proven itself by then is closed; a slow rank of the job connects again.
constexpr double newcomerSeconds = 5.0;
/// More unproven connections than this push out the oldest, so that a stranger cannot use up the descriptors.
constexpr std::size_t newcomerLimit = 256;
/// How long a failing rank 0 tries to tell the others.
constexpr double farewellSeconds = 0.5;
/// How long a rank 0 that found the ranks not to fit together waits for the rest of them, to tell them too.
constexpr double lingerSeconds = 2.0;
/// Between attempts while the kernel has too many descriptors in flight.
constexpr double stallSeconds = 0.001;

std::string describeVersion(std::uint32_t code) {
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

}  // namespace

std::optional<FileDescriptor> Hub::listen(const std::string& name) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) failErrno("rank 0: no unix socket");
  const RendezvousAddress address(name);
  if (::bind(socket.get(), address.get(), address.size()) != 0) {
    if (errno == EADDRINUSE) return std::nullopt;
    failErrno("rank 0: cannot listen for the other ranks");
  }
  if (::listen(socket.get(), SOMAXCONN) != 0) failErrno("rank 0: cannot listen for the other ranks");
  return socket;
}

Hub::Hub(FileDescriptor listener, const UniqueIdContents& id, int ranks, double timeoutSeconds,
         const Interrupt& interrupt)
    : interrupt_(interrupt),
      listener_(std::move(listener)),
      secret_(id.secret),
      members_(static_cast<std::size_t>(ranks)) {
  collective([&] {
    try {
      admitAll(timeoutSeconds);
    } catch (const Error& error) {
      if (error.result() == taccInvalidUsage) linger(error);
      throw;
    }
  });
}

void Hub::admitAll(double timeoutSeconds) {
  const Deadline deadline(timeoutSeconds);
  const auto isMissing = [this](int rank) { return !members_[static_cast<std::size_t>(rank)].has_value(); };
  for (;;) {
    int missing = 0;
    for (int rank = 1; rank < ranks(); ++rank) missing += isMissing(rank) ? 1 : 0;
    if (missing == 0) break;
    if (deadline.passed()) {
      fail(taccTimeout, "{} of {} did not join within {} s", describeAll(isMissing), ranks(), timeoutSeconds);
    }
    serve(deadline, Phase::joining, MessageKind::complete);
  }
  scatter(MessageKind::complete, "init", timeoutSeconds, [](int) { return Answer{}; });
}

void Hub::linger(const Error& error) {
  failed_ = &error;
  const Deadline deadline(lingerSeconds);
  try {
    while (proven_ < ranks() - 1 && !deadline.passed()) serve(deadline, Phase::lingering, MessageKind::failure);
  } catch (const Error&) {
    // The first Error is the one to report.
  }
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
  sockets.push_back({listener_.get(), POLLIN, 0});
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
  waitFor(sockets, interrupt_, next);

  for (int rank = 1; rank < ranks(); ++rank) {
    const std::size_t index = firstMember + static_cast<std::size_t>(rank);
    const std::optional<Member>& member = members_[static_cast<std::size_t>(rank)];
    if (sockets[index].revents != 0)
      serveMember(rank, sockets[index].revents, phase, kind);
    else if (phase != Phase::lingering && member && member->channel.stalled())
      serveMember(rank, POLLOUT, phase, kind);
  }
  std::size_t index = 1;
  for (auto newcomer = newcomers_.begin(); newcomer != newcomers_.end(); ++index) {
    const bool keep = (sockets[index].revents == 0 || serveNewcomer(*newcomer)) && !newcomer->deadline.passed();
    newcomer = keep ? std::next(newcomer) : newcomers_.erase(newcomer);
  }
  if (sockets[0].revents != 0) acceptNewcomers();
}

void Hub::acceptNewcomers() {
  for (;;) {
    FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return;
      if (newcomers_.empty()) failErrno("rank 0: cannot accept another rank (for too many open files raise ulimit -n)");
      newcomers_.pop_front();
      continue;
    }
    if (newcomers_.size() == newcomerLimit) newcomers_.pop_front();
    Newcomer newcomer{Channel(std::move(socket)), {makeNonce()}, Deadline(newcomerSeconds)};
    newcomer.channel.queue(MessageKind::challenge, payloadOf(newcomer.challenge));
    if (newcomer.channel.flush()) newcomers_.push_back(std::move(newcomer));
  }
}

/// False when the connection is to be closed.
bool Hub::serveNewcomer(Newcomer& newcomer) {
  const bool open = newcomer.channel.flush() && newcomer.channel.receive();
  const std::optional<Message> message = newcomer.channel.take();
  if (!message) return open;
  const std::optional<Hello> hello = valueIn<Hello>(*message);
  if (message->kind != MessageKind::hello || !hello || !isGenuine(secret_, newcomer.challenge, *hello)) return false;
  admit(newcomer, *hello);
  return false;  // its channel has moved
}

void Hub::admit(Newcomer& newcomer, const Hello& hello) {
  Channel channel = std::move(newcomer.channel);
  channel.trust();
  channel.queue(MessageKind::welcome, payloadOf(answerHello(secret_, newcomer.challenge, hello)));
  const Introduction& who = hello.who;
  ++proven_;
  if (failed_ != nullptr) {
    channel.queue(MessageKind::failure, describeFailure(*failed_));
    (void)channel.flush();
    return;
  }
  try {
    const auto rank = static_cast<int>(who.rank);
    if (who.libraryVersion != TACC_VERSION_CODE) {
      fail(taccInvalidUsage, "rank {} (process {}) runs tacc {}, rank 0 (process {}) runs tacc {}: use one version",
           who.rank, who.pid, describeVersion(who.libraryVersion), ::getpid(), describeVersion(TACC_VERSION_CODE));
    }
    if (who.ranks != members_.size()) {
      fail(taccInvalidUsage,
           "rank {} (process {}) asks for {} ranks, rank 0 (process {}) for {}: all must ask for the same", who.rank,
           who.pid, who.ranks, ::getpid(), members_.size());
    }
    if (who.rank >= who.ranks) {
      fail(taccInvalidUsage, "process {} is rank {} of {}: ranks count from 0", who.pid, who.rank, who.ranks);
    }
    const std::optional<Member>& taken = members_[who.rank];
    if (rank == 0 || taken) {
      fail(taccInvalidUsage, "rank {} is taken twice, by process {} and by process {}", rank,
           rank == 0 ? static_cast<std::uint32_t>(::getpid()) : taken->pid, who.pid);
    }
    if (!channel.flush()) return;  // gone already: it is missing then
    members_[who.rank] = Member{std::move(channel), who.pid, std::nullopt};
  } catch (const Error& error) {
    // The others are told by whoever called; this one is no member and is told here.
    channel.queue(MessageKind::failure, describeFailure(error));
    (void)channel.flush();
    throw;
  }
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
  if (!open)
    fail(taccRemoteError, "{} has ended{}", describe(rank), phase == Phase::joining ? " before all had joined" : "");
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
  fail(taccRemoteError, "{} has ended", describe(rank));
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
  listener_.reset();
  newcomers_.clear();
  for (std::optional<Member>& member : members_) member.reset();
}

std::string Hub::describe(int rank) const {
  const std::optional<Member>& member = members_[static_cast<std::size_t>(rank)];
  if (!member) return fmt::format("rank {}", rank);
  const auto pid = static_cast<pid_t>(member->pid);
  return fmt::format("rank {} (process {}, {})", rank, pid, describeProcess(pid));
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

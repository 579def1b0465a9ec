#include "comm/spoke.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "comm/failure.hpp"
#include "comm/rendezvous_address.hpp"
#include "transports/liveness.hpp"

namespace tacc {
namespace {

/// Pauses between attempts to connect, in seconds: they grow from the first to the last.
constexpr double firstNap = 0.0005;
constexpr double lastNap = 0.02;
/// How much longer than rank 0 the others wait for it: its message about a time-out is the better one.
constexpr double graceSeconds = 1.0;
constexpr double stallSeconds = 0.001;

}  // namespace

Spoke::Spoke(const UniqueIdContents& id, int ranks, int rank, double timeoutSeconds, const Interrupt& interrupt)
    : interrupt_(interrupt), rank_(rank) {
  const Introduction who{TACC_VERSION_CODE, static_cast<std::uint32_t>(ranks), static_cast<std::uint32_t>(rank),
                         static_cast<std::uint32_t>(::getpid())};
  const std::string name = rendezvousName(id);
  const Deadline deadline(timeoutSeconds);
  double pause = firstNap;
  while (!connect(name) || !proveMembership(id.secret, who, deadline)) {
    if (deadline.passed()) {
      fail(taccTimeout,
           "rank {}: rank 0 did not answer within {} s ({}). Is it running, with the same unique id, in the same "
           "network "
           "namespace, and is no rank taken twice?",
           rank, timeoutSeconds, describeProblem());
    }
    nap(pause);
    pause = std::min(lastNap, pause * 1.5);
  }
  collective([&] { (void)receive(MessageKind::complete, "init", timeoutSeconds); });
}

/// False when nobody listens yet.
bool Spoke::connect(const std::string& name) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) failErrno("rank {}: no unix socket", rank_);
  const RendezvousAddress address(name);
  int result;
  do {
    result = ::connect(socket.get(), address.get(), address.size());
  } while (result != 0 && errno == EINTR);
  if (result == 0) {
    ucred peer{};
    socklen_t bytes = sizeof peer;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0) hubPid_ = peer.pid;
    channel_ = Channel(std::move(socket));
    return true;
  }
  // Refused: rank 0 does not listen yet. Again: too many connect at once.
  if (errno != ECONNREFUSED && errno != EAGAIN && errno != ENOENT)
    failErrno("rank {}: cannot connect to rank 0", rank_);
  return false;
}

/// False when the other end does not play its part; another attempt may find another.
bool Spoke::proveMembership(const Secret& secret, const Introduction& who, const Deadline& deadline) {
  const std::optional<Message> first = receiveBefore(deadline);
  const std::optional<Challenge> challenge =
      first && first->kind == MessageKind::challenge ? valueIn<Challenge>(*first) : std::nullopt;
  if (!challenge) {
    problem_ = std::max(problem_, Problem::silent);
    return false;
  }
  const Hello hello = answerChallenge(secret, *challenge, who);
  channel_.queue(MessageKind::hello, payloadOf(hello));
  if (!channel_.flush()) return false;
  const std::optional<Message> second = receiveBefore(deadline);
  const std::optional<Welcome> welcome =
      second && second->kind == MessageKind::welcome ? valueIn<Welcome>(*second) : std::nullopt;
  if (!welcome || !isGenuine(secret, *challenge, hello, *welcome)) {
    problem_ = Problem::unproven;
    return false;
  }
  channel_.trust();
  return true;
}

/// Nothing when the deadline has passed or the other end has closed.
std::optional<Message> Spoke::receiveBefore(const Deadline& deadline) {
  for (;;) {
    const bool open = channel_.receive();
    if (std::optional<Message> message = channel_.take()) return message;
    if (!open || deadline.passed()) return std::nullopt;
    std::vector<pollfd> sockets{{channel_.fd(), POLLIN, 0}};
    waitFor(sockets, interrupt_, deadline);
  }
}

void Spoke::send(MessageKind kind, Payload payload, std::span<const int> descriptors, std::string_view operation,
                 double timeoutSeconds) {
  channel_.queue(kind, std::move(payload), descriptors);
  const Deadline deadline(timeoutSeconds);
  while (channel_.flush()) {
    if (!channel_.hasOutput()) return;
    if (deadline.passed()) {
      fail(taccTimeout, "{}: {} did not take the part of rank {} within {} s", operation, describeHub(), rank_,
           timeoutSeconds);
    }
    if (channel_.stalled()) {
      nap(stallSeconds);
    } else {
      std::vector<pollfd> sockets{{channel_.fd(), POLLOUT, 0}};
      waitFor(sockets, interrupt_, deadline);
    }
  }
  failRankZeroEnded(operation);
}

Message Spoke::receive(MessageKind kind, std::string_view operation, double timeoutSeconds) {
  const Deadline deadline(timeoutSeconds + graceSeconds);
  std::optional<Message> message = receiveBefore(deadline);
  if (!message && deadline.passed()) {
    fail(taccTimeout, "{}: {} did not answer rank {} within {} s", operation, describeHub(), rank_, timeoutSeconds);
  }
  if (!message) failRankZeroEnded(operation);
  if (message->kind == MessageKind::failure) throw failureIn(*message);
  if (message->kind != kind) {
    fail(taccInternalError, "{}: rank 0 sent message {} where {} was due: the ranks are not at the same call",
         operation, static_cast<int>(message->kind), static_cast<int>(kind));
  }
  return std::move(*message);
}

std::string_view Spoke::describeProblem() const noexcept {
  switch (problem_) {
    case Problem::nobody:
      return "nobody listens there";
    case Problem::silent:
      return "who listens there does not answer";
    default:
      return "who listens there closed the connection or does not know the secret of the id";
  }
}

std::string Spoke::describeHub() const {
  if (hubPid_ == 0) return "rank 0";  // of another pid namespace
  return fmt::format("rank 0 (process {}, {})", hubPid_, describeProcess(hubPid_));
}

void Spoke::failRankZeroEnded(std::string_view operation) {
  // It may have said why before it closed.
  (void)channel_.receive();
  while (const std::optional<Message> message = channel_.take()) {
    if (message->kind == MessageKind::failure) throw failureIn(*message);
  }
  fail(taccRemoteError, "{}: {} has closed its connection to rank {}", operation, describeHub(), rank_);
}

void Spoke::nap(double seconds) {
  std::vector<pollfd> nothing;
  waitFor(nothing, interrupt_, Deadline(seconds));
}

void Spoke::tellFailure(const Error& error) noexcept {
  try {
    if (channel_.fd() >= 0) {
      channel_.queue(MessageKind::failure, describeFailure(error));
      (void)channel_.flush();
    }
  } catch (const std::exception&) {
    // Rank 0 then sees the connection closed.
  }
  channel_ = Channel(FileDescriptor());
}

}  // namespace tacc

#include "comm/bootstrap/bootstrap_root.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "comm/bootstrap/completion.hpp"
#include "comm/control/failure.hpp"
#include "comm/hosts.hpp"
#include "transports/spare_descriptors.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

/// How long a rank 0 that cannot go on waits for those who still come, to tell them too.
constexpr double lingerSeconds = 1.5;

std::string describeVersion(std::uint32_t code) {
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

/// Fails at once where the connections to all ranks of this host cannot be had later.
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

/// A rank that was interrupted before it knew that it had been admitted comes again, to say so
/// (BootstrapMember::comeToSay).
bool isHerald(const Introduction& who, const Introduction& taken) {
  return who.stays != 0 && who.pid == taken.pid && who.processSpace == taken.processSpace && who.host == taken.host;
}

}  // namespace

BootstrapRoot::BootstrapRoot(std::vector<Listener> listeners, const UniqueIdContents& id, int ranks,
                             double timeoutSeconds, int width, const Interrupt& interrupt, std::function<void()> work,
                             bool encrypts, const std::optional<Error>& failure, bool isHeardElsewhere)
    : idleWork(std::move(work)),
      interrupt_(&interrupt),
      self_(introduceSelf(ranks, 0, encrypts)),
      members_(static_cast<std::size_t>(ranks)),
      isHeardElsewhere_(isHeardElsewhere),
      branches_(std::move(listeners), self_, id.secret, width, *this) {
  collective([&] {
    try {
      if (failure) throw Error(*failure);
      withErrors(0, "joining", [&] {
        if (id.port == 0) checkDescriptorLimit(this->ranks());
        admitAll(id, timeoutSeconds);
      });
    } catch (const Error& error) {
      const bool isKnown = isTold_ || (isHeardElsewhere_ && isOwnTrouble(error));
      if (error.result() != taccTimeout && !isKnown) linger(error);
      throw;
    }
  });
}

void BootstrapRoot::admitAll(const UniqueIdContents& id, double timeoutSeconds) {
  const Deadline deadline(timeoutSeconds);
  const auto isMissing = [this](int rank) { return !members_[static_cast<std::size_t>(rank)].has_value(); };
  for (missing_ = ranks() - 1; missing_ > 0;) {
    if (deadline.passed()) {
      fail(taccTimeout, "{} of {} did not join within {} s ({}{})", describeAll(isMissing), ranks(), timeoutSeconds,
           describeListening(id), branches_.reception().describeRefusals());
    }
    serve(deadline, Phase::joining);
  }
  // The port is free again before any rank knows that this communicator stands: the next may meet at the same one.
  branches_.reception().closeTcp();
  releasePort(id.port);
  const Payload payload = payloadOf({allUnix(), {}, {0}});
  scatter(MessageKind::complete, "init", timeoutSeconds, [&](int) { return Answer{payload, {}}; });
}

/// What the others read says of which rank it is.
Error BootstrapRoot::named(const Error& error) {
  const std::string_view text = error.what();
  if (text.starts_with("rank ") || error.result() == taccRemoteError) return error;
  return Error(error.result(), fmt::format("rank 0: {}", text));
}

void BootstrapRoot::linger(const Error& own) {
  const Error error = named(own);
  const SpareDescriptors spare;  // each of those who come needs one, for a moment
  const Interrupt* const heard = interrupt_;
  const Interrupt deaf(interrupt_->rank());  // it may be an interrupt that has to be told
  branches_.refuseWith(error);
  interrupt_ = &deaf;
  const Deadline deadline(lingerSeconds);
  try {
    while (branches_.proven() + 1 < members_.size() && !deadline.passed()) serve(deadline, Phase::lingering);
  } catch (const std::exception&) {
    // The first Error is the one to report.
  }
  interrupt_ = heard;
  branches_.refuseWith(own);
}

/// Where it throws, what has failed may be known without this rank.
void BootstrapRoot::doIdleWork() {
  try {
    idleWork();
  } catch (...) {
    isTold_ = isHeardElsewhere_;
    throw;
  }
}

std::vector<Message> BootstrapRoot::gather(MessageKind kind, std::string_view operation, double timeoutSeconds) {
  const Deadline deadline(timeoutSeconds);
  parts_ = std::vector<std::optional<Message>>(members_.size());
  awaited_ = kind;
  const auto isMissing = [this](int rank) { return !parts_[static_cast<std::size_t>(rank)].has_value(); };
  for (missing_ = ranks() - 1; missing_ > 0;) {
    if (deadline.passed()) {
      fail(taccTimeout, "{}: {} of {} did not take part within {} s", operation, describeAll(isMissing), ranks(),
           timeoutSeconds);
    }
    serve(deadline, Phase::gathering);
  }
  awaited_ = MessageKind::complete;
  std::vector<Message> parts(1);
  for (std::size_t rank = 1; rank < parts_.size(); ++rank) parts.push_back(std::move(*parts_[rank]));
  parts_.clear();
  return parts;
}

void BootstrapRoot::listen(double seconds) {
  parts_ = std::vector<std::optional<Message>>(members_.size());
  awaited_ = MessageKind::gather;
  for (const Deadline deadline(seconds); !deadline.passed();) serve(deadline, Phase::gathering);
}

void BootstrapRoot::scatter(MessageKind kind, std::string_view operation, double timeoutSeconds,
                            const std::function<Answer(int rank)>& answerTo) {
  const Deadline deadline(timeoutSeconds);
  branches_.queue(kind, [&](const Branches::Branch& branch) { return answerTo(branch.rank()); });
  while (branches_.hasOutput()) {
    if (deadline.passed()) {
      std::vector<bool> isPending(members_.size());
      for (const Branches::Branch& branch : branches_.all()) isPending[branch.who.rank] = branch.channel.hasOutput();
      fail(taccTimeout, "{}: {} of {} did not take the answer within {} s", operation,
           describeAll([&](int rank) { return isPending[static_cast<std::size_t>(rank)]; }), ranks(), timeoutSeconds);
    }
    serve(deadline, Phase::scattering);
  }
}

void BootstrapRoot::serve(const Deadline& deadline, Phase phase) {
  Deadline next = deadline;
  std::vector<pollfd> sockets;
  branches_.addDescriptors(sockets, phase, next);
  if (idleWork) {
    doIdleWork();
    next = std::min(next, Deadline(pause_.next()));
  }
  waitFor(sockets, *interrupt_, next);
  if (std::ranges::any_of(sockets, [](const pollfd& socket) { return socket.revents != 0; })) pause_.reset();
  branches_.serve(sockets, phase);
}

void BootstrapRoot::examine(const Arrival& arrival) {
  const Introduction& who = arrival.who;
  const bool elsewhere = arrival.elsewhere != 0;
  const std::string place = describePlace(who, elsewhere);
  const std::string here = describePlace(self_, elsewhere);
  if (who.libraryVersion != TACC_VERSION_CODE) {
    fail(taccInvalidUsage, "rank {} ({}) runs tacc {}, rank 0 ({}) runs tacc {}: use one version", who.rank, place,
         describeVersion(who.libraryVersion), here, describeVersion(TACC_VERSION_CODE));
  }
  if (who.encrypts != self_.encrypts) {
    const auto setting = [](const Introduction& one) { return one.encrypts != 0 ? "on" : "off"; };
    fail(taccInvalidUsage, "rank {} ({}) has TACC_ENCRYPTION {}, rank 0 ({}) has it {}: set it alike on all", who.rank,
         place, setting(who), here, setting(self_));
  }
  if (who.ranks != members_.size()) {
    fail(taccInvalidUsage, "rank {} ({}) asks for {} ranks, rank 0 ({}) for {}: all must ask for the same", who.rank,
         place, who.ranks, here, members_.size());
  }
  if (who.rank >= who.ranks)  // before its number is used
    fail(taccInvalidUsage, "{} is rank {} of {}: ranks count from 0", place, who.rank, who.ranks);
  const std::optional<Arrival>& taken = members_[who.rank];
  if (taken && isHerald(who, taken->who)) return;
  if (who.rank == 0 || taken) {
    fail(taccInvalidUsage, "rank {} is taken twice, by {} and by {}", who.rank,
         taken ? describePlace(taken->who, taken->elsewhere != 0) : here, place);
  }
}

void BootstrapRoot::arrive(const Arrival& arrival) {
  examine(arrival);
  std::optional<Arrival>& member = members_[arrival.who.rank];
  if (member) return;  // a herald: where it was is known, and routes to rank 0 never form a ring
  if (arrival.parent != 0 && !members_[arrival.parent]) {
    fail(taccInternalError, "rank {} ({}) is said to have come to rank {}, which has not come itself", arrival.who.rank,
         describePlace(arrival.who, true), arrival.parent);
  }
  --missing_;
  member = arrival;
}

void BootstrapRoot::give(int rank, Message message) {
  const bool isRank = rank > 0 && rank < ranks() && parts_.size() == members_.size();
  if (!isRank || message.kind != awaited_ || parts_[static_cast<std::size_t>(rank)]) {
    fail(taccInternalError, "{} sent message {} where {} was due: the ranks are not at the same call", describe(rank),
         static_cast<int>(message.kind), static_cast<int>(awaited_));
  }
  parts_[static_cast<std::size_t>(rank)] = std::move(message);
  --missing_;
}

bool BootstrapRoot::allUnix() const noexcept {
  return std::ranges::none_of(members_, [](const auto& member) { return member && member->elsewhere != 0; });
}

ControlTree BootstrapRoot::release() {
  ControlTree tree;
  for (Branches::Branch& branch : branches_.all())
    tree.branches.push_back({std::move(branch.channel), branch.rank(), std::move(branch.behind)});
  for (const std::optional<Arrival>& member : members_)
    tree.parents.push_back(member ? static_cast<int>(member->parent) : -1);
  branches_.reception().close();
  branches_.all().clear();
  return tree;
}

std::string BootstrapRoot::describe(int rank) const {
  const bool known = rank >= 0 && rank < ranks() && members_[static_cast<std::size_t>(rank)];
  if (!known) return fmt::format("rank {}", rank);
  const Arrival& member = *members_[static_cast<std::size_t>(rank)];
  const std::string way = member.parent != 0 ? fmt::format(", by way of rank {}", member.parent) : "";
  return fmt::format("rank {} ({}{})", rank, describeState(member.who, member.elsewhere != 0), way);
}

/// Those behind a gateway that is missing could not be heard: they are not to blame.
template <class Missing>
std::string BootstrapRoot::describeAll(const Missing& missing) const {
  constexpr int shown = 8;
  std::string text;
  int count = 0;
  for (int rank = 1; rank < ranks(); ++rank) {
    const std::optional<Arrival>& member = members_[static_cast<std::size_t>(rank)];
    if (!missing(rank) || (member && member->parent != 0 && missing(static_cast<int>(member->parent)))) continue;
    if (count++ < shown) text += (text.empty() ? "" : ", ") + describe(rank);
  }
  return count > shown ? text + fmt::format(" and {} more", count - shown) : text;
}

}  // namespace tacc

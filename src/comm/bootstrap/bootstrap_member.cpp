#include "comm/bootstrap/bootstrap_member.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "comm/bootstrap/listeners.hpp"
#include "comm/bootstrap/unique_id.hpp"
#include "comm/control/failure.hpp"
#include "comm/hosts.hpp"
#include "transports/spare_descriptors.hpp"
#include "transports/tcp/tcp.hpp"

namespace tacc {
namespace {

/// Pauses between rounds of attempts, in seconds: they grow from the first to the last, which is longer where the
/// attempts of many hosts meet at rank 0's.
constexpr double firstNap = 0.0005;
constexpr double lastNap = 0.02;
constexpr double lastNapOfTcp = 0.1;
/// How long one place may take to accept, and then to speak: it doubles from the first to the last, so that a silent
/// place does not keep this rank from the right one, and a slow one is reached all the same.
constexpr double firstPatience = 0.25;
constexpr double lastPatience = 4.0;
/// Who has spoken as rank 0 does gets at least this much time to prove it, or a quarter of the time-out. It must be
/// long: rank 0 may count this rank as joined already.
constexpr double proofSeconds = 10.0;
/// How long the gateway of this host may take to answer before this rank goes its own way: it first has to reach rank
/// 0.
constexpr double gatewaySeconds = 5.0;
/// How much longer than rank 0 the others wait for it: its message about a time-out is the better one.
constexpr double graceSeconds = 1.0;
/// How long a rank that was interrupted on its way looks for rank 0 to tell it.
constexpr double heraldSeconds = 1.0;
/// The same for one that cannot join for another reason of its own.
constexpr double courtesySeconds = 5.0;
constexpr double stallSeconds = 0.001;

/// A hint where the id cannot lead everybody to rank 0.
std::string_view describeReach(const UniqueIdContents& id) {
  const std::vector<InetAddress> addresses = addressesIn(id);
  const bool localOnly = std::ranges::all_of(addresses, [](const auto& address) { return address.isLoopback(); });
  return localOnly ? " The id names no address of a network: it is good on rank 0's host only." : "";
}

}  // namespace

BootstrapMember::BootstrapMember(const UniqueIdContents& id, int ranks, int rank, double timeoutSeconds,
                                 const TreeShape& shape, const Interrupt& interrupt, std::function<void()> work)
    : idleWork(std::move(work)),
      interrupt_(&interrupt),
      self_(introduceSelf(ranks, rank, shape.encrypts)),
      rank_(rank),
      shape_(shape) {
  try {
    withErrors(rank, "joining", [&] {
      listPlaces(id, ranks > shape.width);
      join(id, timeoutSeconds);
    });
  } catch (const Error& error) {
    // A time-out here is that rank 0 did not answer. What this rank was told, the others were told as well.
    const bool isKnown = isTold_ || (shape.isHeardElsewhere && isOwnTrouble(error));
    if (error.result() != taccTimeout && !isKnown) {
      const SpareDescriptors spare;
      comeToSay(error, id, interrupt.raised() ? heraldSeconds : std::min(timeoutSeconds, courtesySeconds));
    }
    throw;
  }
  collective([&] {
    becomeComplete(id.secret, timeoutSeconds);
    return 0;
  });
}

/// Where it throws, what has failed may be known without this rank.
void BootstrapMember::doIdleWork() {
  try {
    idleWork();
  } catch (...) {
    isTold_ = shape_.isHeardElsewhere;
    throw;
  }
}

/// A rank of this host that reached rank 0 first over the network is the gateway of the others.
void BootstrapMember::becomeComplete(const Secret& secret, double timeoutSeconds) {
  if (doors_ && overTcp_) forwarder_ = std::make_unique<Forwarder>(std::move(*doors_), self_, secret, shape_.width);
  doors_.reset();
  const Message message = receive(MessageKind::complete, "init", timeoutSeconds);
  completion_ = completionIn(message);
  checkRoute(completion_.route);
  allUnix_ = completion_.allUnix;
  const auto own = InetAddress::ofSocket(channel_.fd());
  if (forwarder_) forwarder_->complete(completion_, own ? own->v6() : InetAddress::V6{}, timeoutSeconds, *interrupt_);
}

/// What the parent says of the ranks between this one and rank 0; the numbers are used as they are from here on.
void BootstrapMember::checkRoute(const std::vector<int>& route) const {
  std::set<int> others{rank_};
  const auto isNew = [&](int rank) {
    return rank >= 0 && rank < static_cast<int>(self_.ranks) && others.insert(rank).second;
  };
  if (route.back() == 0 && std::ranges::all_of(route, isNew)) return;
  fail(taccInternalError, "init: the route from rank {} to rank 0 that {} tells leads there by no ranks of {}", rank_,
       describeParent(), self_.ranks);
}

std::optional<InetAddress> BootstrapMember::localAddress() const noexcept {
  if (overTcp_) return InetAddress::ofSocket(channel_.fd());
  if (completion_.address == InetAddress::V6{}) return std::nullopt;
  return InetAddress(completion_.address);
}

ControlTree BootstrapMember::release() {
  ControlTree tree;
  tree.route = completion_.route;
  tree.up = std::move(channel_);
  if (forwarder_) tree.branches = forwarder_->release();
  return tree;
}

/// A rank that was interrupted or failed before it met rank 0 meets it nevertheless: the others would wait for it.
void BootstrapMember::comeToSay(const Error& error, const UniqueIdContents& id, double seconds) noexcept {
  try {
    const Interrupt deaf(rank_);
    interrupt_ = &deaf;
    channel_ = Channel(FileDescriptor());
    doors_.reset();  // the others of this host go their own way
    places_.clear();
    self_.port = 0;
    self_.stays = 1;
    listPlaces(id, false);
    join(id, seconds);
    tellFailure(error);
  } catch (const std::exception&) {
    // Nobody was there to be told.
  }
}

void BootstrapMember::listPlaces(const UniqueIdContents& id, bool inTree) {
  const std::uint64_t here = hostHash();
  const auto add = [this](PlaceKind kind, std::optional<InetAddress> address) {
    places_.push_back({kind, address, "not tried yet", Progress::none});
  };
  unixName_.clear();
  if (id.port == 0 || id.host == 0 || here == 0 || id.host == here) {
    unixName_ = rendezvousName(id);
    add(PlaceKind::rankZeroHere, std::nullopt);
  }
  if (inTree && id.port != 0) {
    gatewayName_ = gatewayName(id, shape_.host);
    add(PlaceKind::gatewayHere, std::nullopt);
  }
  for (const InetAddress& address : addressesIn(id)) add(PlaceKind::network, address);
}

void BootstrapMember::join(const UniqueIdContents& id, double timeoutSeconds) {
  const Deadline deadline(timeoutSeconds);
  const double longestNap = id.port == 0 ? lastNap : lastNapOfTcp;
  const double proofPatience = std::max(proofSeconds, timeoutSeconds / 4);
  double pause = firstNap;
  for (double patience = firstPatience; !tryPlaces(id.secret, patience, proofPatience, deadline);
       patience = std::min(lastPatience, patience * 2)) {
    if (deadline.passed()) {
      fail(taccTimeout,
           "rank {}: rank 0 did not answer within {} s. Tried: {}. Is it running, with the same unique id, and is no "
           "rank taken twice?{}",
           rank_, timeoutSeconds, describePlaces(), describeReach(id));
    }
    nap(pause);
    pause = std::min(longestNap, pause * 1.5);
  }
}

/// True when one of them has proven to be rank 0.
bool BootstrapMember::tryPlaces(const Secret& secret, double patience, double proofPatience, const Deadline& deadline) {
  for (Place& place : places_) {
    progress_ = Progress::none;
    Attempt attempt = connect(place, patience, deadline);
    if (attempt.socket.valid()) {
      progress_ = Progress::connected;
      channel_ = Channel(std::move(attempt.socket));
      const bool toGateway = place.kind == PlaceKind::gatewayHere;
      attempt.problem = proveMembership(secret, toGateway ? gatewaySeconds : patience, proofPatience, deadline);
      if (attempt.problem.empty()) return true;
    }
    if (attempt.isStranger && places_.size() == 1) {
      // Rank 0 can listen nowhere else, and cannot listen there.
      isTold_ = true;
      fail(taccSystemError, "rank {}: cannot meet rank 0 at the unix socket of host {}: {}", rank_, hostName(),
           attempt.problem);
    }
    if (progress_ >= place.progress) place.outcome = std::move(attempt.problem);
    place.progress = std::max(place.progress, progress_);
    // Where rank 0 is here and only busy, another place would be a detour.
    if (attempt.isBusy || deadline.passed()) return false;
  }
  return false;
}

Attempt BootstrapMember::connect(Place& place, double patience, const Deadline& deadline) {
  overTcp_ = place.kind == PlaceKind::network;
  switch (place.kind) {
    case PlaceKind::rankZeroHere:
      return connectUnix(unixName_);
    case PlaceKind::gatewayHere:
      return connectToGateway();
    case PlaceKind::network:
      break;
  }
  return connectToNetwork(place, patience, deadline);
}

/// The first rank that comes here becomes the gateway of its host. The kernel decides who that is, and takes the name
/// back when that rank ends.
Attempt BootstrapMember::connectToGateway() {
  if (!doors_) {
    doors_ = listenAsGateway(gatewayName_);
    if (doors_) self_.port = portOf(doors_->back().socket.get());
  }
  if (doors_) return {FileDescriptor(), "this rank is the first of its host", false};
  Attempt attempt = connectUnix(gatewayName_);
  // The name is taken: who took it is about to listen, unless it stands still.
  if (!gatewayOpens_) gatewayOpens_.emplace(gatewaySeconds);
  attempt.isBusy = !attempt.socket.valid() && !attempt.isStranger && !gatewayOpens_->passed();
  return attempt;
}

Attempt BootstrapMember::connectToNetwork(const Place& place, double patience, const Deadline& deadline) {
  Attempt attempt = connectTcp(*place.address, patience, deadline, *interrupt_);
  if (attempt.socket.valid() && !unixName_.empty()) {
    // Rank 0 may have come to this host since its name was tried, and then it listens at the name too, as it did so
    // first. All ranks of its host must use the name: descriptors pass there only.
    Attempt again = connectUnix(unixName_);
    if (again.socket.valid() || again.isBusy) {
      overTcp_ = false;
      return again;
    }
  }
  return attempt;
}

/// "", or why the other end is not where this rank belongs; another attempt may find another.
std::string BootstrapMember::proveMembership(const Secret& secret, double patience, double proofPatience,
                                             const Deadline& deadline) {
  const std::optional<Message> first = receiveBefore(std::min(deadline, Deadline(patience)));
  const std::optional<Challenge> challenge =
      first && first->kind == MessageKind::challenge ? valueIn<Challenge>(*first) : std::nullopt;
  if (!challenge) return describeSilence(first.has_value());
  progress_ = Progress::challenged;
  const Hello hello = answerChallenge(secret, *challenge, self_);
  channel_.queue(MessageKind::hello, payloadOf(hello));
  const std::optional<Message> second =
      channel_.flush() ? receiveBefore(std::min(deadline, Deadline(proofPatience))) : std::nullopt;
  const std::optional<Welcome> welcome =
      second && second->kind == MessageKind::welcome ? valueIn<Welcome>(*second) : std::nullopt;
  if (!welcome || !isGenuine(secret, *challenge, hello, *welcome)) {
    return "who listens there closed the connection or does not know the secret of the id";
  }
  parent_ = welcome->who;
  trustHost(channel_, secret, *challenge, hello, *welcome);
  return awaitPlace(secret, proofPatience, deadline);
}

/// The other end has proven itself: it takes this rank, or sends it on.
std::string BootstrapMember::awaitPlace(const Secret& secret, double proofPatience, const Deadline& deadline) {
  const std::optional<Message> message = receiveBefore(std::min(deadline, Deadline(proofPatience)));
  if (!message) return fmt::format("{} closed the connection", describeParent());
  if (message->kind == MessageKind::failure) {
    isTold_ = true;
    throw remoteFailureIn(*message);
  }
  if (message->kind == MessageKind::admitted) return "";
  const auto redirect = message->kind == MessageKind::redirect ? valueIn<Redirect>(*message) : std::nullopt;
  if (!redirect) return fmt::format("{} speaks another protocol", describeParent());
  return followRedirect(*redirect, secret, proofPatience, deadline);
}

/// Where the gateway that it is sent to cannot be reached from here, rank 0 has to take this rank.
std::string BootstrapMember::followRedirect(const Redirect& redirect, const Secret& secret, double proofPatience,
                                            const Deadline& deadline) {
  const InetAddress address(redirect.address, static_cast<std::uint16_t>(redirect.port));
  Attempt attempt = connectTcp(address, lastPatience, deadline, *interrupt_);
  if (attempt.socket.valid()) {
    channel_ = Channel(std::move(attempt.socket));
    attempt.problem = proveMembership(secret, gatewaySeconds, proofPatience, deadline);
    if (attempt.problem.empty()) return "";
  }
  self_.stays = 1;
  return fmt::format("rank 0 sends this rank on to {}: {}", address.text(), attempt.problem);
}

/// What is wrong with an end that gave no challenge.
std::string BootstrapMember::describeSilence(bool isHeard) {
  if (isHeard) return "who listens there speaks another protocol";
  if (channel_.receive()) return "who listens there does not answer";
  return fmt::format("who listens there does not play rank 0's part: {}", channel_.whyClosed());
}

/// Nothing when the deadline has passed or the other end has closed.
std::optional<Message> BootstrapMember::receiveBefore(const Deadline& deadline) {
  for (IdlePause pause;;) {
    const bool open = channel_.flush() && channel_.receive();
    if (std::optional<Message> message = channel_.take()) return message;
    if (!open || deadline.passed()) return std::nullopt;
    std::vector<pollfd> sockets{
        {channel_.fd(), static_cast<short>(channel_.hasOutput() ? POLLIN | POLLOUT : POLLIN), 0}};
    Deadline next = deadline;
    if (forwarder_) forwarder_->addDescriptors(sockets, next);
    if (idleWork) {
      doIdleWork();
      next = std::min(next, Deadline(pause.next()));
    }
    waitFor(sockets, *interrupt_, next);
    if (forwarder_) forwarder_->serve(std::span(sockets).subspan(1), channel_);
  }
}

void BootstrapMember::send(MessageKind kind, Payload payload, std::span<const int> descriptors,
                           std::string_view operation, double timeoutSeconds) {
  channel_.queue(kind, std::move(payload), descriptors);
  const Deadline deadline(timeoutSeconds);
  while (channel_.flush()) {
    if (!channel_.hasOutput()) return;
    if (deadline.passed()) {
      fail(taccTimeout, "{}: {} did not take the part of rank {} within {} s", operation, describeParent(), rank_,
           timeoutSeconds);
    }
    if (channel_.stalled()) {
      nap(stallSeconds);
    } else {
      std::vector<pollfd> sockets{{channel_.fd(), POLLOUT, 0}};
      waitFor(sockets, *interrupt_, deadline);
    }
  }
  failParentEnded(operation);
}

Message BootstrapMember::receive(MessageKind kind, std::string_view operation, double timeoutSeconds) {
  const Deadline deadline(timeoutSeconds + graceSeconds);
  std::optional<Message> message = receiveBefore(deadline);
  if (!message && deadline.passed()) {
    fail(taccTimeout, "{}: {} did not answer rank {} within {} s", operation, describeParent(), rank_, timeoutSeconds);
  }
  if (!message) failParentEnded(operation);
  if (message->kind == MessageKind::failure) throw remoteFailureIn(*message);
  if (message->kind != kind) {
    fail(taccInternalError, "{}: {} sent message {} where {} was due: the ranks are not at the same call", operation,
         describeParent(), static_cast<int>(message->kind), static_cast<int>(kind));
  }
  if (forwarder_ && kind != MessageKind::complete)
    forwarder_->scatter(kind, makePayload(message->payload), operation, timeoutSeconds, *interrupt_);
  return std::move(*message);
}

void BootstrapMember::listen(double seconds) {
  const Deadline deadline(seconds);
  const std::optional<Message> message = receiveBefore(deadline);
  if (message && message->kind == MessageKind::failure) throw remoteFailureIn(*message);
  if (!message && !deadline.passed()) failParentEnded("init");
}

std::string BootstrapMember::describePlaces() const {
  std::string text;
  for (const Place& place : places_) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ",
                        place.address                          ? place.address->text()
                        : place.kind == PlaceKind::gatewayHere ? "the gateway of this host"
                                                               : "the unix socket of this host",
                        place.outcome);
  }
  return text;
}

std::string BootstrapMember::describeParent() const {
  return parent_ ? fmt::format("rank {} ({})", parent_->rank, describeState(*parent_, overTcp_)) : "rank 0";
}

void BootstrapMember::failParentEnded(std::string_view operation) {
  // It may have said why before it closed.
  (void)channel_.receive();
  while (const std::optional<Message> message = channel_.take()) {
    if (message->kind == MessageKind::failure) throw remoteFailureIn(*message);
  }
  if (channel_.isLost()) {
    fail(taccRemoteError, "{}: {} cannot be reached any more by rank {} ({})", operation, describeParent(), rank_,
         channel_.whyClosed());
  }
  fail(taccRemoteError, "{}: {} has closed its connection to rank {}", operation, describeParent(), rank_);
}

bool BootstrapMember::hasLostSomeone() const {
  return hasEnded(channel_.fd()) || (forwarder_ && forwarder_->hasLostSomeone());
}

void BootstrapMember::nap(double seconds) {
  if (idleWork) doIdleWork();
  std::vector<pollfd> nothing;
  waitFor(nothing, *interrupt_, Deadline(seconds));
}

void BootstrapMember::tellFailure(const Error& error) noexcept {
  try {
    if (channel_.fd() >= 0) {
      const bool isForeign = forwarder_ && forwarder_->isForeign();
      channel_.dropUnsent();
      channel_.queue(isForeign ? MessageKind::report : MessageKind::failure, describeFailure(error));
      (void)channel_.flush();
      channel_.finish();
    }
  } catch (const std::exception&) {
    // The parent then sees the connection closed.
  }
  if (forwarder_) forwarder_->tellFailure(error);
  forwarder_.reset();
  channel_ = Channel(FileDescriptor());
}

}  // namespace tacc

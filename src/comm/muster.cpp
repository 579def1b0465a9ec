#include "comm/muster.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "comm/channel.hpp"
#include "comm/connect.hpp"
#include "comm/failure.hpp"
#include "comm/rendezvous_address.hpp"
#include "comm/unique_id.hpp"
#include "transports/tcp.hpp"

namespace tacc {
namespace {

constexpr double connectSeconds = 1.0;  // a host that does not answer by then has gone
constexpr double lookSeconds = 0.05;    // between looks at who still listens, and then
/// ... this part of the time that has passed: a look leaves a connection behind at whoever is slow, and the kernel
/// keeps only so many for it.
constexpr double lookShare = 0.1;
constexpr double busySeconds = 0.01;  // before another attempt where too many connect at once
constexpr double sendSeconds = 5.0;   // for the outcome to leave the leader
/// Ranks that are tried at the same time. At first one, for mostly it lives; then more, because each rank of a host
/// that has gone takes the whole time that a connection may take.
constexpr std::size_t widening = 8;
constexpr std::size_t mostAtOnce = 64;

std::string randomName() {
  const Nonce nonce = makeNonce();
  std::string name = "tacc-m-";
  for (std::size_t i = 0; i < 16; ++i) name += fmt::format("{:02x}", nonce[i]);
  return name;
}

FileDescriptor listenUnix(const std::string& name) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const RendezvousAddress address(name);
  if (!socket.valid() || ::bind(socket.get(), address.get(), address.size()) != 0)
    failErrno("cannot make the socket at which survivors meet");
  return socket;
}

/// A bit for each old rank: most survive.
Payload payloadOfOutcome(const Muster::Outcome& outcome, std::size_t ranks) {
  std::vector<std::byte> bytes(sizeof outcome.id + (ranks + 7) / 8);
  std::memcpy(bytes.data(), &outcome.id, sizeof outcome.id);
  for (const int rank : outcome.survivors)
    bytes[sizeof outcome.id + static_cast<std::size_t>(rank) / 8] |= std::byte{1} << (rank % 8);
  return makePayload(std::move(bytes));
}

std::optional<Muster::Outcome> outcomeIn(const Message& message, std::size_t ranks) {
  Muster::Outcome outcome;
  if (message.payload.size() != sizeof outcome.id + (ranks + 7) / 8) return std::nullopt;
  std::memcpy(&outcome.id, message.payload.data(), sizeof outcome.id);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    if ((message.payload[sizeof outcome.id + rank / 8] >> (rank % 8) & std::byte{1}) != std::byte{0})
      outcome.survivors.push_back(static_cast<int>(rank));
  return outcome;
}

/// The next message, or nothing when the other end has closed or the deadline has passed.
std::optional<Message> receiveBefore(Channel& channel, const Deadline& deadline, const Interrupt& interrupt) {
  for (;;) {
    const bool open = channel.flush() && channel.receive();
    if (std::optional<Message> message = channel.take()) return message;
    if (!open || deadline.passed()) return std::nullopt;
    std::vector<pollfd> sockets{{channel.fd(), POLLIN, 0}};
    waitFor(sockets, interrupt, deadline);
  }
}

}  // namespace

/// Somebody who came to the leader.
struct Muster::Candidate {
  Channel channel;
  Challenge challenge;
  int rank = -1;  // once it has proven that it is of the job
};

Muster::Muster(int rank, const InetAddress* address) : rank_(rank), interrupt_(rank) {
  if (address == nullptr) {
    const std::string name = randomName();
    std::ranges::copy(name, place_.name.begin());
    listener_ = listenUnix(name);
  } else {
    listener_ = bindTcp(0);
    if (!listener_.valid()) failErrno("rank {}: cannot bind the port at which survivors meet", rank);
    place_.address = address->v6();
    place_.port = portOf(listener_.get());
  }
  if (::listen(listener_.get(), SOMAXCONN) != 0) failErrno("rank {}: cannot listen for survivors", rank);
}

void Muster::setPlaces(std::vector<MusterPlace> places, const Secret& secret) {
  places_ = std::move(places);
  secret_ = secret;
}

Muster::Outcome Muster::gather(const std::vector<bool>& excluded, double seconds) {
  const Deadline deadline(seconds);
  std::vector<int> below;
  for (int rank = 0; rank < rank_; ++rank)
    if (!excluded[static_cast<std::size_t>(rank)]) below.push_back(rank);
  Outcome outcome;
  std::size_t atOnce = 1;
  for (std::size_t first = 0; first < below.size();) {
    const std::span tried = std::span(below).subspan(first, std::min(atOnce, below.size() - first));
    Reached reached = reach(tried, deadline);
    if (!reached.socket.valid()) {
      first += tried.size();
      atOnce = std::min(atOnce * widening, mostAtOnce);
      continue;
    }
    if (follow(std::move(reached.socket), deadline, outcome)) return outcome;
    first += reached.index + 1;
    atOnce = 1;
  }
  return lead(excluded, deadline);
}

Muster::Reached Muster::reach(std::span<const int> ranks, const Deadline& deadline) const {
  const auto placeOf = [&](std::size_t index) -> const MusterPlace& {
    return places_[static_cast<std::size_t>(ranks[index])];
  };
  if (placeOf(0).port == 0) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      Attempt attempt = connectUnix(placeOf(i).name.data());
      for (; attempt.isBusy && !deadline.passed(); attempt = connectUnix(placeOf(i).name.data())) {
        std::vector<pollfd> none;
        waitFor(none, interrupt_, Deadline(busySeconds));
      }
      if (attempt.socket.valid()) return {i, std::move(attempt.socket)};
    }
    return {};
  }
  std::vector<InetAddress> addresses;
  for (std::size_t i = 0; i < ranks.size(); ++i) addresses.emplace_back(placeOf(i).address, placeOf(i).port);
  std::vector<Attempt> attempts = connectTcp(addresses, connectSeconds, Deadline(connectSeconds), interrupt_);
  const auto found = std::ranges::find_if(attempts, [](const Attempt& attempt) { return attempt.socket.valid(); });
  if (found == attempts.end()) return {};
  return {static_cast<std::size_t>(found - attempts.begin()), std::move(found->socket)};
}

std::vector<bool> Muster::listenStill(std::span<const int> ranks, const Deadline& deadline) const {
  std::vector<bool> result;
  std::vector<InetAddress> addresses;
  for (const int rank : ranks) {
    const MusterPlace& place = places_[static_cast<std::size_t>(rank)];
    if (place.port != 0) {
      addresses.emplace_back(place.address, place.port);
      continue;
    }
    const Attempt attempt = connectUnix(place.name.data());
    result.push_back(attempt.socket.valid() || attempt.isBusy);
  }
  for (const Attempt& attempt : connectTcp(addresses, connectSeconds, deadline, interrupt_))
    result.push_back(attempt.socket.valid());
  return result;
}

bool Muster::follow(FileDescriptor leader, const Deadline& deadline, Outcome& outcome) const {
  Channel channel(std::move(leader));
  const auto first = receiveBefore(channel, deadline, interrupt_);
  const auto challenge = first ? valueIn<Challenge>(*first) : std::nullopt;
  if (!challenge) return false;
  const Introduction self = introduceSelf(static_cast<int>(places_.size()), rank_);
  const Hello hello = answerChallenge(secret_, *challenge, self);
  channel.queue(MessageKind::hello, payloadOf(hello));
  const auto second = receiveBefore(channel, deadline, interrupt_);
  const auto welcome = second ? valueIn<Welcome>(*second) : std::nullopt;
  if (!welcome || !isGenuine(secret_, *challenge, hello, *welcome)) return false;
  channel.trust();
  const auto last = receiveBefore(channel, deadline, interrupt_);
  auto result = last && last->kind == MessageKind::complete ? outcomeIn(*last, places_.size()) : std::nullopt;
  if (!result) return false;
  outcome = std::move(*result);
  return true;
}

Muster::Outcome Muster::lead(const std::vector<bool>& excluded, const Deadline& deadline) {
  using Clock = std::chrono::steady_clock;
  std::list<Candidate> candidates;
  std::vector<bool> settled = excluded;  // has come, is dead, or is not wanted
  for (std::size_t rank = 0; rank <= static_cast<std::size_t>(rank_); ++rank) settled[rank] = true;
  const auto start = Clock::now();
  double pause = lookSeconds;
  while (!std::ranges::all_of(settled, [](bool yes) { return yes; }) && !deadline.passed()) {
    std::vector<pollfd> sockets{{listener_.get(), POLLIN, 0}};
    for (const Candidate& one : candidates) sockets.push_back({one.channel.fd(), POLLIN, 0});
    waitFor(sockets, interrupt_, std::min(deadline, Deadline(pause)));
    bool isQuiet = sockets[0].revents == 0;
    std::size_t at = 1;
    for (auto one = candidates.begin(); one != candidates.end(); ++at) {
      const bool isReady = sockets[at].revents != 0;
      isQuiet = isQuiet && !isReady;
      one = isReady && !hear(*one, settled) ? candidates.erase(one) : std::next(one);
    }
    accept(candidates);
    if (!isQuiet) continue;
    settleDead(settled, deadline);
    pause = std::max(lookSeconds, lookShare * std::chrono::duration<double>(Clock::now() - start).count());
  }
  return conclude(candidates, excluded);
}

void Muster::accept(std::list<Candidate>& candidates) const {
  for (;;) {
    FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    Candidate& one = candidates.emplace_back(Candidate{Channel(std::move(socket)), {makeNonce()}});
    one.channel.queue(MessageKind::challenge, payloadOf(one.challenge));
    (void)one.channel.flush();
  }
}

bool Muster::hear(Candidate& candidate, std::vector<bool>& settled) const {
  const bool isOpen = candidate.channel.flush() && candidate.channel.receive();
  const auto message = candidate.channel.take();
  if (!message || candidate.rank >= 0) return isOpen;
  const auto hello = valueIn<Hello>(*message);
  if (!hello || !isGenuine(secret_, candidate.challenge, *hello) || hello->who.rank >= places_.size()) return isOpen;
  candidate.rank = static_cast<int>(hello->who.rank);
  candidate.channel.trust();
  const Introduction self = introduceSelf(static_cast<int>(places_.size()), rank_);
  candidate.channel.queue(MessageKind::welcome, payloadOf(answerHello(secret_, candidate.challenge, *hello, self)));
  (void)candidate.channel.flush();
  settled[hello->who.rank] = true;
  return isOpen;
}

void Muster::settleDead(std::vector<bool>& settled, const Deadline& deadline) const {
  std::vector<int> silent;
  for (std::size_t rank = 0; rank < settled.size(); ++rank)
    if (!settled[rank]) silent.push_back(static_cast<int>(rank));
  for (std::size_t first = 0; first < silent.size(); first += mostAtOnce) {
    const std::span asked = std::span(silent).subspan(first, std::min(mostAtOnce, silent.size() - first));
    const std::vector<bool> live = listenStill(asked, deadline);
    for (std::size_t i = 0; i < asked.size(); ++i)
      if (!live[i]) settled[static_cast<std::size_t>(asked[i])] = true;
  }
}

Muster::Outcome Muster::conclude(std::list<Candidate>& candidates, const std::vector<bool>& excluded) const {
  Outcome outcome{makeUniqueId(), {rank_}};
  for (const Candidate& one : candidates)
    if (one.rank > rank_ && !excluded[static_cast<std::size_t>(one.rank)]) outcome.survivors.push_back(one.rank);
  std::ranges::sort(outcome.survivors);
  const Payload payload = payloadOfOutcome(outcome, places_.size());
  for (Candidate& one : candidates)
    if (one.rank >= 0) one.channel.queue(MessageKind::complete, payload);
  const Deadline sent(sendSeconds);
  for (Candidate& one : candidates)
    while (one.rank >= 0 && one.channel.flush() && one.channel.hasOutput() && !sent.passed()) {
      std::vector<pollfd> socket{{one.channel.fd(), POLLOUT, 0}};
      waitFor(socket, interrupt_, sent);
    }
  return outcome;
}

}  // namespace tacc

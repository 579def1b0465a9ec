#include "comm/muster.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
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
constexpr double lookSeconds = 0.05;    // between looks at who still listens
constexpr double sendSeconds = 5.0;     // for the outcome to leave the leader

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

Payload payloadOfOutcome(const Muster::Outcome& outcome) {
  std::vector<std::byte> bytes(sizeof outcome.id + outcome.survivors.size() * sizeof(int));
  std::memcpy(bytes.data(), &outcome.id, sizeof outcome.id);
  std::memcpy(bytes.data() + sizeof outcome.id, outcome.survivors.data(), bytes.size() - sizeof outcome.id);
  return makePayload(std::move(bytes));
}

std::optional<Muster::Outcome> outcomeIn(const Message& message) {
  Muster::Outcome outcome;
  if (message.payload.size() < sizeof outcome.id) return std::nullopt;
  const std::size_t rest = message.payload.size() - sizeof outcome.id;
  outcome.survivors.resize(rest / sizeof(int));
  std::memcpy(&outcome.id, message.payload.data(), sizeof outcome.id);
  std::memcpy(outcome.survivors.data(), message.payload.data() + sizeof outcome.id, rest);
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
  Outcome outcome;
  for (int rank = 0; rank < rank_; ++rank)
    if (!excluded[static_cast<std::size_t>(rank)] && follow(rank, deadline, outcome)) return outcome;
  return lead(excluded, deadline);
}

bool Muster::listensStill(int rank, const Deadline& deadline) const {
  const MusterPlace& place = places_[static_cast<std::size_t>(rank)];
  if (place.port == 0) {
    const Attempt attempt = connectUnix(place.name.data());
    return attempt.socket.valid() || attempt.isBusy;
  }
  return connectTcp(InetAddress(place.address, place.port), connectSeconds, deadline, interrupt_).socket.valid();
}

bool Muster::follow(int leader, const Deadline& deadline, Outcome& outcome) {
  const MusterPlace& place = places_[static_cast<std::size_t>(leader)];
  Attempt attempt = place.port == 0 ? connectUnix(place.name.data())
                                    : connectTcp(InetAddress(place.address, place.port), connectSeconds,
                                                 Deadline(connectSeconds), interrupt_);
  if (!attempt.socket.valid()) return false;
  Channel channel(std::move(attempt.socket));
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
  auto result = last && last->kind == MessageKind::complete ? outcomeIn(*last) : std::nullopt;
  if (!result) return false;
  outcome = std::move(*result);
  return true;
}

Muster::Outcome Muster::lead(const std::vector<bool>& excluded, const Deadline& deadline) {
  const auto ranks = places_.size();
  std::list<Candidate> candidates;
  std::vector<bool> settled = excluded;  // has come, is dead, or is not wanted
  for (std::size_t rank = 0; rank <= static_cast<std::size_t>(rank_); ++rank) settled[rank] = true;
  while (!std::ranges::all_of(settled, [](bool yes) { return yes; }) && !deadline.passed()) {
    std::vector<pollfd> sockets{{listener_.get(), POLLIN, 0}};
    for (const Candidate& one : candidates) sockets.push_back({one.channel.fd(), POLLIN, 0});
    waitFor(sockets, interrupt_, std::min(deadline, Deadline(lookSeconds)));
    const bool quiet = std::ranges::all_of(sockets, [](const pollfd& socket) { return socket.revents == 0; });

    for (;;) {
      FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.valid()) break;
      candidates.push_back({Channel(std::move(socket)), {makeNonce()}});
      candidates.back().channel.queue(MessageKind::challenge, payloadOf(candidates.back().challenge));
    }
    for (auto one = candidates.begin(); one != candidates.end();) {
      const bool open = one->channel.flush() && one->channel.receive();
      const auto message = one->channel.take();
      if (message && one->rank < 0) {
        const auto hello = valueIn<Hello>(*message);
        if (hello && isGenuine(secret_, one->challenge, *hello) && hello->who.rank < ranks) {
          one->rank = static_cast<int>(hello->who.rank);
          one->channel.trust();
          one->channel.queue(
              MessageKind::welcome,
              payloadOf(answerHello(secret_, one->challenge, *hello, introduceSelf(static_cast<int>(ranks), rank_))));
          (void)one->channel.flush();
          settled[hello->who.rank] = true;
        }
      }
      one = open ? std::next(one) : candidates.erase(one);
    }
    if (!quiet) continue;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      if (!settled[rank] && !listensStill(static_cast<int>(rank), deadline)) settled[rank] = true;
  }

  Outcome outcome{makeUniqueId(), {rank_}};
  for (const Candidate& one : candidates)
    if (one.rank > rank_ && !excluded[static_cast<std::size_t>(one.rank)]) outcome.survivors.push_back(one.rank);
  std::ranges::sort(outcome.survivors);
  const Payload payload = payloadOfOutcome(outcome);
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

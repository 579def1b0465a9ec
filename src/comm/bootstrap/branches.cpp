#include "comm/bootstrap/branches.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "comm/control/failure.hpp"
#include "core/exceptions.hpp"

namespace tacc {
namespace {

/// How long a failing rank tries to tell those who are connected to it.
constexpr double branchFarewellSeconds = 0.5;
/// Between attempts while the kernel has too many descriptors in flight.
constexpr double branchStallSeconds = 0.001;

/// Before each part in a message of several.
struct PartHeader {
  std::uint32_t rank;
  MessageKind kind;
  std::uint64_t bytes;
};

bool isFailure(MessageKind kind) {
  return kind == MessageKind::failure || kind == MessageKind::report || kind == MessageKind::announced;
}

}  // namespace

void appendPart(std::vector<std::byte>& parts, int rank, const Message& part) {
  const PartHeader header{static_cast<std::uint32_t>(rank), part.kind, part.payload.size()};
  const auto bytes = std::as_bytes(std::span(&header, 1));
  parts.insert(parts.end(), bytes.begin(), bytes.end());
  parts.insert(parts.end(), part.payload.begin(), part.payload.end());
}

void Branches::addDescriptors(std::vector<pollfd>& sockets, Phase phase, Deadline& next) const {
  for (const Branch& branch : branches_) {
    pollfd socket{-1, 0, 0};  // poll() skips it
    const bool sends = branch.channel.hasOutput();
    if (phase == Phase::lingering) {
      // What they send is of no interest any more.
    } else if (branch.channel.stalled()) {
      next = std::min(next, Deadline(branchStallSeconds));
    } else if (phase != Phase::scattering || sends) {
      socket = {branch.channel.fd(), static_cast<short>(sends ? POLLOUT : 0), 0};
      if (phase != Phase::scattering) socket.events = static_cast<short>(socket.events | POLLIN);
    }
    sockets.push_back(socket);
  }
  reception_.addDescriptors(sockets, next);
}

void Branches::serve(std::span<const pollfd> sockets, Phase phase) {
  const std::size_t count = branches_.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (sockets[i].revents != 0)
      serveBranch(i, sockets[i].revents, phase);
    else if (phase != Phase::lingering && branches_[i].channel.stalled())
      serveBranch(i, POLLOUT, phase);
  }
  reception_.serve(sockets.subspan(count), [this](Guest& guest) { admit(guest); });
}

void Branches::admit(Guest& guest) {
  Channel& channel = guest.channel;
  const auto tell = [&](MessageKind kind, const Payload& payload) {
    channel.queue(kind, payload);
    (void)channel.flush();
    channel.finish();
  };
  if (failed_ != nullptr) {
    // One that has been told and comes again is trying again, and is not to be told of the attempt before once more: it
    // finds the door closed until this rank tries again as well.
    if (told_.insert(guest.who.rank).second) tell(MessageKind::failure, describeFailure(*failed_));
    proven_.insert(guest.who.rank);
    return;
  }
  const Arrival arrival{guest.who, self_.rank, guest.overTcp ? 1U : 0U};
  try {
    withErrors(static_cast<int>(self_.rank), "joining", [&] {
      owner_.examine(arrival);
      if (const auto gateway = redirectFor(guest)) return tell(MessageKind::redirect, payloadOf(*gateway));
      branches_.push_back({Channel(FileDescriptor()), guest.overTcp, guest.who, {}});
      proven_.insert(guest.who.rank);
      channel.queue(MessageKind::admitted, nullptr);
      if (!channel.flush()) return branches_.pop_back();  // gone already: it is missing then
      owner_.arrive(arrival);
      overTcp_ += guest.overTcp ? 1 : 0;
      branches_.back().channel = std::move(channel);
    });
  } catch (const Error& error) {
    // The others are told by the caller; this one is no branch and is told here.
    if (!branches_.empty() && branches_.back().channel.fd() < 0) branches_.pop_back();
    proven_.insert(guest.who.rank);
    tell(MessageKind::failure, describeFailure(error));
    throw;
  }
}

/// Whom to send it on to, in turn; nothing: it can stay.
std::optional<Redirect> Branches::redirectFor(const Guest& guest) {
  if (!guest.overTcp || guest.who.stays != 0 || overTcp_ < width_) return std::nullopt;
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    lastGateway_ = (lastGateway_ + 1) % branches_.size();
    const Branch& branch = branches_[lastGateway_];
    if (!branch.overTcp || branch.who.port == 0) continue;
    // One that has just gone has no address any more.
    if (const auto peer = InetAddress::ofPeer(branch.channel.fd())) return Redirect{peer->v6(), branch.who.port};
  }
  return std::nullopt;
}

void Branches::serveBranch(std::size_t index, short events, Phase phase) {
  Channel& channel = branches_[index].channel;
  if ((events & POLLOUT) != 0 && !channel.flush()) failLost(branches_[index], "");
  if (phase == Phase::scattering) {
    if ((events & (POLLHUP | POLLERR)) != 0) failLost(branches_[index], "");
    return;
  }
  if ((events & ~POLLOUT) == 0) return;
  const bool open = channel.receive();
  while (std::optional<Message> message = channel.take()) handle(index, std::move(*message));
  if (!open) failLost(branches_[index], phase == Phase::joining ? " before all had joined" : "");
}

void Branches::handle(std::size_t index, Message message) {
  Branch& branch = branches_[index];
  switch (message.kind) {
    case MessageKind::failure:
    case MessageKind::report:
    case MessageKind::announced:
      failTold(branch, message);
    case MessageKind::arrivals: {
      std::vector<Arrival> arrivals(message.payload.size() / sizeof(Arrival));
      if (arrivals.empty() || message.payload.size() % sizeof(Arrival) != 0)
        fail(taccInternalError, "{} sent {} bytes where arrivals were due", describe(branch), message.payload.size());
      std::memcpy(arrivals.data(), message.payload.data(), arrivals.size() * sizeof(Arrival));
      for (const Arrival& arrival : arrivals) {
        if (arrival.who.rank >= self_.ranks || arrival.parent >= self_.ranks || arrival.who.rank == arrival.parent) {
          fail(taccInternalError, "{} tells of the arrival of rank {} at rank {}; of {} ranks there is none such",
               describe(branch), arrival.who.rank, arrival.parent, self_.ranks);
        }
        proven_.insert(arrival.who.rank);
        branch.behind.push_back(static_cast<int>(arrival.who.rank));
        owner_.arrive(arrival);
      }
      return;
    }
    case MessageKind::parts:
      return giveAll(message);
    default:
      return owner_.give(branch.rank(), std::move(message));
  }
}

void Branches::giveAll(const Message& parts) {
  PartHeader header;
  for (std::span<const std::byte> rest = parts.payload; rest.size() >= sizeof header;) {
    std::memcpy(&header, rest.data(), sizeof header);
    rest = rest.subspan(sizeof header);
    if (rest.size() < header.bytes) fail(taccInternalError, "half a part came from rank {}", header.rank);
    Message part;
    part.kind = header.kind;
    part.payload.assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(header.bytes));
    rest = rest.subspan(header.bytes);
    owner_.give(static_cast<int>(header.rank), std::move(part));
  }
}

void Branches::queue(MessageKind kind, const std::function<Answer(const Branch& branch)>& answerTo) {
  for (Branch& branch : branches_) {
    const Answer answer = answerTo(branch);
    branch.channel.queue(kind, answer.payload, answer.descriptors);
  }
  for (std::size_t i = 0; i < branches_.size(); ++i) serveBranch(i, POLLOUT, Phase::scattering);
}

bool Branches::hasLostSomeone() const {
  return std::ranges::any_of(branches_, [](const Branch& branch) { return hasEnded(branch.channel.fd()); });
}

bool Branches::hasOutput() const noexcept {
  return std::ranges::any_of(branches_, [](const Branch& branch) { return branch.channel.hasOutput(); });
}

void Branches::failTold(const Branch& branch, const Message& message) {
  isForeign_ = true;
  if (message.kind == MessageKind::announced) {  // it has left init already
    Message inner;
    inner.payload.assign(message.payload.begin() + std::min<std::ptrdiff_t>(sizeof(int), std::ssize(message.payload)),
                         message.payload.end());
    fail(taccRemoteError, "{} reported: {}", describe(branch), failureIn(inner).what());
  }
  if (message.kind == MessageKind::report) fail(taccRemoteError, "{}", failureIn(message).what());
  fail(taccRemoteError, "{} failed: {}", describe(branch), failureIn(message).what());
}

/// Throws the failure that a branch has told, if one has: it is the cause of what else is seen.
void Branches::lookForFailure() {
  for (Branch& branch : branches_) {
    (void)branch.channel.receive();
    while (const std::optional<Message> message = branch.channel.take())
      if (isFailure(message->kind)) failTold(branch, *message);
  }
}

void Branches::failLost(const Branch& branch, std::string_view when) {
  lookForFailure();
  isForeign_ = true;
  if (branch.channel.isLost())
    fail(taccRemoteError, "{} cannot be reached any more{} ({})", describe(branch), when, branch.channel.whyClosed());
  fail(taccRemoteError, "{} has ended{}", describe(branch), when);
}

void Branches::tellFailure(const Error& error) noexcept {
  try {
    const Payload payload = describeFailure(error);
    for (Branch& branch : branches_) {
      branch.channel.dropUnsent();  // their descriptors went with the call that has failed
      branch.channel.queue(MessageKind::failure, payload);
    }
    const Deadline deadline(branchFarewellSeconds);
    for (;;) {
      std::vector<pollfd> sockets;
      for (Branch& branch : branches_) {
        if (branch.channel.fd() >= 0 && !branch.channel.flush()) branch.channel = Channel(FileDescriptor());
        if (branch.channel.fd() >= 0 && branch.channel.hasOutput())
          sockets.push_back({branch.channel.fd(), POLLOUT, 0});
      }
      if (sockets.empty() || deadline.passed()) break;
      (void)::poll(sockets.data(), sockets.size(), std::min(deadline.milliseconds(), 10));
    }
  } catch (const std::exception&) {
    // The connections close below; the others then see that this rank has ended.
  }
  reception_.close();
  for (Branch& branch : branches_) branch.channel.finish();
  branches_.clear();
}

std::string Branches::describe(const Branch& branch) const {
  // What a gateway says is read on other hosts.
  return fmt::format("rank {} ({})", branch.rank(), describeState(branch.who, branch.overTcp || self_.rank != 0));
}

}  // namespace tacc

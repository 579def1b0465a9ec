#include "easgd/center_entry.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "comm/bootstrap/connect.hpp"
#include "comm/bootstrap/wait.hpp"
#include "comm/control/failure.hpp"
#include "comm/hosts.hpp"
#include "core/environment.hpp"
#include "core/error.hpp"
#include "easgd/center_memory.hpp"

namespace tacc {
namespace {

/// How long one place may take to accept, and then to speak, before the next is tried: it doubles from the first to the
/// last.
constexpr double firstPatience = 0.5;
constexpr double lastPatience = 4.0;
/// Who has spoken as a center does gets more time: it may be busy.
constexpr double proofSeconds = 10.0;
/// Between two rounds of attempts: it doubles likewise.
constexpr double firstNap = 0.02;
constexpr double lastNap = 0.5;

/// How far an attempt came.
enum class Progress : std::uint8_t { none, connected, challenged, proven };

struct TriedPlace {
  std::optional<InetAddress> address;  // nothing: the unix socket of this host
  std::string outcome;                 // of the last of the attempts that came furthest
  Progress progress = Progress::none;
  bool isRefused = false;  // by the last

  void note(Progress far, std::string what) {
    if (far >= progress) outcome = std::move(what);
    progress = std::max(progress, far);
  }
  std::string name() const { return address ? address->text() : "the unix socket of host " + hostName(); }
};

class Entrance {
 public:
  Entrance(const UniqueIdContents& id, std::size_t count, bool wantsMemory, double timeout)
      : id_(id),
        join_{count, centerProtocol, wantsMemory ? 1U : 0U},
        self_(introduceSelf(1, 0, checkEnvironment().encryption)),
        timeout_(timeout),
        deadline_(deadlineOf(timeout)) {
    const std::uint64_t here = hostHash();
    if (id.port == 0 || here == 0 || id.host == here) places_.emplace_back();
    for (const InetAddress& address : addressesIn(id)) places_.emplace_back().address = address;
  }

  CenterEntry enter() {
    double nap = firstNap;
    for (double patience = firstPatience;; patience = std::min(lastPatience, patience * 2)) {
      for (TriedPlace& place : places_) {
        if (auto entry = tryPlace(place, patience)) return std::move(*entry);
      }
      if (std::ranges::all_of(places_, &TriedPlace::isRefused)) {
        fail(taccRemoteError,
             "the process that kept the center has ended, or it destroyed the center: nobody listens at {}",
             describePlaces());
      }
      if (deadline_.passed()) {
        fail(
            taccTimeout, "the center did not answer within {:.3g} s. Tried: {}. Does its process still run?{}",
            timeout_, describePlaces(),
            id_.port == 0 ? " The id is good on the host and for the user of the center only (servesHosts is 0)." : "");
      }
      std::vector<pollfd> nothing;
      waitFor(nothing, interrupt_, std::min(deadline_, Deadline(nap)));
      nap = std::min(lastNap, nap * 2);
    }
  }

 private:
  std::optional<CenterEntry> tryPlace(TriedPlace& place, double patience) {
    Attempt attempt =
        place.address ? connectTcp(*place.address, patience, deadline_, interrupt_) : connectUnix(rendezvousName(id_));
    place.isRefused = attempt.isRefused;
    if (!attempt.socket.valid()) {
      if (attempt.isStranger && places_.size() == 1)
        fail(taccRemoteError, "the center of this id is kept by another user, or its name was taken: {}",
             attempt.problem);
      place.note(Progress::none, std::move(attempt.problem));
      return std::nullopt;
    }
    channel_ = Channel(std::move(attempt.socket));
    return prove(place, patience);
  }

  std::optional<CenterEntry> prove(TriedPlace& place, double patience) {
    const auto first = receiveBefore(std::min(deadline_, Deadline(patience)));
    const auto challenge = first && first->kind == MessageKind::challenge ? valueIn<Challenge>(*first) : std::nullopt;
    if (!challenge) {
      place.note(Progress::connected,
                 first ? "who listens there speaks another protocol" : "who listens there does not answer");
      return std::nullopt;
    }
    const Hello hello = answerChallenge(id_.secret, *challenge, self_);
    channel_.queue(MessageKind::hello, payloadOf(hello));
    const auto second = receiveBefore(std::min(deadline_, Deadline(proofSeconds)));
    const auto welcome = second && second->kind == MessageKind::welcome ? valueIn<Welcome>(*second) : std::nullopt;
    if (!welcome || !isGenuine(id_.secret, *challenge, hello, *welcome)) {
      place.note(Progress::challenged, "who listens there closed the connection or does not know the secret of the id");
      return std::nullopt;
    }
    trustHost(channel_, id_.secret, *challenge, hello, *welcome);
    channel_.limitPayload(longestCenterMessage);
    CenterLink link{Channel(FileDescriptor()), welcome->who, place.address.has_value()};
    channel_.queue(MessageKind::centerJoin, payloadOf(join_));
    auto third = receiveBefore(deadline_);
    if (!third) {
      place.note(Progress::proven, fmt::format("{} gave no seat", link.describe()));
      return std::nullopt;
    }
    return takeSeat(std::move(*third), std::move(link));
  }

  CenterEntry takeSeat(Message message, CenterLink link) {
    if (message.kind == MessageKind::failure) throw remoteFailureIn(message);
    const auto seat = message.kind == MessageKind::centerSeat ? valueIn<CenterSeat>(message) : std::nullopt;
    const std::size_t descriptors = seat && seat->hasMemory != 0 ? 1 : 0;
    if (!seat || seat->count != join_.count || message.descriptors.size() != descriptors ||
        (descriptors == 1 && join_.wantsMemory == 0)) {
      fail(taccRemoteError, "{}, which keeps the center, gave a seat that is none", link.describe());
    }
    link.channel = std::move(channel_);
    CenterEntry entry{std::move(link), *seat, FileDescriptor()};
    if (descriptors == 1) entry.memory = std::move(message.descriptors.front());
    return entry;
  }

  /// The next message; nothing when the other end has closed or the time is over.
  std::optional<Message> receiveBefore(const Deadline& deadline) {
    for (;;) {
      if (!channel_.flush()) return std::nullopt;
      if (auto message = channel_.take()) return message;
      const bool isOpen = channel_.receive();
      if (auto message = channel_.take()) return message;
      if (!isOpen || deadline.passed()) return std::nullopt;
      std::vector<pollfd> socket{
          {channel_.fd(), static_cast<short>(channel_.hasOutput() ? POLLIN | POLLOUT : POLLIN), 0}};
      waitFor(socket, interrupt_, deadline);
    }
  }

  std::string describePlaces() const {
    std::string text;
    for (const TriedPlace& place : places_)
      text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", place.name(), place.outcome);
    return text;
  }

  const UniqueIdContents& id_;
  CenterJoin join_;
  Introduction self_;
  double timeout_;
  Deadline deadline_;
  Interrupt interrupt_{0};
  std::vector<TriedPlace> places_;
  Channel channel_{FileDescriptor()};
};

}  // namespace

void CenterLink::failEnded() const {
  fail(taccRemoteError, "{}, which kept the center, has ended{}", describePlace(keeper, true),
       channel.isLost() ? fmt::format(" or cannot be reached ({})", channel.whyClosed()) : "");
}

CenterEntry enterCenter(const UniqueIdContents& id, std::size_t count, bool wantsMemory, double timeout) {
  return Entrance(id, count, wantsMemory, timeout).enter();
}

}  // namespace tacc

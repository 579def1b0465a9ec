#include "comm/control_plane.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/failure.hpp"

namespace tacc {
namespace {

/// How long ranks have to answer in an inquest: they look several times a second when they wait.
constexpr double answerSeconds = 0.4;
constexpr int shown = 4;  // answers in a verdict

Payload textPayload(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return makePayload({bytes.begin(), bytes.end()});
}

std::string textIn(const Message& message) {
  return {reinterpret_cast<const char*>(message.payload.data()), message.payload.size()};
}

struct GoneNotice {
  std::int32_t rank;
  std::int32_t died;
};

}  // namespace

ControlPlane::ControlPlane(int rank, std::vector<RankIdentity> who, std::vector<Channel> channels)
    : rank_(rank), who_(std::move(who)), channels_(std::move(channels)), presence_(who_.size(), Presence::here) {}

ControlPlane::~ControlPlane() { leave(); }

void ControlPlane::leave() noexcept {
  if (!std::exchange(hasLeft_, true)) sendToAll(MessageKind::farewell, nullptr, -1);
}

void ControlPlane::sayFarewell() noexcept {
  const std::lock_guard lock(mutex_);
  leave();
}

bool ControlPlane::isAlone() const {
  const std::lock_guard lock(mutex_);
  if (std::ranges::all_of(channels_, [](const Channel& channel) { return channel.fd() < 0; })) return true;
  for (std::size_t r = 0; r < presence_.size(); ++r)
    if (static_cast<int>(r) != rank_ && presence_[r] == Presence::here) return false;
  return true;
}

std::string ControlPlane::nameOf(int rank) const {
  return fmt::format("rank {} ({})", rank, who_[static_cast<std::size_t>(rank)].describe());
}

void ControlPlane::addDescriptors(std::vector<pollfd>& sockets) const {
  const std::lock_guard lock(mutex_);
  for (const Channel& channel : channels_)
    if (channel.fd() >= 0)
      sockets.push_back({channel.fd(), static_cast<short>(channel.hasOutput() ? POLLIN | POLLOUT : POLLIN), 0});
}

void ControlPlane::poll(const std::function<std::string()>& describe) {
  const std::lock_guard lock(mutex_);
  if (told_) throw Error(*told_);
  try {
    pollAll(describe);
  } catch (const Error& error) {
    told_ = error;
    throw;
  }
}

void ControlPlane::pollAll(const std::function<std::string()>& describe) {
  for (std::size_t i = 0; i < channels_.size(); ++i)
    if (channels_[i].fd() >= 0) drain(static_cast<int>(i), describe);
  if (!inquest_) return;
  const bool answered = std::ranges::all_of(inquest_->answers, [](const auto& answer) { return answer.has_value(); });
  if (answered || inquest_->deadline.passed()) concludeInquest(describe());
}

void ControlPlane::drain(int from, const std::function<std::string()>& describe) {
  Channel& channel = channels_[static_cast<std::size_t>(from)];
  bool open = false;
  try {
    open = channel.flush() && channel.receive();
  } catch (const Error&) {
    // A connection that the network gave up is as good as closed.
  }
  while (const std::optional<Message> message = channel.take()) handle(from, *message, describe);
  if (open) return;
  channel = Channel(FileDescriptor());
  if (presence_[static_cast<std::size_t>(from)] == Presence::here) markGone(from, Presence::dead);
}

void ControlPlane::handle(int from, const Message& message, const std::function<std::string()>& describe) {
  switch (message.kind) {
    case MessageKind::failure: {
      const Error error = failureIn(message);
      hasFailed_ = true;
      const std::string text =
          isHub() ? fmt::format("{} reported: {}", nameOf(from), error.what()) : std::string(error.what());
      if (isHub()) sendToAll(MessageKind::failure, describeFailure(Error(taccRemoteError, text)), from);
      fail(taccRemoteError, "{}", text);
    }
    case MessageKind::verdict:
      hasFailed_ = true;
      fail(taccTimeout, "{}", textIn(message));
    case MessageKind::farewell:
      return markGone(from, Presence::left);
    case MessageKind::gone:
      if (const auto notice = valueIn<GoneNotice>(message); notice && notice->rank >= 0)
        if (const auto rank = static_cast<std::size_t>(notice->rank); rank < presence_.size())
          presence_[rank] = notice->died != 0 ? Presence::dead : Presence::left;
      return;
    case MessageKind::query:
      return sendTo(from, MessageKind::state, textPayload(describe()));
    case MessageKind::stuck:
    case MessageKind::state:
      if (!isHub()) return;
      if (!inquest_ && message.kind == MessageKind::stuck) openInquest();
      if (inquest_) inquest_->answers[static_cast<std::size_t>(from)] = textIn(message);
      return;
    default:
      return;  // of no meaning after init
  }
}

void ControlPlane::markGone(int rank, Presence how) {
  presence_[static_cast<std::size_t>(rank)] = how;
  if (isHub()) sendToAll(MessageKind::gone, payloadOf(GoneNotice{rank, how == Presence::dead ? 1 : 0}), rank);
}

void ControlPlane::sendTo(int rank, MessageKind kind, const Payload& payload) noexcept {
  Channel& channel = channels_[static_cast<std::size_t>(rank)];
  if (channel.fd() < 0) return;
  try {
    channel.queue(kind, payload);
    (void)channel.flush();
  } catch (const std::exception&) {
    // Its end is noticed when something is read from it.
  }
}

void ControlPlane::sendToAll(MessageKind kind, const Payload& payload, int except) noexcept {
  for (std::size_t i = 0; i < channels_.size(); ++i)
    if (static_cast<int>(i) != except) sendTo(static_cast<int>(i), kind, payload);
}

void ControlPlane::announce(const Error& error) noexcept {
  const std::lock_guard lock(mutex_);
  if (std::exchange(hasFailed_, true)) return;
  try {
    const std::string text = isHub() ? fmt::format("{} reported: {}", nameOf(0), error.what()) : error.what();
    sendToAll(MessageKind::failure, describeFailure(Error(error.result(), text)), -1);
  } catch (const std::exception&) {
    // Out of memory: the others see this rank's end.
  }
}

void ControlPlane::reportStuck(const std::string& doing) {
  const std::lock_guard lock(mutex_);
  if (!isHub()) return sendTo(0, MessageKind::stuck, textPayload(doing));
  if (!inquest_) openInquest();
}

void ControlPlane::openInquest() {
  inquest_.emplace(Inquest{Deadline(answerSeconds), {}});
  inquest_->answers.resize(who_.size());
  inquest_->answers[0] = "";  // rank 0 itself
  sendToAll(MessageKind::query, nullptr, -1);
}

void ControlPlane::concludeInquest(const std::string& own) {
  inquest_->answers[0] = own;
  std::string silent, doing;
  int silentCount = 0, doingCount = 0;
  for (std::size_t r = 0; r < who_.size(); ++r) {
    const auto& answer = inquest_->answers[r];
    if (!answer && silentCount++ < shown) silent += (silent.empty() ? "" : ", ") + nameOf(static_cast<int>(r));
    if (answer && doingCount++ < shown) doing += fmt::format("{}rank {} {}", doing.empty() ? "" : "; ", r, *answer);
  }
  if (silentCount > shown) silent += fmt::format(" and {} more", silentCount - shown);
  const std::string verdict =
      silentCount > 0 ? fmt::format(
                            "{} did not answer within {} s: stopped, cut off from the network, or not inside a "
                            "tacc call; meanwhile {}",
                            silent, answerSeconds, doing)
                      : fmt::format("no rank gets on, though all answer: {}", doing);
  hasFailed_ = true;
  sendToAll(MessageKind::verdict, textPayload(verdict), -1);
  inquest_.reset();
  fail(taccTimeout, "{}", verdict);
}

std::optional<int> ControlPlane::deadRank() const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(presence_, Presence::dead);
  if (found == presence_.end()) return std::nullopt;
  return static_cast<int>(found - presence_.begin());
}

std::optional<int> ControlPlane::leftRank(const std::vector<int>& awaited) const {
  const std::lock_guard lock(mutex_);
  for (const int rank : awaited)
    if (presence_[static_cast<std::size_t>(rank)] == Presence::left) return rank;
  return std::nullopt;
}

}  // namespace tacc

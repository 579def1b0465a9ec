#include "transports/tcp/tcp_inbox.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace tacc {
namespace {

constexpr std::size_t longest = std::size_t{1} << 48;

}  // namespace

Error TcpInbox::tooLong(const TcpChannel& channel, std::uint32_t tag, std::size_t bytes, std::size_t capacity) const {
  return {taccInvalidUsage, fmt::format("rank {} expected at most {} bytes from rank {}, which sent {} (message {})",
                                        channel.rank, capacity, channel.rankOf(peer_), bytes, tag)};
}

void TcpInbox::post(TcpChannel& channel, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) {
  request.done = false;
  auto* to = static_cast<std::byte*>(data);
  const auto found =
      std::ranges::find_if(kept_, [&](const Kept& kept) { return kept.tag == tag && kept.channel == &channel; });
  if (found == kept_.end()) {
    posted_.push({&channel, tag, to, capacity, &request});
    if (isShared_) setPause(channel);
    return;
  }
  const bool isComing = target_ == Target::kept && found == kept_.end() - 1;
  const std::size_t bytes = found->bytes;
  if (bytes > capacity) throw tooLong(channel, tag, bytes, capacity);
  const std::size_t arrived = isComing ? bytes - left_ : bytes;
  if (arrived > 0) std::memcpy(to, found->data.data(), arrived);
  keptBytes_ -= found->weight();
  kept_.erase(found);
  request.bytes = bytes;
  if (isComing) {
    target_ = Target::posted;
    at_ = to + arrived;
    room_ = left_;
    channel_ = &channel;
    request_ = &request;
  } else {
    request.done = true;
  }
  if (isShared_) setPause(channel);
}

void TcpInbox::begin(TcpChannel* channel, std::uint32_t tag, std::size_t bytes) {
  if (bytes > longest) fail(taccRemoteError, "a message of {} bytes, as tacc sends none", bytes);
  bytes_ = left_ = bytes;
  target_ = Target::nowhere;
  if (channel != nullptr) {
    const auto found = std::ranges::find_if(
        posted_, [&](const Posted& posted) { return posted.tag == tag && posted.channel == channel; });
    if (found == posted_.end()) {
      kept_.push_back({channel, tag, bytes, {}});
      keptBytes_ += kept_.back().weight();
      target_ = Target::kept;
      if (isShared_) setPause(*channel);
    } else if (bytes <= found->capacity) {
      target_ = Target::posted;
      at_ = found->data;
      room_ = bytes;
      channel_ = channel;
      request_ = found->request;
      request_->bytes = bytes;
      posted_.erase(found);
    } else {
      channel->fail(tooLong(*channel, tag, bytes, found->capacity));
    }
  }
  if (bytes == 0) return finish();
  if (target_ == Target::kept) makeRoom(firstMemory);
  if (target_ == Target::nowhere) discard();
}

void TcpInbox::landed(std::size_t bytes) {
  at_ += bytes;
  left_ -= bytes;
  room_ -= bytes;
  if (room_ > 0 || bytes == 0) return;
  if (left_ == 0) return finish();
  if (target_ == Target::nowhere) return discard();
  makeRoom(kept_.back().data.size());
}

/// For more of the message that is kept: up to `most` bytes.
void TcpInbox::makeRoom(std::size_t most) {
  std::vector<std::byte>& data = kept_.back().data;
  const std::size_t arrived = data.size();
  data.resize(arrived + std::min(left_, most));
  at_ = data.data() + arrived;
  room_ = data.size() - arrived;
}

void TcpInbox::discard() noexcept {
  at_ = sink_.data();
  room_ = std::min(left_, sink_.size());
}

void TcpInbox::finish() {
  room_ = 0;
  target_ = Target::nowhere;
  TcpChannel* const channel = std::exchange(channel_, nullptr);
  if (NetworkRequest* request = std::exchange(request_, nullptr)) channel->complete(*request);
}

bool TcpInbox::close(const TcpChannel& channel) noexcept {
  const bool isComing = left_ > 0 && ((target_ == Target::posted && channel_ == &channel) ||
                                      (target_ == Target::kept && kept_.back().channel == &channel));
  if (isComing) {
    channel_ = nullptr;
    request_ = nullptr;
    target_ = Target::nowhere;
    discard();
  }
  posted_.eraseIf([&](const Posted& posted) { return posted.channel == &channel; });
  for (const Kept& kept : kept_)
    if (kept.channel == &channel) keptBytes_ -= kept.weight();
  std::erase_if(kept_, [&](const Kept& kept) { return kept.channel == &channel; });
  const auto isWaiting = [&](const Pausing& one) { return one.channel == &channel && one.isTold; };
  const bool waits = std::ranges::any_of(pausing_, isWaiting);
  std::erase_if(pausing_, [&](const Pausing& one) { return one.channel == &channel; });
  return waits;
}

bool TcpInbox::isAwaitedBy(const TcpChannel& channel) const noexcept {
  return (request_ != nullptr && channel_ == &channel) ||
         std::ranges::find(posted_, &channel, &Posted::channel) != posted_.end();
}

std::size_t TcpInbox::keptOf(const TcpChannel& channel) const noexcept {
  std::size_t bytes = 0;
  for (const Kept& kept : kept_)
    if (kept.channel == &channel) bytes += kept.weight();
  return bytes;
}

/// Whether the channel's sender has to wait now. It goes on when half of the room is free, so that it is not told with
/// every message.
void TcpInbox::setPause(TcpChannel& channel) {
  const auto found = std::ranges::find(pausing_, &channel, &Pausing::channel);
  const bool isOn = found != pausing_.end() && found->isOn;
  if (!isOn && keptBytes_ < keptLimit) return;  // of all channels together
  const bool isNow = !isAwaitedBy(channel) && keptOf(channel) >= (isOn ? keptLimit / 2 : keptLimit);
  if (found == pausing_.end())
    pausing_.push_back({&channel, isNow, false});
  else
    found->isOn = isNow;
}

std::optional<TcpPause> TcpInbox::takePause() noexcept {
  for (Pausing& one : pausing_) {
    if (one.isOn == one.isTold) continue;
    one.isTold = one.isOn;
    return TcpPause{one.channel->number, one.isOn};
  }
  return std::nullopt;
}

std::size_t TcpInbox::memory() const noexcept {
  std::size_t bytes = 0;
  for (const Kept& kept : kept_) bytes += kept.data.capacity() + sizeof kept;
  return bytes;
}

}  // namespace tacc

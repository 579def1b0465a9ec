#include "comm/control/member_watch.hpp"

#include "core/error.hpp"

namespace tacc {
namespace {

constexpr std::chrono::milliseconds pause(20);
/// Calls at the same time. Where there are more ranks, they take turns.
constexpr std::size_t mostCalls = 64;
constexpr double turnSeconds = 1;

}  // namespace

void MemberWatch::look() {
  if (Clock::now() < nextLook_) return;
  nextLook_ = Clock::now() + pause;
  const bool inTurns = waiting_.size() + calls_.size() > mostCalls;
  for (auto one = calls_.begin(); one != calls_.end();) {
    pollfd socket = one->descriptor();
    if (::poll(&socket, 1, 0) > 0) one->progress();
    if (one->state() == MeetingLink::State::refused)
      fail(taccRemoteError, "rank {} has ended before it joined the new communicator", one->peer());
    // One that is over is called on again, and refuses if it has ended.
    const bool isToEnd = one->isOver() || (inTurns && one->age() > turnSeconds);
    if (isToEnd) waiting_.push_back(one->peer());
    one = isToEnd ? calls_.erase(one) : std::next(one);
  }
  while (!waiting_.empty() && calls_.size() < mostCalls) {
    calls_.emplace_back(members_, waiting_.front());
    waiting_.pop_front();
  }
}

}  // namespace tacc

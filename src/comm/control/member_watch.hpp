// Whether ranks that are to join a communicator still live, looked at from outside, while one waits for them.
#pragma once

#include <chrono>
#include <deque>
#include <list>
#include <vector>

#include "comm/bootstrap/meeting_link.hpp"

namespace tacc {

class MemberWatch {
 public:
  /// `watched`: ranks of `members`, which must outlive it. Every one of them listens at its door as long as it lives.
  MemberWatch(const MeetingMembers& members, const std::vector<int>& watched)
      : members_(members), waiting_(watched.begin(), watched.end()) {}

  /// Looks now and then, however often it is called. Throws taccRemoteError when one of them has ended.
  void look();

 private:
  using Clock = std::chrono::steady_clock;

  const MeetingMembers& members_;
  std::deque<int> waiting_;       // ranks that are called on when there is room
  std::list<MeetingLink> calls_;  // which end with the rank that they reach, so they stay
  Clock::time_point nextLook_{};
};

}  // namespace tacc

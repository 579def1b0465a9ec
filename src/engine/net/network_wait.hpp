// How the engine waits for messages. What to wait for is the engine's to say; for how long, and what else can end a
// wait, is known to who has the other ranks in view.
#pragma once

#include <functional>

#include "core/error.hpp"
#include "engine/net/network_activity.hpp"

namespace tacc {

class NetworkWait {
 public:
  virtual ~NetworkWait() = default;

  /// Advances `activity` until `enough` returns true. Throws what ends the wait before: the failure of another rank, a
  /// time-out, what `activity` throws.
  virtual void run(NetworkActivity& activity, const std::function<bool()>& enough) = 0;

  /// Runs `work`, which uses the transport without waiting. A failure in it may be the consequence of another, which is
  /// thrown then.
  template <class Work>
  auto guard(const NetworkActivity* activity, const Work& work) {
    try {
      return work();
    } catch (const Error& error) {
      explain(activity, error);
      throw;
    }
  }

 private:
  /// Throws what `error` comes from, where that is another failure.
  virtual void explain(const NetworkActivity* activity, const Error& error) = 0;
};

}  // namespace tacc

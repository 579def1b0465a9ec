// One rank's end of the network: waits for messages, and for everything that can end such a wait otherwise.
//
// Waiting is adaptive, as inside a node: look again and again while the message is probably near, then sleep on the
// transport's descriptor, the control plane and the interrupt together.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/bootstrap/wait.hpp"
#include "comm/control/control_plane.hpp"
#include "core/idle_call.hpp"
#include "engine/net/network_activity.hpp"
#include "engine/net/network_peers.hpp"
#include "engine/net/network_wait.hpp"
#include "transports/network_transport.hpp"

namespace tacc {

struct NetworkPatience {
  double timeout = 600;       // seconds without progress until the inquest; 0: for ever
  double spinSeconds = 4e-4;  // of looking, and yielding the core, before the first sleep
};

class NetworkEndpoint final : public NetworkWait {
 public:
  /// `describe`: the call that this rank is in, for messages.
  NetworkEndpoint(int rank, int ranks, std::unique_ptr<NetworkTransport> transport, ControlPlane& control,
                  NetworkPatience patience, std::function<std::string()> describe);
  /// Nobody calls it any more when the rest of it goes.
  ~NetworkEndpoint() override { transport_.reset(); }
  NetworkEndpoint(const NetworkEndpoint&) = delete;
  NetworkEndpoint& operator=(const NetworkEndpoint&) = delete;

  NetworkPeers& peers() noexcept { return peers_; }
  std::string describeTransport() const { return transport_->describe(); }
  /// Null after a failure that has closed it.
  NetworkTransport* transport() noexcept { return transport_.get(); }

  /// From now on called while this rank waits for messages: every millisecond at least.
  void setIdleCall(IdleCall call) { idleCall_ = call; }
  /// From now on called before this rank sleeps, and when it looks after the others: throws where what they do cannot
  /// end this rank's wait.
  void setComparison(std::function<void()> compare) { compare_ = std::move(compare); }

  /// Advances `activity` until `enough` returns true. Throws taccTimeout, taccRemoteError, and what activity throws.
  void run(NetworkActivity& activity, const std::function<bool()>& enough) override;
  /// For waits inside the node: lets messages move and looks at the control plane, without waiting.
  void idle(NetworkActivity* activity);
  /// A new operation inside the node begins: its time-out starts again.
  void beginIdle() noexcept { idleStart_ = {}; }
  /// From any thread: ends the wait that goes on, or the next one.
  void interrupt() noexcept { interrupt_.raise(); }
  void checkInterrupt() const;

  /// Says farewell and lets messages move until the others have left too: what this rank sent last may still be on its
  /// way to them, and a transport that is closed may take that with it. Waits some seconds at most. False when the
  /// communicator failed meanwhile.
  bool leave() noexcept;

  /// After an Error: as NetworkTransport. For memory that goes before fence() is called.
  void cancelReceives() noexcept {
    if (transport_) transport_->cancelReceives();
  }
  /// After a call has failed: no message that comes late is written into its buffers any more. Nothing may be sent or
  /// received afterwards, nor leave() be called.
  void fence() noexcept;

  /// Ends all messages that are under way; afterwards only the destructor may be called. `hasFailed`: the communicator
  /// ended with an Error, so connections may be broken.
  void closeTransport(bool hasFailed) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  void sleep();
  void learn(double waited) noexcept;
  /// A connection that breaks may be how a rank's death looks, or the end of a rank that failed because of another:
  /// this waits a moment for the control plane to tell, and throws what that says.
  void explain(const NetworkActivity* activity, const Error& error) override;
  bool progress(NetworkActivity* activity);
  /// Everything but messages; `still`: seconds since something moved.
  void checkOthers(const NetworkActivity* activity, double still);
  /// The same without the time-out: what others tell, and who is not there any more.
  void checkGone(const NetworkActivity* activity, double still);
  std::string describeWait(const NetworkActivity* activity) const;
  /// Moves `start` of a wait, of which `now` a turn ends, by what the turn took if that is more than a turn can take.
  void leaveOut(std::chrono::steady_clock::time_point now, std::chrono::steady_clock::time_point& start) noexcept;

  int rank_;
  std::unique_ptr<NetworkTransport> transport_;
  NetworkPeers peers_;
  ControlPlane& control_;
  NetworkPatience patience_;
  std::function<std::string()> describe_;
  Interrupt interrupt_;
  bool isStuck_ = false;           // the inquest was asked for
  IdleCall idleCall_;              // of the program
  std::function<void()> compare_;  // empty: none
  double spin_;                    // seconds of looking before the next sleep
  bool controlIsReady_ = false;    // as the last sleep ended
  Clock::time_point lastLook_{};
  bool isRunning_ = false;        // inside run(), or ended by an Error in it
  Clock::time_point lastMove_{};  // of the call that run() is in
  Clock::time_point lastIdle_{}, idleStart_{};
  Clock::time_point lastTurn_{};  // of a wait
  std::vector<pollfd> sockets_;
};

}  // namespace tacc

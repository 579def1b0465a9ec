#include "comm/cluster/network_endpoint.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "core/error.hpp"
#include "core/fork.hpp"
#include "transports/shm/core_competition.hpp"
#include "transports/shm/wake_socket.hpp"

namespace tacc {
namespace {

constexpr int longestSleep = 100;  // ms; bounds how late a time-out is noticed
constexpr int blindSleep = 1;      // ms, for transports without a descriptor, and for programs with work of their own
constexpr double deadGrace = 0.1;  // a rank that died may have sent all that it had to
constexpr double leftGrace = 3.0;  // as may one that has left, which stays for a while
constexpr double leaveSeconds = 10.0;
constexpr double afterGraces = leftGrace + 0.01;
constexpr double verdictSeconds = 0.7;  // of waiting for rank 0 after a time-out
constexpr double askedSeconds = 5.0;    // where it has asked: it lives, however long it has to wait for a processor
constexpr double explainSeconds = 0.3;  // for the control plane to tell why a connection broke
constexpr double leastSpin = 2e-6;
constexpr std::chrono::milliseconds lookInterval{20};  // between looks at the control plane when nothing came from it
constexpr double idleSeconds = 0.001;                  // between looks at the control plane from inside the node
constexpr double longestTurn = 1.0;                    // of a wait, in seconds; one that takes longer did not run

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

NetworkEndpoint::NetworkEndpoint(int rank, int ranks, std::unique_ptr<NetworkTransport> transport,
                                 ControlPlane& control, NetworkPatience patience, std::function<std::string()> describe)
    : rank_(rank),
      transport_(std::move(transport)),
      peers_(*transport_, ranks),
      control_(control),
      patience_(patience),
      describe_(std::move(describe)),
      interrupt_(rank),
      spin_(patience.spinSeconds) {
  transport_->onNews([this] { interrupt_.nudge(); });
}

void NetworkEndpoint::run(NetworkActivity& activity, const std::function<bool()>& enough) {
  lastMove_ = lastTurn_ = Clock::now();
  isStuck_ = false;
  isRunning_ = true;
  for (bool slept = false;;) {
    // What a transport does for itself, such as asking whether a peer still lives, is no progress of the call.
    const bool moved = progress(&activity);
    idleCall_();
    if (moved && slept) learn(secondsSince(lastMove_));
    if (enough() && (!activity.isFinished() || transport_->drain())) {
      isRunning_ = false;
      return;
    }
    if (moved) {
      lastMove_ = lastTurn_ = Clock::now();
      slept = false;
      continue;
    }
    const auto now = Clock::now();
    leaveOut(now, lastMove_);
    const double still = std::chrono::duration<double>(now - lastMove_).count();
    if (!slept && still < spin_ && !coreCompetition().isSteady()) {
      coreCompetition().yield();  // the rank that is waited for may need this core
      continue;
    }
    if (compare_) compare_();
    if (slept && (controlIsReady_ || now - lastLook_ > lookInterval)) {
      lastLook_ = now;
      checkOthers(&activity, still);
    }
    if (transport_->descriptor() < 0 || transport_->arm()) sleep();
    if (!std::exchange(slept, true)) spin_ /= 2;
  }
}

/// While a whole job is stopped, as a batch system suspends one for another, nobody can have answered: the time of a
/// turn in which this thread did not run is none that others let pass.
void NetworkEndpoint::leaveOut(Clock::time_point now, Clock::time_point& start) noexcept {
  const Clock::time_point turn = std::max(std::exchange(lastTurn_, now), start);
  if (start == Clock::time_point{}) return;  // it has not begun
  if (std::chrono::duration<double>(now - turn).count() > longestTurn) start += now - turn;
}

/// Looking pays where messages come within a few looks, and costs the cores of others where they do not: what the last
/// waits were like decides.
void NetworkEndpoint::learn(double waited) noexcept {
  if (waited < patience_.spinSeconds) spin_ = std::min(patience_.spinSeconds, std::max(4 * spin_, leastSpin));
}

bool NetworkEndpoint::progress(NetworkActivity* activity) {
  return guard(activity, [&] {
    // What this rank has to send comes before a look at what others have sent.
    if (activity != nullptr && activity->advance()) return true;
    transport_->expect(activity == nullptr ? -1 : activity->nextSender());
    transport_->progress();
    return activity != nullptr && activity->advance();
  });
}

void NetworkEndpoint::explain(const NetworkActivity* activity, const Error& error) {
  if (compare_) compare_();  // messages of different calls may not fit each other
  if (error.result() != taccRemoteError && error.result() != taccSystemError) return;
  // Where this rank is about to time out itself, others have just done so: then that is what happened.
  const double left = patience_.timeout + verdictSeconds - secondsSince(lastMove_);
  const bool isLate = isRunning_ && patience_.timeout > 0 && left < 1.0;
  for (const Deadline deadline(isLate ? std::max(left, 0.0) + explainSeconds : explainSeconds); !deadline.passed();) {
    if (isLate)
      checkOthers(activity, std::max(deadGrace, secondsSince(lastMove_)));
    else
      checkGone(activity, afterGraces);
    sockets_.clear();
    control_.addDescriptors(sockets_);
    waitFor(sockets_, interrupt_, Deadline(0.01));
  }
}

void NetworkEndpoint::idle(NetworkActivity* activity) {
  const bool moved = progress(activity);
  const auto now = Clock::now();
  leaveOut(now, idleStart_);
  if (std::chrono::duration<double>(now - lastIdle_).count() < idleSeconds) return;
  lastIdle_ = now;
  if (moved || idleStart_ == Clock::time_point{}) {
    idleStart_ = lastIdle_;
    isStuck_ = false;
  }
  checkOthers(activity, secondsSince(idleStart_));
}

bool NetworkEndpoint::leave() noexcept {
  try {
    control_.sayFarewell();
    for (const Deadline deadline(leaveSeconds); !control_.isAlone() && !deadline.passed();) {
      checkInterrupt();
      idleCall_();
      control_.poll([] { return std::string("was in taccCommDestroy"); });
      if (!transport_->progress() && (transport_->descriptor() < 0 || transport_->arm())) sleep();
    }
    return true;
  } catch (const std::exception&) {
    return false;  // somebody's failure, which this rank is not concerned with any more
  }
}

/// What moves messages inside progress() alone writes nothing from now on: nobody calls that any more.
void NetworkEndpoint::fence() noexcept {
  if (!transport_) return;
  if (transport_->hasFabric()) return closeTransport(true);
  transport_->cancelReceives();
}

/// UCX 1.13 and libfabric 1.17 crash, or wait for ever, when they close connections over TCP that have broken. There
/// such a transport does nothing unless it is called, so one that is never called again touches no posted memory: it is
/// kept, with its descriptors, until the process ends. A network card does go on by itself, so with one the transport
/// has to close.
void NetworkEndpoint::closeTransport(bool hasFailed) noexcept {
  if (hasFailed && transport_ && !transport_->closesBrokenConnections()) {
    static ForkMutex mutex;
    const std::lock_guard lock(mutex);
    try {
      static auto* const kept = new std::vector<std::unique_ptr<NetworkTransport>>;  // never destroyed
      kept->push_back(nullptr);
      kept->back() = std::move(transport_);
    } catch (const std::bad_alloc&) {
      (void)transport_.release();
    }
  }
  transport_.reset();
}

void NetworkEndpoint::sleep() {
  sockets_.clear();
  control_.addDescriptors(sockets_);
  const std::size_t controls = sockets_.size();
  const bool sees = transport_->descriptor() >= 0;
  if (sees) sockets_.push_back({transport_->descriptor(), POLLIN, 0});
  const int local = sees ? transport_->localDescriptor() : -1;
  if (local >= 0) sockets_.push_back({local, POLLIN, 0});
  waitFor(sockets_, interrupt_, Deadline((sees && !idleCall_ ? longestSleep : blindSleep) * 1e-3));
  if (local >= 0 && sockets_.back().revents != 0) forgetWakes();
  controlIsReady_ = std::any_of(sockets_.begin(), sockets_.begin() + static_cast<std::ptrdiff_t>(controls),
                                [](const pollfd& socket) { return socket.revents != 0; });
}

void NetworkEndpoint::checkInterrupt() const {
  if (interrupt_.raised()) fail(taccRemoteError, "the communicator was aborted by rank {}", rank_);
}

void NetworkEndpoint::checkOthers(const NetworkActivity* activity, double still) {
  checkGone(activity, still);
  if (patience_.timeout <= 0 || still <= patience_.timeout) return;
  if (!std::exchange(isStuck_, true)) control_.reportStuck(describeWait(activity));
  if (still > patience_.timeout + (control_.awaitsVerdict() ? askedSeconds : verdictSeconds))
    fail(taccTimeout, "{} does not answer, nor did anything arrive for {} s; rank {} {}", control_.nameOfRankZero(),
         patience_.timeout, rank_, describeWait(activity));
}

void NetworkEndpoint::checkGone(const NetworkActivity* activity, double still) {
  checkInterrupt();
  if (compare_) compare_();
  control_.poll(
      [&] { return RankState(describeWait(activity), transport_ ? transport_->unreached() : std::vector<int>()); });
  if (const auto death = still >= deadGrace ? control_.describeDeath() : std::nullopt)
    fail(taccRemoteError, "{}; rank {} {}", *death, rank_, describeWait(activity));
  const std::vector<int> awaited = activity == nullptr ? std::vector<int>() : activity->awaited();
  if (const auto left = control_.leftRank(awaited); left && still > leftGrace)
    fail(taccRemoteError, "{} has left the communicator (taccCommDestroy) before this call; rank {} {}",
         control_.nameOf(*left), rank_, describeWait(activity));
}

std::string NetworkEndpoint::describeWait(const NetworkActivity* activity) const {
  std::string text = "was in " + describe_();
  const std::vector<int> awaited = activity == nullptr ? std::vector<int>() : activity->awaited();
  for (std::size_t i = 0; i < awaited.size() && i < 4; ++i)
    text += fmt::format("{} {}", i == 0 ? ", waiting for rank" : ",", awaited[i]);
  return text;
}

}  // namespace tacc

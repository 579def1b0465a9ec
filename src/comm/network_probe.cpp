#include "comm/network_probe.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "comm/wait.hpp"

namespace tacc {
namespace {

// Tags that no call uses: those of calls count up from 0.
constexpr std::uint32_t firstTag = 0x7fff'ff00;
constexpr int shortRounds = 8;
// Long enough to empty the token buckets of virtual networks, which let the first 64 KiB or so pass unhindered.
constexpr std::size_t warmBytes = 128 * 1024, longBytes = 256 * 1024;
constexpr int pauseMilliseconds = 1;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

class Probe {
 public:
  Probe(NetworkTransport& transport, int next, int previous, double seconds)
      : transport_(transport), next_(next), previous_(previous), deadline_(seconds), out_(longBytes), in_(longBytes) {}

  /// One message to the next and one from the previous; seconds until both are done.
  double exchange(std::size_t bytes) {
    NetworkRequest sent, received;
    const double start = now();
    transport_.receive(previous_, tag_, in_.data(), bytes, received);
    transport_.send(next_, tag_, out_.data(), bytes, sent);
    ++tag_;
    until([&] { return sent.done && received.done; });
    const double took = now() - start;
    until([&] { return transport_.drain(); });
    return took;
  }

 private:
  template <class IsDone>
  void until(const IsDone& isDone) {
    for (int idle = 0; !isDone();) {
      idle = transport_.progress() ? 0 : idle + 1;
      if (idle < 100) continue;
      if (deadline_.passed())
        fail(taccTimeout, "rank {} did not answer over the network ({})", previous_, transport_.describe());
      pollfd socket{transport_.descriptor(), POLLIN, 0};
      if (socket.fd < 0 || transport_.arm()) (void)::poll(&socket, socket.fd < 0 ? 0 : 1, pauseMilliseconds);
    }
  }

  NetworkTransport& transport_;
  int next_, previous_;
  Deadline deadline_;
  std::uint32_t tag_ = firstTag;
  std::vector<std::byte> out_, in_;
};

}  // namespace

NetworkSpeed probeNetwork(NetworkTransport& transport, const std::vector<int>& ring, int rank, double seconds) {
  const auto place = static_cast<std::size_t>(std::ranges::find(ring, rank) - ring.begin());
  const std::size_t hosts = ring.size();
  Probe probe(transport, ring[(place + 1) % hosts], ring[(place + hosts - 1) % hosts], seconds);
  NetworkSpeed speed;
  speed.latency = probe.exchange(8);  // makes the connections
  for (int i = 0; i < shortRounds; ++i) speed.latency = std::min(speed.latency, probe.exchange(8));
  probe.exchange(warmBytes);
  const double took = probe.exchange(longBytes);
  speed.bytesPerSecond = static_cast<double>(longBytes) / std::max(took - speed.latency, took / 10);
  return speed;
}

NetworkSpeed slowestOf(const std::vector<NetworkSpeed>& views) {
  NetworkSpeed slowest = views.front();
  for (const NetworkSpeed& view : views) {
    slowest.latency = std::max(slowest.latency, view.latency);
    slowest.bytesPerSecond = std::min(slowest.bytesPerSecond, view.bytesPerSecond);
  }
  return slowest;
}

}  // namespace tacc

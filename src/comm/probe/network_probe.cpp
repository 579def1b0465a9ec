#include "comm/probe/network_probe.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "core/error.hpp"
#include "topology/probe/message_lengths.hpp"
#include "topology/probe/steady_rate.hpp"

namespace tacc {
namespace {

constexpr std::uint32_t firstTag = 0x7000'0000;
constexpr int longRounds = 3, shortRounds = 8, shortRoundsOfPairs = 7;
// Long enough to empty the token buckets of virtual networks, which let the first 64 KiB or so pass unhindered.
constexpr std::size_t warmBytes = 128 * 1024, longBytes = 256 * 1024;
constexpr int pauseMilliseconds = 1;

double probeNow() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::uint32_t nextTag(std::vector<std::uint32_t>& counts, int rank) {
  const auto index = static_cast<std::size_t>(rank);
  if (counts.size() <= index) counts.resize(index + 1);
  return firstTag + counts[index]++;
}

/// A measurement that ends with an Error takes its requests along, and its memory soon after.
class Cancelling {
 public:
  explicit Cancelling(NetworkTransport& transport) : transport_(transport) {}
  ~Cancelling() {
    if (std::uncaught_exceptions() > before_) transport_.cancelReceives();
  }
  Cancelling(const Cancelling&) = delete;
  Cancelling& operator=(const Cancelling&) = delete;

 private:
  NetworkTransport& transport_;
  int before_ = std::uncaught_exceptions();
};

}  // namespace

template <class IsDone>
void NetworkProbe::until(int awaited, const IsDone& isDone) {
  for (int idle = 0; !isDone();) {
    idle = transport_.progress() ? 0 : idle + 1;
    if (idle < 100) continue;
    check_();
    if (deadline_.passed())
      fail(taccTimeout, "rank {} did not answer over the network ({})", awaited, transport_.describe());
    pollfd socket{transport_.descriptor(), POLLIN, 0};
    if (socket.fd < 0 || transport_.arm()) (void)::poll(&socket, socket.fd < 0 ? 0 : 1, pauseMilliseconds);
  }
}

void NetworkProbe::reserve(std::size_t bytes) {
  if (out_.size() >= bytes) return;
  out_.resize(bytes);
  in_.resize(bytes);
}

/// One message to the next and one from the previous; seconds until both are done.
double NetworkProbe::exchange(int next, int previous, std::size_t bytes) {
  reserve(bytes);
  NetworkRequest sent, received;
  const Cancelling cancelling(transport_);
  const double start = probeNow();
  transport_.receive(previous, nextTag(received_, previous), in_.data(), bytes, received);
  transport_.send(next, nextTag(sent_, next), out_.data(), bytes, sent);
  until(previous, [&] { return sent.done && received.done; });
  const double took = probeNow() - start;
  until(next, [&] { return transport_.drain(); });
  return took;
}

void NetworkProbe::send(int to, std::size_t bytes) {
  reserve(bytes);
  NetworkRequest sent;
  const Cancelling cancelling(transport_);
  transport_.send(to, nextTag(sent_, to), out_.data(), bytes, sent);
  until(to, [&] { return sent.done && transport_.drain(); });
}

void NetworkProbe::receive(int from, std::size_t bytes) {
  reserve(bytes);
  NetworkRequest received;
  const Cancelling cancelling(transport_);
  transport_.receive(from, nextTag(received_, from), in_.data(), bytes, received);
  until(from, [&] { return received.done; });
}

NetworkSpeed NetworkProbe::measureRing(const std::vector<int>& ring, int rank) {
  const auto place = static_cast<std::size_t>(std::ranges::find(ring, rank) - ring.begin());
  const std::size_t hosts = ring.size();
  const int next = ring[(place + 1) % hosts], previous = ring[(place + hosts - 1) % hosts];
  NetworkSpeed speed;
  speed.latency = exchange(next, previous, 8);  // makes the connections
  for (int i = 0; i < shortRounds; ++i) speed.latency = std::min(speed.latency, exchange(next, previous, 8));
  exchange(next, previous, warmBytes);
  double took = exchange(next, previous, longBytes);
  for (int i = 1; i < longRounds; ++i) took = std::min(took, exchange(next, previous, longBytes));
  speed.bytesPerSecond = static_cast<double>(longBytes) / std::max(took - speed.latency, took / 10);
  return speed;
}

NetworkProbe::Latency NetworkProbe::measureLatency(int partner, bool first) {
  std::vector<double> latencies;
  for (int i = 0; i <= shortRoundsOfPairs; ++i) {
    const double start = probeNow();
    if (first) send(partner, 8);
    receive(partner, 8);
    if (!first) send(partner, 8);
    if (i > 0) latencies.push_back((probeNow() - start) / 2);
  }
  std::ranges::sort(latencies);
  return {latencies.front(), latencies[latencies.size() / 2] / latencies.front()};
}

double NetworkProbe::measureBandwidth(int partner, bool sends, bool receives, std::size_t bytes) {
  const std::size_t pieces = std::max<std::size_t>(1, bytes / probePieceBytes);
  reserve(pieces * probePieceBytes);
  exchange(partner, partner, 8);  // the clock runs from when both are here
  const double start = probeNow();
  SteadyRate rate(pieces, warmBytes / probePieceBytes);
  std::vector<NetworkRequest> received(receives ? pieces : 0), sent(sends ? pieces : 0);
  const Cancelling cancelling(transport_);
  for (std::size_t i = 0; i < received.size(); ++i)
    transport_.receive(partner, nextTag(received_, partner), in_.data() + i * probePieceBytes, probePieceBytes,
                       received[i]);
  for (std::size_t i = 0; i < sent.size(); ++i)
    transport_.send(partner, nextTag(sent_, partner), out_.data() + i * probePieceBytes, probePieceBytes, sent[i]);
  until(partner, [&] {
    const auto here = static_cast<std::size_t>(std::ranges::count_if(received, &NetworkRequest::done));
    rate.saw(here, probeNow() - start);
    return here == received.size();
  });
  until(partner, [&] { return std::ranges::all_of(sent, &NetworkRequest::done) && transport_.drain(); });
  return receives ? rate.perSecond() * probePieceBytes : 0;
}

NetworkSpeed slowestOf(const std::vector<NetworkSpeed>& views) {
  NetworkSpeed slowest = views.front();
  for (const NetworkSpeed& view : views) {
    slowest.latency = std::max(slowest.latency, view.latency);
    slowest.bytesPerSecond = std::min(slowest.bytesPerSecond, view.bytesPerSecond);
  }
  return slowest;
}

double fastestOf(const std::vector<NetworkSpeed>& views) {
  double fastest = 0;
  for (const NetworkSpeed& view : views)
    if (view.bytesPerSecond < noView.bytesPerSecond) fastest = std::max(fastest, view.bytesPerSecond);
  return fastest;
}

}  // namespace tacc

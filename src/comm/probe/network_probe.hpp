// Measures the network when a communicator is formed, among one rank of every host: the ring of all, and pairs.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "comm/bootstrap/wait.hpp"
#include "selection/cost/network_speed.hpp"
#include "transports/network_transport.hpp"

namespace tacc {

/// Throws taccTimeout when a rank does not answer in time, and what the transport throws. What is measured is this
/// rank's own view.
class NetworkProbe {
 public:
  /// `seconds`: for all that is measured. `check` is called again and again while it waits; what it throws ends that.
  NetworkProbe(NetworkTransport& transport, double seconds, std::function<void()> check)
      : transport_(transport), deadline_(seconds), check_(std::move(check)) {}

  /// Collective over `ring`, ranks of different hosts, `rank` among them: all send to the next and receive from the one
  /// before at the same time, as a ring does.
  NetworkSpeed measureRing(const std::vector<int>& ring, int rank);

  /// Times of short messages between this rank and its partner. `first`: this rank begins.
  struct Latency {
    double seconds = 0;  // one way, the least
    double spread = 0;   // the median over the least; about 1 where nothing disturbs them
  };
  Latency measureLatency(int partner, bool first);

  /// Bytes/s of one long message from the first of a pair to its second, or of one each way; 0 where this rank receives
  /// none. Both begin at once, after a short message each way.
  double measureBandwidth(int partner, bool sends, bool receives, std::size_t bytes);

 private:
  double exchange(int next, int previous, std::size_t bytes);
  void send(int to, std::size_t bytes);
  void receive(int from, std::size_t bytes);
  template <class IsDone>
  void until(int awaited, const IsDone& isDone);
  void reserve(std::size_t bytes);

  NetworkTransport& transport_;
  Deadline deadline_;
  std::function<void()> check_;
  // Tags that no call uses: those of calls count up from 0. Both ends of a pair have counted the same messages.
  std::vector<std::uint32_t> sent_, received_;  // by rank
  std::vector<std::byte> out_, in_;
};

/// The view of a rank that did not measure.
inline constexpr NetworkSpeed noView{0, 1e99};

/// The slowest of all views, so that all ranks go by the same.
NetworkSpeed slowestOf(const std::vector<NetworkSpeed>& views);
/// The highest bandwidth that one of them has seen, bytes/s.
double fastestOf(const std::vector<NetworkSpeed>& views);

}  // namespace tacc

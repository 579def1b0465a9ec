// Whether what UCX has taken for a peer has left this process.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "transports/ucx/ucx_library.hpp"

namespace tacc {

/// UCX's flush says it too, but does more: it is done when the peers have answered, and over TCP they answer when they
/// progress this very worker. A rank that waited for that at the end of a call would wait for ranks that have left the
/// same call, and are in another one or compute.
///
/// So a flush is only asked whether there is anything to do. Where there is, every peer that was sent something is sent
/// an empty active message that must go at once or not at all: UCX keeps the order of what it sends, so it goes when
/// all before it has gone.
class UcxDrain {
 public:
  UcxDrain() = default;
  UcxDrain(const UcxDrain&) = delete;
  UcxDrain& operator=(const UcxDrain&) = delete;

  /// The worker's context needs UCP_FEATURE_AM. Its empty active messages are dropped from now on.
  ucs_status_t start(ucp_worker_h worker);
  void setPeers(std::size_t count) { isSent_.assign(count, false); }
  /// Something is to be sent to `peer`.
  void add(std::size_t peer, ucp_ep_h endpoint) {
    if (isSent_[peer]) return;
    isSent_[peer] = true;
    sent_.push_back({peer, endpoint});
  }
  /// True when all that was sent to the peers that were added is with the kernel, or the network card. Else: progress
  /// the worker and ask again. What was sent through a connection that has failed has gone.
  bool isDone();
  /// The flush under way, or null; from now on its completion is the caller's.
  ucs_status_ptr_t release() noexcept { return std::exchange(flush_, nullptr); }

 private:
  struct Sent {
    std::size_t peer;
    ucp_ep_h endpoint;
  };
  ucp_worker_h worker_ = nullptr;
  std::vector<Sent> sent_;  // to whom, and not known to have gone
  std::vector<bool> isSent_;
  ucs_status_ptr_t flush_ = nullptr;
};

}  // namespace tacc

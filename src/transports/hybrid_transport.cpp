#include "transports/hybrid_transport.hpp"

#include <utility>

#include "transports/shm/wake_socket.hpp"

namespace tacc {
namespace {

/// A look at the network is a system call, one at the host's messages is not; but others may need what this rank has
/// for them.
constexpr int looksPerNetworkLook = 8;

}  // namespace

HybridTransport::HybridTransport(std::unique_ptr<NetworkTransport> network, std::unique_ptr<LocalMessages> local,
                                 const std::vector<int>& members, int ranks)
    : network_(std::move(network)), local_(std::move(local)), localOf_(static_cast<std::size_t>(ranks), -1) {
  for (std::size_t n = 0; n < members.size(); ++n) localOf_[static_cast<std::size_t>(members[n])] = static_cast<int>(n);
}

void HybridTransport::send(int peer, std::uint32_t tag, const void* data, std::size_t bytes, NetworkRequest& request) {
  if (const int local = localOf(peer); local >= 0) return local_->send(local, tag, data, bytes, request);
  network_->send(peer, tag, data, bytes, request);
}

void HybridTransport::receive(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) {
  if (const int local = localOf(peer); local >= 0) return local_->receive(local, tag, data, capacity, request);
  network_->receive(peer, tag, data, capacity, request);
}

void HybridTransport::receiveInPlace(int peer, std::uint32_t tag, void* data, std::size_t capacity,
                                     NetworkRequest& request) {
  if (const int local = localOf(peer); local >= 0) return local_->receiveInPlace(local, tag, data, capacity, request);
  // What the network's transport notes there is no slot of the host's.
  request.place = static_cast<const std::byte*>(data);
  network_->receive(peer, tag, data, capacity, request);
}

void HybridTransport::expect(int peer) {
  expectsLocal_ = peer >= 0 && localOf(peer) >= 0;
  network_->expect(expectsLocal_ ? -1 : peer);
}

bool HybridTransport::progress() {
  const bool moved = local_->progress();
  if (moved && expectsLocal_) return true;
  if (expectsLocal_ && ++looks_ % looksPerNetworkLook != 0) return false;
  return network_->progress() || moved;
}

int HybridTransport::descriptor() const { return wakeDescriptor() < 0 ? -1 : network_->descriptor(); }

int HybridTransport::localDescriptor() const { return wakeDescriptor(); }

void HybridTransport::cancelReceives() noexcept {
  local_->cancelReceives();
  network_->cancelReceives();
}

}  // namespace tacc

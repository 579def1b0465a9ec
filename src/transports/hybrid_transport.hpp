// A network transport whose ranks of the own host are reached through shared memory: a plan over all ranks is run edge
// by edge with what each edge is.
#pragma once

#include <memory>
#include <vector>

#include "transports/network_transport.hpp"
#include "transports/shm/local_messages.hpp"

namespace tacc {

class HybridTransport final : public NetworkTransport {
 public:
  /// `members[n]`: which rank of the communicator is rank n of the node. `local`: of this rank there. `network` knows
  /// its peers.
  HybridTransport(std::unique_ptr<NetworkTransport> network, std::unique_ptr<LocalMessages> local,
                  const std::vector<int>& members, int ranks);

  std::vector<std::byte> address() const override { return network_->address(); }
  void setPeers(std::vector<std::vector<std::byte>> addresses) override { network_->setPeers(std::move(addresses)); }

  void send(int peer, std::uint32_t tag, const void* data, std::size_t bytes, NetworkRequest& request) override;
  void receive(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) override;
  void receiveInPlace(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) override;
  void release(NetworkRequest& request) override { local_->release(request); }

  bool progress() override;
  void expect(int peer) override;
  bool drain() override { return local_->drain() && network_->drain(); }
  /// -1 also where this thread cannot be woken by the ranks of its host.
  int descriptor() const override;
  int localDescriptor() const override;
  bool arm() override { return local_->arm() && network_->arm(); }

  std::size_t pieceBytes() const override { return network_->pieceBytes(); }
  bool hasFabric() const override { return network_->hasFabric(); }
  void cancelReceives() noexcept override;
  std::uint32_t nextChannel(std::span<const int> ranks) const override { return network_->nextChannel(ranks); }
  std::unique_ptr<NetworkTransport> openChannel(std::uint32_t number, int rank, const std::vector<int>& ranks,
                                                double silenceSeconds) override {
    return network_->openChannel(number, rank, ranks, silenceSeconds);
  }
  void onNews(const std::function<void()>& wake) override { network_->onNews(wake); }
  bool closesBrokenConnections() const override { return network_->closesBrokenConnections(); }
  std::vector<int> unreached() const override { return network_->unreached(); }
  std::string describe() const override { return network_->describe(); }

 private:
  int localOf(int peer) const noexcept { return localOf_[static_cast<std::size_t>(peer)]; }

  std::unique_ptr<NetworkTransport> network_;
  std::unique_ptr<LocalMessages> local_;
  std::vector<int> localOf_;   // -1: on another host
  bool expectsLocal_ = false;  // nothing can be done before a rank of the host has sent something
  int looks_ = 0;              // at the host's messages alone
};

}  // namespace tacc

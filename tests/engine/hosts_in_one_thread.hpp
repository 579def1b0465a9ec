// Ranks of a test in one thread, some of which share hosts: inside a host messages go through its memory, between hosts
// through a fake network.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fake_network.hpp"
#include "transports/hybrid_transport.hpp"
#include "transports/shm/cma.hpp"

namespace tacc::test {

class HostsInOneThread {
 public:
  /// `hostOf`: by rank. `reads`: ranks of a host may read each other's memory, if the kernel lets them.
  HostsInOneThread(FakeNetwork& network, const std::vector<int>& hostOf, bool reads) {
    const std::uint64_t value = 4711;
    reads = reads && probeCma(::getpid(), &value, value);
    std::vector<std::vector<int>> members(hostOf.size());
    for (std::size_t rank = 0; rank < hostOf.size(); ++rank)
      members[static_cast<std::size_t>(hostOf[rank])].push_back(static_cast<int>(rank));
    transports_.resize(hostOf.size());
    for (const std::vector<int>& host : members) {
      if (host.empty()) continue;
      const int ranks = static_cast<int>(host.size());
      const NodeGeometry geometry{ranks, pageBytes, pageBytes, pageBytes, true};
      memory_.emplace_back(std::calloc(NodeSegment::bytesFor(geometry) + pageBytes, 1));
      auto* const raw = static_cast<std::byte*>(memory_.back().get());
      const NodeSegment segment(raw + (pageBytes - reinterpret_cast<std::uintptr_t>(raw) % pageBytes), geometry);
      const std::vector<int> processes(host.size(), static_cast<int>(::getpid()));
      for (int local = 0; local < ranks; ++local) {
        const int rank = host[static_cast<std::size_t>(local)];
        waiters_.push_back(std::make_unique<Waiter>(segment, local, processes, nullptr, WaitPolicy{}, 0,
                                                    [] { return std::string("a test"); }));
        transports_[static_cast<std::size_t>(rank)] = std::make_unique<HybridTransport>(
            std::make_unique<Outside>(network.end(rank), hostOf, rank),
            std::make_unique<LocalMessages>(segment, local, *waiters_.back(), reads ? processes : std::vector<int>()),
            host, static_cast<int>(hostOf.size()));
      }
    }
  }

  HybridTransport& end(int rank) { return *transports_[static_cast<std::size_t>(rank)]; }

 private:
  /// What goes to other hosts, and nothing else.
  class Outside final : public NetworkTransport {
   public:
    Outside(NetworkTransport& network, std::vector<int> hostOf, int rank)
        : network_(network), hostOf_(std::move(hostOf)), rank_(rank) {}
    std::vector<std::byte> address() const override { return {}; }
    void setPeers(std::vector<std::vector<std::byte>>) override {}
    void send(int peer, std::uint32_t tag, const void* data, std::size_t bytes, NetworkRequest& request) override {
      check(peer);
      network_.send(peer, tag, data, bytes, request);
    }
    void receive(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) override {
      check(peer);
      network_.receive(peer, tag, data, capacity, request);
    }
    bool progress() override { return false; }
    int descriptor() const override { return -1; }
    bool arm() override { return true; }
    std::string describe() const override { return "fake"; }

   private:
    void check(int peer) const {
      EXPECT_NE(hostOf_[static_cast<std::size_t>(peer)], hostOf_[static_cast<std::size_t>(rank_)])
          << "a message inside a host goes over the network";
    }
    NetworkTransport& network_;
    std::vector<int> hostOf_;
    int rank_;
  };

  struct Freed {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::vector<std::unique_ptr<void, Freed>> memory_;
  std::vector<std::unique_ptr<Waiter>> waiters_;
  std::vector<std::unique_ptr<HybridTransport>> transports_;
};

}  // namespace tacc::test

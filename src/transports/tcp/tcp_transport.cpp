// TCP without a library in between: one connection between two ranks, made when the first of them sends something.
#include <utility>

#include "core/error.hpp"
#include "transports/interfaces.hpp"
#include "transports/tcp/tcp_link.hpp"
#include "transports/transport_functions.hpp"

namespace tacc {
namespace {

/// One channel of connections that it may share with others.
class TcpTransport final : public NetworkTransport {
 public:
  TcpTransport(std::shared_ptr<TcpLink> link, TcpChannel& channel) : link_(std::move(link)), channel_(channel) {}
  ~TcpTransport() override {
    const auto lock = link_->lock();
    link_->close(channel_);
  }

  std::vector<std::byte> address() const override { return link_->address(); }
  void setPeers(std::vector<std::vector<std::byte>> addresses) override { link_->setPeers(addresses); }
  void send(int peer, std::uint32_t tag, const void* data, std::size_t bytes, NetworkRequest& request) override {
    const auto lock = link_->lock();
    link_->send(channel_, at(peer), tag, data, bytes, request);
  }
  void receive(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) override {
    const auto lock = link_->lock();
    link_->receive(channel_, at(peer), tag, data, capacity, request);
  }
  void expect(int peer) override { expected_ = peer < 0 ? -1 : at(peer); }
  bool progress() override {
    const auto lock = link_->lock();
    return link_->progress(channel_, expected_);
  }
  bool drain() override {
    const auto lock = link_->lock();
    return link_->drain(channel_);
  }
  int descriptor() const override { return link_->descriptor(); }
  bool arm() override {
    const auto lock = link_->lock();
    return !channel_.hasNews && link_->arm();
  }
  void cancelReceives() noexcept override {
    const auto lock = link_->lock();
    link_->abandon(channel_);
  }
  bool closesBrokenConnections() const override { return true; }
  std::vector<int> unreached() const override {
    const auto lock = link_->lock();
    return link_->unreached(channel_);
  }
  std::string describe() const override {
    return channel_.number == 0
               ? link_->describe()
               : fmt::format("{}, channel {} of shared connections", link_->describe(), channel_.number);
  }

  std::uint32_t nextChannel(std::span<const int> ranks) const override {
    const auto lock = link_->lock();
    return link_->nextChannel(own(ranks));
  }
  std::unique_ptr<NetworkTransport> openChannel(std::uint32_t number, int rank, const std::vector<int>& ranks,
                                                double silenceSeconds) override {
    const auto lock = link_->lock();
    std::vector<int> members = own(ranks);
    const std::uint32_t least = link_->nextChannel(members);
    if (least == 0 || number < least) return nullptr;
    TcpChannel& made = link_->open(number, rank, std::move(members));
    link_->tolerateSilence(silenceSeconds);
    return std::make_unique<TcpTransport>(link_, made);
  }
  void onNews(const std::function<void()>& wake) override {
    const auto lock = link_->lock();
    channel_.wake = wake;
  }

 private:
  /// Of the connections.
  int at(int peer) const { return channel_.ranks[static_cast<std::size_t>(peer)]; }
  std::vector<int> own(std::span<const int> ranks) const {
    std::vector<int> result;
    for (const int rank : ranks) result.push_back(at(rank));
    return result;
  }

  std::shared_ptr<TcpLink> link_;  // unlocked before it goes
  TcpChannel& channel_;
  int expected_ = -1;
};

}  // namespace

std::unique_ptr<NetworkTransport> makeTcpTransport(const NetworkOptions& options) {
  auto link = std::make_shared<TcpLink>(options);
  std::vector<int> all;
  for (int rank = 0; rank < options.ranks; ++rank) all.push_back(rank);
  TcpChannel& first = link->open(0, options.rank, std::move(all));
  return std::make_unique<TcpTransport>(std::move(link), first);
}

std::string describeTcp() {
  try {
    return fmt::format("sockets of the kernel: {}", describeAddresses(chooseAddresses(interfaceAddresses(), {})));
  } catch (const Error& error) {
    return fmt::format("cannot be used: {}", error.what());
  }
}

}  // namespace tacc

// Communicators that share TCP connections: each has a numbered channel, and every message says of which it is.
//
// A number is never used twice between two ranks, and a channel is open on all of its ranks before the first message is
// sent. So what comes for a channel that is not open is of one that has been closed, and is dropped. So is what comes
// for one that is over: after an Error its rank receives nothing more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "transports/network_transport.hpp"

namespace tacc {

struct TcpChannel {
  std::uint32_t number = 0;
  int rank = 0;            // this one's
  std::vector<int> ranks;  // by rank of the channel: of those who have the connections
  std::optional<Error> error;
  bool isOver = false;                 // nothing is received any more
  int lost = -1;                       // rank of the connections that is an Error for this channel
  bool hasNews = false;                // for its thread: something is done, or an Error
  bool isCalled = false;               // for these
  std::function<void()> wake = [] {};  // calls its thread

  void complete(NetworkRequest& request) noexcept {
    request.done = true;
    hasNews = true;
  }
  void fail(Error found) {
    if (!error) error.emplace(std::move(found));
    hasNews = true;
  }
  /// The channel's number of a rank of the connections. Slow: for messages.
  int rankOf(int peer) const noexcept { return static_cast<int>(std::ranges::find(ranks, peer) - ranks.begin()); }
};

class TcpChannels {
 public:
  /// The number of the channel in which ranks tell each other about channels.
  static constexpr std::uint32_t signals = ~std::uint32_t{0};

  /// The open channel of that number; null: there is none, or it is over.
  TcpChannel* find(std::uint32_t number) const noexcept {
    for (const auto& one : open_)
      if (one->number == number) return one->isOver ? nullptr : one.get();
    return nullptr;
  }
  std::uint32_t next() const noexcept { return next_; }
  /// `number`: next() or more.
  TcpChannel& open(std::uint32_t number, int rank, std::vector<int> ranks) {
    open_.push_back(std::make_unique<TcpChannel>());
    TcpChannel& made = *open_.back();
    made.number = number;
    made.rank = rank;
    made.ranks = std::move(ranks);
    next_ = number + 1;
    return made;
  }
  void close(const TcpChannel& channel) noexcept {
    std::erase_if(open_, [&](const auto& one) { return one.get() == &channel; });
  }
  std::span<const std::unique_ptr<TcpChannel>> all() const noexcept { return open_; }

 private:
  std::vector<std::unique_ptr<TcpChannel>> open_;  // few
  std::uint32_t next_ = 0;
};

}  // namespace tacc

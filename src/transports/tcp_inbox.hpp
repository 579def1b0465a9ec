// What comes from one rank over TCP: finds for every message the receive that was posted for its tag, or keeps the
// message until there is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "transports/network_transport.hpp"

namespace tacc {

class TcpInbox {
 public:
  /// `rank`, `peer`: for messages.
  TcpInbox(int rank, int peer) noexcept : rank_(rank), peer_(peer) {}

  /// A receive. May be done at once; a message that has come in part goes on into `data`. Throws taccInvalidUsage when
  /// the message is longer than `capacity`, as begin() does.
  void post(std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request);

  /// The next message begins. landing() is then where its next bytes go, and landed() says that some are there; the
  /// message has ended when landing() is empty.
  void begin(std::uint32_t tag, std::size_t bytes);
  std::span<std::byte> landing() const noexcept { return {at_, left_}; }
  void landed(std::size_t bytes);

  /// Some receive is not done.
  bool isAwaited() const noexcept { return !posted_.empty() || request_ != nullptr; }
  /// Whether more is to be read: while somebody waits, which may be for what comes behind the messages that nobody
  /// expects yet; else until those fill the room for them, and then the sender has to wait.
  bool hasRoom() const noexcept { return isAwaited() || keptBytes_ < room; }

 private:
  static constexpr std::size_t room = std::size_t{8} << 20;
  struct Posted {
    std::uint32_t tag;
    std::byte* data;
    std::size_t capacity;
    NetworkRequest* request;
  };
  struct Kept {
    std::uint32_t tag;
    std::vector<std::byte> data;
  };

  void check(std::uint32_t tag, std::size_t bytes, std::size_t capacity) const;
  void finish();
  static void complete(NetworkRequest& request, std::size_t bytes) noexcept;

  int rank_;
  int peer_;
  std::vector<Posted> posted_;  // few at a time: searched in order
  std::deque<Kept> kept_;       // nobody expects them yet; the last may be the one that is coming
  std::size_t keptBytes_ = 0;
  // The message that is coming.
  std::byte* at_ = nullptr;
  std::size_t left_ = 0;
  std::size_t bytes_ = 0;
  bool isKept_ = false;                // it goes into kept_.back()
  NetworkRequest* request_ = nullptr;  // else whose it is
};

}  // namespace tacc

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
  TcpInbox(int rank, int peer) : rank_(rank), peer_(peer) {}

  /// A receive. May be done at once; a message that has come in part goes on into `data`. Throws taccInvalidUsage when
  /// the message is longer than `capacity`, as begin() does.
  void post(std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request);

  /// The next message begins. landing() is then where its next bytes go, or as many of them as there is memory for, and
  /// landed() says that some are there; the message has ended when landing() is empty. A message that nobody expects
  /// yet takes memory as it arrives, whatever length it claims.
  void begin(std::uint32_t tag, std::size_t bytes);
  std::span<std::byte> landing() const noexcept { return {at_, room_}; }
  void landed(std::size_t bytes);

  /// What came has not been sent by the peer, or was changed on its way.
  [[noreturn]] void failForged() const;

  /// Some receive is not done.
  bool isAwaited() const noexcept { return !posted_.empty() || request_ != nullptr; }
  /// Whether more is to be read: while somebody waits, which may be for what comes behind the messages that nobody
  /// expects yet; else until those fill the room for them, and then the sender has to wait.
  bool hasRoom() const noexcept { return isAwaited() || keptBytes_ < keptLimit; }

 private:
  static constexpr std::size_t keptLimit = std::size_t{8} << 20;
  static constexpr std::size_t firstMemory = std::size_t{64} << 10;  // of a message that is kept; doubled when full
  struct Posted {
    std::uint32_t tag;
    std::byte* data;
    std::size_t capacity;
    NetworkRequest* request;
  };
  struct Kept {
    std::uint32_t tag;
    std::size_t bytes;
    std::vector<std::byte> data;  // shorter than that while it is coming
  };

  void check(std::uint32_t tag, std::size_t bytes, std::size_t capacity) const;
  void finish();
  void makeRoom(std::size_t most);
  static void complete(NetworkRequest& request, std::size_t bytes) noexcept;

  int rank_;
  int peer_;
  std::vector<Posted> posted_;  // few at a time: searched in order
  std::deque<Kept> kept_;       // nobody expects them yet; the last may be the one that is coming
  std::size_t keptBytes_ = 0;   // as they claim
  // The message that is coming.
  std::byte* at_ = nullptr;
  std::size_t left_ = 0;
  std::size_t room_ = 0;  // at `at_`: all that is left, unless it is kept
  std::size_t bytes_ = 0;
  bool isKept_ = false;                // it goes into kept_.back()
  NetworkRequest* request_ = nullptr;  // else whose it is
};

}  // namespace tacc

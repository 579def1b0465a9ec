// What comes from one rank over TCP: finds for every message the receive that its channel has posted for its tag, or
// keeps the message until there is one.
//
// A rank that runs ahead has to wait when the messages that nobody expects yet fill the room for them: alone on its
// connection by not being read from, and where channels share it by a word (TcpPause), so that it holds back one
// channel and not the others. It goes on when that channel's rank waits for something of it, which may lie behind. What
// is kept then is bounded by what has arrived, never by what a message says of its length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "core/loose_queue.hpp"
#include "transports/network_transport.hpp"
#include "transports/tcp/tcp_channels.hpp"

namespace tacc {

/// For the other rank: it is to send nothing more of a channel, or to go on.
struct TcpPause {
  std::uint32_t channel;
  bool isOn;
};

class TcpInbox {
 public:
  /// Bytes of messages that nobody expects yet, with `keptOverhead` for each, at which the sender has to wait.
  static constexpr std::size_t keptLimit = std::size_t{8} << 20;
  static constexpr std::size_t keptOverhead = 64;

  /// `peer`: of those who have the connections; for messages.
  explicit TcpInbox(int peer) : peer_(peer) {}

  /// A receive. May be done at once; a message that has come in part goes on into `data`. Throws taccInvalidUsage when
  /// the message is longer than `capacity`.
  void post(TcpChannel& channel, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request);

  /// The next message begins, of a channel, or of none that is open. landing() is then where its next bytes go, or as
  /// many of them as there is memory for, and landed() says that some are there; the message has ended when landing()
  /// is empty. A message that nobody expects yet takes memory as it arrives, whatever length it claims. One that is
  /// longer than its receive is an Error of its channel. Throws taccRemoteError when no message can be so long.
  void begin(TcpChannel* channel, std::uint32_t tag, std::size_t bytes);
  std::span<std::byte> landing() const noexcept { return {at_, room_}; }
  void landed(std::size_t bytes);

  /// Nothing is written any more into what the channel has posted, and nothing of it is kept. True: the other rank was
  /// told to wait, and is to be told that it may go on.
  bool close(const TcpChannel& channel) noexcept;

  /// Some receive is not done.
  bool isAwaited() const noexcept { return !posted_.empty() || request_ != nullptr; }
  bool isAwaitedBy(const TcpChannel& channel) const noexcept;
  /// Whether more is to be read: while somebody waits, which may be for what comes behind the messages that nobody
  /// expects yet; else until those fill the room for them, and then the sender has to wait.
  bool hasRoom() const noexcept { return isShared_ || isAwaited() || keptBytes_ < keptLimit; }

  /// From now on senders are told to wait.
  void share() noexcept { isShared_ = true; }
  /// What is to be told to the other rank next.
  std::optional<TcpPause> takePause() noexcept;

  /// Bytes of memory that kept messages take, for tests.
  std::size_t memory() const noexcept;

 private:
  static constexpr std::size_t firstMemory = std::size_t{64} << 10;  // of a message that is kept; doubled when full
  static constexpr std::size_t sinkBytes = 256;
  enum class Target : std::uint8_t { posted, kept, nowhere };
  struct Posted {
    TcpChannel* channel;
    std::uint32_t tag;
    std::byte* data;
    std::size_t capacity;
    NetworkRequest* request;
  };
  struct Kept {
    TcpChannel* channel;
    std::uint32_t tag;
    std::size_t bytes;
    std::vector<std::byte> data;  // shorter than that while it is coming
    std::size_t weight() const noexcept { return bytes + keptOverhead; }
  };
  struct Pausing {
    TcpChannel* channel;
    bool isOn;    // as it has to be
    bool isTold;  // as the other rank knows
  };

  Error tooLong(const TcpChannel& channel, std::uint32_t tag, std::size_t bytes, std::size_t capacity) const;
  std::size_t keptOf(const TcpChannel& channel) const noexcept;
  void setPause(TcpChannel& channel);
  void finish();
  void makeRoom(std::size_t most);
  void discard() noexcept;

  int peer_;
  bool isShared_ = false;
  LooseQueue<Posted> posted_;              // searched in order: messages come about as they were posted
  std::deque<Kept> kept_;                  // nobody expects them yet; the last may be the one that is coming
  std::size_t keptBytes_ = 0;              // their weight, with the lengths that they claim
  std::vector<Pausing> pausing_;           // of channels that were ever told to wait
  std::array<std::byte, sinkBytes> sink_;  // for what nobody wants; most of that is dropped where it was read
  // The message that is coming.
  std::byte* at_ = nullptr;
  std::size_t left_ = 0;
  std::size_t room_ = 0;  // at `at_`
  std::size_t bytes_ = 0;
  Target target_ = Target::nowhere;
  TcpChannel* channel_ = nullptr;      // posted
  NetworkRequest* request_ = nullptr;  // posted
};

}  // namespace tacc

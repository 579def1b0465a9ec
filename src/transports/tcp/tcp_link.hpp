// A rank's TCP connections to the others, which one communicator has for itself, or several share.
//
// Both ranks of a pair may connect at the same time. The connection of the lower rank is the one that stays.
//
// What happens to a connection is an Error for the channels that have a message under way with that rank, or will have,
// and for no other. Such an Error waits for the channel's own thread, whichever thread finds it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "transports/interfaces.hpp"
#include "transports/network_transport.hpp"
#include "transports/tcp/tcp_attempt.hpp"
#include "transports/tcp/tcp_channels.hpp"
#include "transports/tcp/tcp_credentials.hpp"
#include "transports/tcp/tcp_inbox.hpp"
#include "transports/tcp/tcp_stream.hpp"
#include "transports/tcp/tcp_visitors.hpp"

namespace tacc {

/// Each call for one thread at a time, by lock(). Ranks are those of the connections.
class TcpLink {
 public:
  explicit TcpLink(const NetworkOptions& options);
  ~TcpLink();
  TcpLink(const TcpLink&) = delete;
  TcpLink& operator=(const TcpLink&) = delete;

  /// Locks nothing while there has been no second channel: its rank has one thread at a time.
  std::unique_lock<std::mutex> lock() {
    return isShared_.load(std::memory_order_relaxed) ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }

  std::vector<std::byte> address() const;
  void setPeers(const std::vector<std::vector<std::byte>>& addresses);
  std::string describe() const;
  int descriptor() const { return events_.get(); }

  /// 0 where a connection to one of these ranks has broken, or there are no more numbers.
  std::uint32_t nextChannel(const std::vector<int>& ranks) const;
  /// The first channel, or one more. `number`: nextChannel() or more.
  TcpChannel& open(std::uint32_t number, int rank, std::vector<int> ranks);
  /// Nothing that the channel has posted is touched any more. Ends the channel.
  void close(TcpChannel& channel) noexcept;
  /// The same, but the channel stays, with nothing under way; what still comes for it is dropped.
  void abandon(TcpChannel& channel) noexcept;
  /// A host may be silent for so long, unless it may for longer.
  void tolerateSilence(double seconds);

  void send(TcpChannel& channel, int peer, std::uint32_t tag, const void* data, std::size_t bytes,
            NetworkRequest& request);
  void receive(TcpChannel& channel, int peer, std::uint32_t tag, void* data, std::size_t capacity,
               NetworkRequest& request);
  /// Messages of all channels. `expected`: as in NetworkTransport, or -1. Calls the threads of those that have news.
  bool progress(TcpChannel& channel, int expected);
  bool drain(const TcpChannel& channel) const;
  /// As in NetworkTransport: ranks of the channel.
  std::vector<int> unreached(const TcpChannel& channel) const;
  bool arm();

 private:
  enum class State : std::uint8_t {
    none,
    connecting,  // `attempt`
    expected,    // the other rank connects
    open,
    lost,
  };
  enum class Loss : std::uint8_t {
    ended,
    unreachable,
    forged,
    noMemory,  // here; the other rank may be well
  };
  struct Peer {
    explicit Peer(int peer) : inbox(peer) {}

    std::vector<InetAddress> addresses;
    State state = State::none;
    std::unique_ptr<TcpAttempt> attempt;
    std::uint32_t events = 0;  // that epoll looks for
    Loss loss = Loss::ended;
    int error = 0;        // errno of a connection that has ended
    std::string problem;  // otherwise
    TcpInbox inbox;
    TcpStream stream;
    std::size_t unheard = 0;  // bytes that were sent since the last look at what comes from it
  };
  enum class Source : std::uint32_t { listener, visitor, attempt, stream };

  Peer& at(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& at(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }
  void watch(int operation, int fd, std::uint32_t events, Source source, int index);
  void update(int rank);
  void lookBack(TcpChannel& channel, int rank, std::size_t bytes);
  void tellPauses(Peer& peer);
  void sendNow(int rank, const TcpPause& pause);
  void connect(int rank);
  void follow(int rank, TcpAttempt::Outcome outcome);
  void endAttempt(int rank);
  void acceptSome();
  void listenAgain(std::chrono::steady_clock::time_point now);
  void onGuest(TcpVisitors::Guest guest);
  void adopt(int rank, FileDescriptor socket, const LinkKeys& keys);
  bool onStream(int rank, std::uint32_t events);
  bool moveSome(int expected);
  void acknowledgeInTime(bool moved);
  void checkDeadlines();
  void lose(int rank, int error) noexcept;
  void loseForMemory(int rank) noexcept;
  void throwErrorOf(const TcpChannel& channel) const;
  [[noreturn]] void failLost(const TcpChannel& channel, int rank) const;
  void wakeAll() noexcept;
  void callOthers(TcpChannel& own) noexcept;

  std::mutex mutex_;
  std::atomic<bool> isShared_{false};  // set by the thread of the only channel that there is
  TcpChannels channels_;
  int rank_;
  bool encrypts_;
  double silence_;
  std::vector<InterfaceAddress> own_;
  FileDescriptor listener_;
  FileDescriptor events_;
  TcpCredentials credentials_;
  TcpVisitors visitors_;
  std::optional<std::chrono::steady_clock::time_point> deafUntil_;  // the listener is not looked at
  std::chrono::steady_clock::time_point nextShortageLog_{};
  std::vector<Peer> peers_;
  std::vector<int> attempts_;  // peers that one is made to
  int latest_ = 0;             // of which a message was asked for last
  int looks_ = 0;              // at its connection alone
  std::uint64_t reads_ = 0;
  std::vector<int> owed_;  // peers whose streams are owing, or were
  int fruitless_ = 0;      // looks since something came
};

}  // namespace tacc

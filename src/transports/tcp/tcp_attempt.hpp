// A rank's attempt to get a connection to another one: through its addresses, and through the greeting
// (tcp_greeting.hpp), until that rank takes the connection or refuses it for another one.
//
// A connection that the other end closes in the middle of the greeting may have been pushed out by strangers: it is
// made again after a short pause. If the other rank has ended, nobody listens there any more, and that ends the
// attempt. Where there is no route to an address, as while a link is down, all are tried again for 3 s.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "transports/file_descriptor.hpp"
#include "transports/inet_address.hpp"
#include "transports/tcp/tcp_credentials.hpp"
#include "transports/tcp/tcp_greeting.hpp"

namespace tacc {

class TcpAttempt {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Outcome : std::uint8_t {
    pending,
    taken,        // socket() is a connection to that rank
    refused,      // the other rank has a connection, or makes one
    unreachable,  // problem() says why
  };

  TcpAttempt(TcpCredentials& credentials, int peer, std::vector<InetAddress> addresses)
      : credentials_(credentials), peer_(peer), addresses_(std::move(addresses)) {}

  Outcome begin();
  /// Its descriptor is ready.
  Outcome advance();
  /// Something is due by the clock: onDue() is to be called.
  bool isDue(Clock::time_point now) const noexcept { return now >= deadline_; }
  Outcome onDue();

  /// Which descriptor to watch, and whether for reading or for writing; -1: none now.
  int descriptor() const noexcept { return socket_.get(); }
  bool isConnecting() const noexcept { return stage_ == Stage::connecting; }
  /// Whether the descriptor is another one than when this was asked last.
  bool isRenewed() noexcept { return std::exchange(isRenewed_, false); }

  FileDescriptor takeSocket() noexcept { return std::move(socket_); }
  /// The keys of a connection that was taken.
  LinkKeys keys() const { return linkKeys(*credentials_.keyWith(peer_), challenge_, hello_, true); }
  const std::string& problem() const noexcept { return problem_; }
  /// "192.0.2.2:4711, 198.51.100.2:4711", for messages.
  std::string describeAddresses() const;

 private:
  enum class Stage : std::uint8_t {
    connecting,  // to an address
    greeting,    // the challenge is due
    proving,     // the answer is
    pausing,     // before it begins again
  };

  void turnToNext() noexcept { address_ = (address_ + 1) % addresses_.size(); }
  Outcome tryAddresses();
  Outcome giveUpAddress();
  Outcome giveUpAddress(int code);
  Outcome giveUpStranger();
  Outcome beginAgain();
  Outcome pause();
  /// Why an address could not be reached: an errno.
  void note(int code);
  Outcome readChallenge();
  Outcome readAnswer();
  /// Reads on until `bytes` of `data` are there; pending, or taken: they are.
  Outcome read(void* data, std::size_t bytes);

  TcpCredentials& credentials_;
  int peer_;
  std::vector<InetAddress> addresses_;
  std::size_t address_ = 0;                                     // that is tried
  std::size_t failed_ = 0;                                      // addresses in a row; all: the rank is unreachable
  bool hasNoRoute_ = false;                                     // to one of these
  Clock::time_point routeDeadline_ = Clock::time_point::max();  // until when that may pass
  Stage stage_ = Stage::connecting;
  FileDescriptor socket_;
  Clock::time_point deadline_{};
  std::chrono::milliseconds pause_{};
  TcpChallenge challenge_;
  TcpHello hello_;
  TcpAnswer answer_;
  bool isRenewed_ = false;
  std::size_t bytes_ = 0;  // of the challenge or the answer that have come
  std::string problem_;
};

}  // namespace tacc

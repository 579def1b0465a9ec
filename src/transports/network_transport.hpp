// How ranks on different hosts move bytes: the one interface of all network transports.
//
// Matching is by (peer, tag): every message between two ranks of a communicator has its own tag, so the order in
// which sends and receives are posted does not matter. Nothing here knows plans, types or collectives.
//
// A transport belongs to one rank of one communicator and is used by one thread at a time. It has no hidden thread:
// messages move inside progress(), and where the kernel or the network card moves them alone. Errors are thrown as
// Error and name the peer's rank; after one, only cancelReceives() and the destructor may be called.
//
// Transports may share connections (openChannel). Each is used by its own thread then, and whichever calls progress()
// moves the messages of all.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transports/keyed_hash.hpp"

struct taccTransport;

namespace tacc {

/// Whether a message is done. Another thread may find that out than the one that asks: what the message brought is then
/// there for the one that asks. The copy of a message that is not under way is of no message.
class DoneFlag {
 public:
  DoneFlag() = default;
  DoneFlag(const DoneFlag& other) noexcept : value_(other) {}
  DoneFlag& operator=(const DoneFlag& other) noexcept { return *this = static_cast<bool>(other); }
  DoneFlag& operator=(bool value) noexcept {
    value_.store(value, std::memory_order_release);
    return *this;
  }
  operator bool() const noexcept { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> value_{true};
};

/// A message under way. The caller owns it, and keeps it and its data in place until `done` or until the
/// transport is gone.
struct NetworkRequest {
  DoneFlag done;                     // not under way
  std::size_t bytes = 0;             // of a message that was received
  void* handle = nullptr;            // the transport's
  std::uint32_t slot = 0;            // the transport's
  const std::byte* place = nullptr;  // of a message that was received in place: where it lies
};

class NetworkTransport {
 public:
  NetworkTransport() = default;
  NetworkTransport(const NetworkTransport&) = delete;
  NetworkTransport& operator=(const NetworkTransport&) = delete;
  /// Cancels what is under way: afterwards no posted memory is touched any more. Does not wait for other ranks.
  /// What a peer has not yet received is lost with some kinds, so ranks leave together: each calls progress() until all
  /// have what was sent to them.
  virtual ~NetworkTransport() = default;

  /// What another rank needs to reach this one; at most 4 KiB, may differ in length between ranks.
  virtual std::vector<std::byte> address() const = 0;
  /// The addresses of all ranks, by rank; given once, before anything is sent. Connections are made at first use.
  virtual void setPeers(std::vector<std::vector<std::byte>> addresses) = 0;

  /// Starts a message of `bytes` (0 is fine). May be done at once. `peer` is another rank.
  virtual void send(int peer, std::uint32_t tag, const void* data, std::size_t bytes, NetworkRequest& request) = 0;
  /// Starts to receive the message of that tag, of at most `capacity` bytes. A longer one is an Error
  /// (taccInvalidUsage).
  virtual void receive(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) = 0;

  /// As receive(), and the message may stay where it arrived: once it is done it lies at `request.place`, which is
  /// `data` or the transport's, until release(). Every message that was received so is to be released, before another
  /// is received with its request.
  virtual void receiveInPlace(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request) {
    request.place = static_cast<const std::byte*>(data);
    receive(peer, tag, data, capacity, request);
  }
  virtual void release(NetworkRequest& /*request*/) {}

  /// Moves what can be moved without waiting. True when something happened.
  virtual bool progress() = 0;

  /// Nothing can be done before a message comes from `peer`; -1: from any. progress() may look there first.
  virtual void expect(int /*peer*/) {}

  /// True when all that was sent has left this process: a send is done when its data may be changed, and its last bytes
  /// may then still wait here. False: call progress() and ask again. To be called before one stops calling progress().
  /// Waits for no answer: peers that have what they wanted call nothing any more.
  virtual bool drain() { return true; }

  /// A descriptor for poll() that is readable when progress() has something to do, once arm() has returned true; -1:
  /// the transport cannot sleep, and a rank that waits calls progress() now and then.
  virtual int descriptor() const = 0;
  /// A second one, wakeDescriptor(), of those messages that do not come by the network; -1: there are none.
  virtual int localDescriptor() const { return -1; }
  /// Prepares for sleeping on the descriptors. False: something is there already, call progress().
  virtual bool arm() = 0;

  /// Into pieces of this number of bytes long messages of taccSend are cut. The same on all ranks that use this kind.
  virtual std::size_t pieceBytes() const { return std::size_t{1} << 20; }

  /// Whether it has found a network that is better than TCP.
  virtual bool hasFabric() const { return false; }

  /// After an Error: ends what may touch posted memory outside of the calls of this interface, where the program calls
  /// a library that it shares with the transport, or another thread moves the messages of transports that share their
  /// connections. A network card is stopped by the destructor alone.
  virtual void cancelReceives() noexcept {}

  /// The least number that a channel with these of its peers may have here; 0: connections of this kind cannot be
  /// shared, or one to them has broken. Thread safe.
  virtual std::uint32_t nextChannel(std::span<const int> /*ranks*/) const { return 0; }
  /// Another transport over the connections of this one, whose rank r is this one's rank ranks[r], and `rank` the one
  /// that makes it. It knows its peers. All must give the same number, and nobody may send before all have made
  /// theirs. Null where nextChannel() is beyond that number, or 0. Each of both may be destroyed first, and an Error of
  /// one is none of the other. Posted memory stays in place until cancelReceives() or the destructor has returned.
  /// `silenceSeconds` as in NetworkOptions: what is longest counts.
  virtual std::unique_ptr<NetworkTransport> openChannel(std::uint32_t /*number*/, int /*rank*/,
                                                        const std::vector<int>& /*ranks*/, double /*silenceSeconds*/) {
    return nullptr;
  }
  /// `wake` is called, in any thread, when another transport's progress() has brought something for this one, which may
  /// be asleep. It must not call a transport. To be set before anything is sent.
  virtual void onNews(const std::function<void()>& /*wake*/) {}

  /// Whether it can be destroyed when connections have broken, without harm to the process.
  virtual bool closesBrokenConnections() const { return hasFabric(); }

  /// Ranks to which something is sent again and again, and whose host confirms none of it: the network between loses
  /// it. Empty where the kind cannot tell. For who has waited long: a system call for each connection.
  virtual std::vector<int> unreached() const { return {}; }

  /// What carries messages on this machine, in words: e.g. "ucx 1.13.1 over tcp on eth0".
  virtual std::string describe() const = 0;
};

/// What a transport is made from.
struct NetworkOptions {
  int rank = 0;
  int ranks = 1;
  std::string interfaces;  // network interfaces to use, commas between; empty: the transport's own choice
  const taccTransport* plugin = nullptr;  // what the program brought (tacc/transport.h); used by the kind "mpi" alone
  Key secret{};                           // the job's; by it ranks know each other
  bool encrypts = false;                  // what is sent; only the kind "tcp" can
  double silenceSeconds = 20;             // of a host that is cut off, until its ranks are lost; "tcp" keeps to it
};

/// One kind of transport. The registry lists all of them in the agreed order of preference, also those that this build
/// lacks.
struct NetworkTransportKind {
  std::string_view name;     // as TACC_TRANSPORT takes it
  std::string_view summary;  // one sentence
  std::string_view library;  // what the build needs for it, as its Debian package is called; empty: nothing
  /// Null where this build lacks the library.
  std::unique_ptr<NetworkTransport> (*make)(const NetworkOptions& options);
  /// Version of the library and what it finds here, or why it cannot be used: for tacc_info. Null like `make`.
  std::string (*describe)();
};

std::span<const NetworkTransportKind> networkTransports();

}  // namespace tacc

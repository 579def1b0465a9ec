// Messages between the ranks of a node, for plans that go over several hosts: the same sends and receives as of a
// network (network_transport.hpp), through the node's segment.
//
//   short     in the line that announces it, one cache line that moves
//   longer    in a slot of the sender's, copied when it is sent; the receiver copies it out, or reads it there
//   long      where the kernel lets ranks read each other's memory, the receiver reads it at its place; else, or where
//             all slots are in use, it is announced, asked for when its receive is posted, and comes in pieces
//
// Nobody writes into another's buffers: receivers fetch. So a rank that is late, or fails, harms no memory of others,
// and one that reads what a failed sender has put to other use finds the failure on the error board before it believes
// it.
//
// It cannot deadlock over memory: a receiver takes lines out of their ring whether it expects them or not and keeps
// what they say; notices wait at their writer for room, and a rank that waits for one makes it; and of the slots some
// are for messages alone that were asked for, whose receivers empty them as they come. Nobody has to stay for what he
// has received: that a slot is empty again needs no room to be told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/loose_queue.hpp"
#include "transports/network_transport.hpp"
#include "transports/shm/node_segment.hpp"
#include "transports/shm/waiter.hpp"

namespace tacc {

class LocalMessages {
 public:
  /// `segment` has messages. `waiter` tells of errors, and ranks' names. `processes`: by rank, where process_vm_readv
  /// works between all of them; else empty.
  LocalMessages(const NodeSegment& segment, int rank, const Waiter& waiter, std::vector<int> processes);

  /// As of NetworkTransport; `peer` is a rank of the node. What is copied is done at once.
  void send(int peer, std::uint32_t tag, const void* data, std::size_t bytes, NetworkRequest& request);
  void receive(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request);
  void receiveInPlace(int peer, std::uint32_t tag, void* data, std::size_t capacity, NetworkRequest& request);
  void release(NetworkRequest& request);

  /// Looks at all peers' lines and notices. True when something happened.
  bool progress();
  /// True when all that peers wait for has been told; as of NetworkTransport.
  bool drain();
  /// Before the calling thread sleeps on wakeDescriptor() and calls forgetWakes() if it is readable: from now on peers
  /// that have something for it wake it. False when there is something already.
  bool arm();

  /// After an Error: no posted memory is written any more.
  void cancelReceives() noexcept;

 private:
  using Kind = MessageLine::Kind;
  enum class Notice : std::uint32_t { read, wanted };  // a message that is where it is; one that was announced

  struct Outgoing {  // a message that waits for a line, or that the receiver fetches
    int peer;
    std::uint32_t tag;
    const std::byte* data;
    std::size_t bytes;
    std::size_t sent;         // of one in pieces
    NetworkRequest* request;  // null: the number is free
  };
  struct Incoming {  // a receive that is posted
    std::uint32_t tag;
    std::byte* data;
    std::size_t capacity;
    NetworkRequest* request;
    bool inPlace;
  };
  struct Arrived {  // a line that nobody expected yet
    std::uint32_t tag;
    Kind kind;
    std::uint32_t number;
    std::size_t bytes;
    std::byte payload[lineMessage];
  };
  struct Asked {  // a message that comes in pieces
    std::uint32_t number;
    std::byte* data;
    std::size_t bytes;
    std::size_t received;
    NetworkRequest* request;
  };
  struct Peer {
    std::uint32_t posted = 0, takenSeen = 0;  // lines to it
    std::uint32_t noticed = 0;                // notices of it
    std::vector<std::uint32_t> waiting;       // messages to it for which there was no line
    std::uint32_t taken = 0;                  // lines of it
    std::uint32_t told = 0, toldSeen = 0;     // notices to it
    std::vector<std::uint32_t> untold;        // for which there was no room
    LooseQueue<Incoming> expected;
    LooseQueue<Arrived> arrived;
    std::vector<Asked> asked;
    bool owesRing = false;
  };

  bool post(const Outgoing& message, std::uint32_t number);
  MessageLine* nextLine(int peer);
  void publish(int peer, MessageLine& line);
  /// A slot among [first, end) that is empty; `end`: none is.
  std::uint32_t takeSlot(std::uint32_t first, std::uint32_t end) noexcept;
  void empty(int peer, std::uint32_t slot) noexcept;
  bool takeLines(int peer);
  bool takeNotices(int peer);
  bool sendWaiting(int peer);
  bool sendPieces();
  void heed(int peer, Notice notice, std::uint32_t value);
  void tell(int peer, Notice notice, std::uint32_t value);
  bool tellUntold(int peer);
  void ring(int peer) noexcept;
  void post(int peer, const Incoming& receive);
  void deliver(int peer, const Arrived& message, const Incoming& receive);
  void read(int peer, const Arrived& message, const Incoming& receive);
  void takePiece(int peer, const Arrived& piece);
  const std::byte* slotOf(int peer, std::uint32_t slot, std::size_t bytes) const;
  std::uint32_t keep(const Outgoing& message);
  void finish(std::uint32_t number);
  bool hasNews() const;
  void disarm() noexcept;
  Peer& at(int peer) noexcept { return peers_[static_cast<std::size_t>(peer)]; }

  NodeSegment segment_;
  int rank_;
  int ranks_;
  const Waiter& waiter_;
  std::vector<int> processes_;  // empty: nobody reads another's memory
  std::vector<Peer> peers_;
  std::vector<Outgoing> outgoing_;      // by number
  std::vector<std::uint32_t> numbers_;  // that are free
  std::vector<std::uint32_t> wanted_;   // messages that were asked for, in that order
  std::uint64_t armedAs_ = 0;
};

}  // namespace tacc

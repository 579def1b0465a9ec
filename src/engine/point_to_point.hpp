// Sends and receives between pairs of ranks of one node, any number at a time.
//
// Each ordered pair has a window of a few messages: the sender posts where the bytes are, the receiver takes them and
// counts. Bytes that the receiver can reach directly (library memory that all ranks have mapped, or threads) are one
// message; others go piece by piece through the sender's pair buffer, which its operations share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/call.hpp"
#include "engine/shm/buffer_exchange.hpp"
#include "transports/shm/node_segment.hpp"
#include "transports/shm/waiter.hpp"

namespace tacc {

class PointToPointEngine {
 public:
  PointToPointEngine(const NodeSegment& segment, int rank, Waiter& waiter, const BufferExchange& buffers);

  /// Runs all operations to their end. Operations with one peer in one direction run in the order given. Throws
  /// taccInvalidUsage when a send and its receive differ in count or type.
  void run(std::span<const PointToPoint> operations);

  /// In run(), to its end or to an exception.
  bool isRunning() const noexcept { return !progress_.empty(); }
  /// "receive of 5 float from rank 2": what the engine waits for, for messages.
  std::string describe() const;

 private:
  struct Progress {
    const PointToPoint* operation;
    std::size_t bytes;
    std::size_t done = 0;  // bytes posted, or taken
    bool posted = false;   // sends: the whole has been posted and waits to be taken
    bool finished = false;
  };
  bool advanceSend(Progress& send);
  bool advanceReceive(Progress& receive);
  void reclaimPieces();

  NodeSegment segment_;
  int rank_;
  Waiter& waiter_;
  const BufferExchange& buffers_;
  std::size_t pieceBytes_;
  struct Piece {
    int receiver = -1;            // -1: free
    std::uint32_t takenWhen = 0;  // the receiver's count at which it is free again
  };
  std::vector<Piece> pieces_;
  std::vector<Progress> progress_;
  bool readDirectly_ = false;  // some message of this run, from the sender's own memory
};

}  // namespace tacc

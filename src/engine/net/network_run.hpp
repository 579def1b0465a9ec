// Runs a network program: chunks under way together, each going through the steps as its messages arrive.
//
// Nothing here waits. advance() does what can be done and returns; the caller progresses the transport,
// sleeps, and looks after errors in between. So other work (the part of a call inside a node) can go on meanwhile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/reduce/reduce.hpp"
#include "engine/net/network_activity.hpp"
#include "engine/net/network_peers.hpp"
#include "engine/net/network_program.hpp"

namespace tacc {

/// One chunk of a call: where its data lies on this rank.
struct NetworkChunk {
  const std::byte* input;
  std::byte* output;
  std::size_t elements;   // split: of the chunk; stack: of the chunk's part of every block
  std::size_t first = 0;  // of a block's elements: the chunk's first
};

/// Blocks of a stack that have unequal lengths, in elements.
struct NetworkBlocks {
  std::vector<std::size_t> counts;             // by the block's name in the program
  std::vector<std::size_t> inputAt, outputAt;  // where each block of a buffer begins
  /// Each rank knows only the lengths of its blocks, and no rank handles another's. Then every header tells how
  /// long the pair's block is, and goes also where nothing follows; the ranks need not have the same number of chunks,
  /// but all chunks have the same elements.
  bool ofPairs = false;
};

struct NetworkWork {
  const NetworkProgram* program = nullptr;
  // What is pointed to stays as it is until the run is over, or ended by an Error.
  std::span<const int> members;          // the communicator's rank of every rank of the plan
  std::span<const NetworkChunk> chunks;  // the same number and elements on all ranks
  std::size_t blockBytes = 0;            // stack: distance of the blocks in input and output
  /// Stack: where block i of a buffer of a block a rank lies in it; empty: at i. For plans whose ranks are numbered in
  /// another order than the communicator's.
  std::span<const int> places;
  bool inputHasPlaces = false, outputHasPlaces = false;  // that buffer has a block a rank
  /// With one chunk, places of one of the buffers, and a program that is not in place: its blocks are copied into the
  /// plan's order first, or out of it at the end, so that a message of several blocks is one.
  bool copiesBlocks = false;
  /// Null: blocks of a chunk have `elements` elements. Else a block has those that its length allows, and the program
  /// names its blocks.
  const NetworkBlocks* blocks = nullptr;
  std::size_t elementBytes = 1;
  std::size_t cutBytes = 0;  // split: of the elements by which the vector is cut into blocks; 0: elementBytes
  ReduceKernel reduce;
  int divisor = 1;
  int rank = 0;  // this one's, in the communicator
  std::uint64_t signature = 0;
  std::uint32_t call = 0;
  std::size_t window = 4;  // chunks under way together
};

class NetworkRun final : public NetworkActivity {
 public:
  explicit NetworkRun(NetworkPeers& peers) : peers_(peers) {}

  /// Begins a call. All its chunks may start; or those below `released` only.
  void start(const NetworkWork& work, std::size_t released);
  void release(std::size_t chunks) noexcept { released_ = chunks; }

  /// Does what can be done now. True when something was. Throws taccInvalidUsage when a rank has called something else.
  bool advance() override;
  /// Chunks 0 to completed() - 1 are complete on this rank; their sends are over.
  std::size_t completed() const noexcept { return completed_; }
  bool isFinished() const noexcept override { return completed_ == work_.chunks.size() && openHeaders_.empty(); }

  /// What it waits for, for messages: the ranks, without doubles, whose messages are due.
  std::vector<int> awaited() const override;
  int nextSender() const override;

 private:
  /// The blocks of work_ in the plan's order.
  void takeBlocks();
  void giveBlocks();

  struct Chunk {
    std::size_t number = 0;
    bool active = false;
    std::size_t step = 0;
    bool isComputed = false;  // the step; its sends are not all started
    // What has been done, as counts, so that nothing is looked through again: an advance costs what it does.
    std::size_t posted = 0;                  // receives, in the order of the program's postOrder
    std::size_t arrivedHere = 0;             // of what the step receives
    std::size_t overHere = 0;                // of the sends that the step waits for
    std::size_t startedSends = 0;            // in order
    std::size_t sendsOver = 0;               // requests of sends, from the first on
    std::vector<std::uint8_t> isPosted;      // per receive
    std::vector<const std::byte*> arrivals;  // per receive: where it lands
    std::vector<NetworkRequest> receives;    // per receive and block
    std::vector<NetworkRequest> sends;
    std::vector<std::byte> incoming, outgoing, scratch;
  };

  void activate(Chunk& chunk, std::size_t number);
  bool advanceChunk(Chunk& chunk);
  bool postReceives(Chunk& chunk);
  void postReceive(Chunk& chunk, std::size_t index);
  bool staysInPlace(const NetworkReceive& receive, int pieces) const noexcept;
  NetworkRequest* inPlace(Chunk& chunk, std::size_t index) const noexcept;
  void findInPlace(Chunk& chunk, const NetworkStep& step);
  void releaseInPlace(Chunk& chunk, const NetworkStep& step);
  bool hasArrived(const Chunk& chunk, std::size_t index) const;
  bool isOver(const Chunk& chunk, std::size_t send) const;
  bool isReady(Chunk& chunk, const NetworkStep& step) const;
  bool startSends(Chunk& chunk, const NetworkStep& step);
  void compute(Chunk& chunk, const NetworkStep& step);
  void combine(Chunk& chunk, const NetworkStep& step, int firstBlock, int blocks);
  bool checkHeaders();
  void openPairs();
  bool isOfPairs() const noexcept { return work_.blocks != nullptr && work_.blocks->ofPairs; }
  /// What the header that opens the call with a peer says; `blocks`: that go to, or come from, every rank of the plan.
  CallHeader headerWith(const std::vector<std::int32_t>& blocks, std::size_t peer) const;
  /// Chunks in which something may go between the two.
  std::uint32_t chunksWith(const std::vector<std::int32_t>& blocks, std::size_t peer) const;
  [[noreturn]] void failMismatch(int rank, const CallHeader& mine, const CallHeader& theirs) const;

  const NetworkChunk& dataOf(const Chunk& chunk) const { return work_.chunks[chunk.number]; }
  /// Bytes of blocks [block, block + count) of a chunk.
  std::size_t bytesOf(const Chunk& chunk, int block, int count) const;
  std::size_t strideOf(NetworkPlace place) const;
  std::size_t placeOf(bool isPlaced, std::size_t index) const;
  bool hasPlaces() const noexcept { return !work_.places.empty() && !work_.copiesBlocks; }
  std::size_t elementOf(const Chunk& chunk, int block) const;
  const std::byte* addressOf(const Chunk& chunk, NetworkPlace place, int block, int offset) const;
  int piecesOf(int blockCount) const noexcept { return isPacked_ ? 1 : blockCount; }

  NetworkPeers& peers_;
  NetworkWork work_;
  std::size_t released_ = 0;
  std::size_t started_ = 0;
  std::size_t completed_ = 0;
  bool isPacked_ = true;       // a message of several blocks is contiguous in all memory
  std::size_t slotBytes_ = 0;  // of one block in slots and scratch
  std::vector<Chunk> chunks_;  // number % window
  struct OpenHeader {
    std::size_t peer;   // rank of the plan
    std::size_t bytes;  // of data that travel with it
    CallHeader header;  // as it is expected
  };
  std::vector<OpenHeader> openHeaders_;                   // that are still to come
  std::vector<std::int32_t> inlineSend_, inlineReceive_;  // per rank of the plan: which travels with the header; -1
  std::vector<std::int32_t> blockTo_, blockFrom_;         // per rank of the plan, where lengths are of pairs: its block
  std::vector<std::uint8_t> isOpened_, isHeaderDue_;      // per rank of the plan: was sent its header; owes its own
  std::vector<std::uint32_t> sendTag_, receiveTag_;       // per rank of the plan: tag of the header
  std::vector<std::size_t> firstReceive_, firstSend_;     // per receive and send: its first request
  std::vector<const void*> sources_;
  std::vector<void*> destinations_;
  std::vector<std::byte> ordered_;  // copied blocks
  NetworkChunk copied_{};           // that works on them
  std::byte* given_ = nullptr;      // where they go at the end; null: nowhere
};

}  // namespace tacc

// What a plan becomes for one rank among ranks that only messages connect.
//
// The steps stay as they are, in order. What is added is all that is known before the call: which message each send and
// receive is, where a received message lands (straight in the output, or in a slot until its step combines it), when a
// landing place is free to be written, and which sends must be over before a step overwrites what they send. All of it
// follows from the rank's own steps, and lies in a few arrays: a ring over 16,384 ranks takes less than 4 MiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "algorithms/local_plan.hpp"

namespace tacc {

/// Memory of one rank during a call. A block of a split vector has the same index in all kinds but the slots.
struct NetworkPlace {
  enum class Kind : std::uint8_t {
    input,
    output,
    scratch,
    arrived,  // receive number `index`, wherever it landed
    slot,     // outgoing slot number `index`
  };
  NetworkPlace() = default;
  constexpr NetworkPlace(Kind itsKind, int itsIndex) noexcept
      : kind(itsKind), index(static_cast<std::uint32_t>(itsIndex) & 0x1fffffff) {}

  Kind kind : 3 = Kind::input;
  std::uint32_t index : 29 = 0;
};
static_assert(sizeof(NetworkPlace) == 4);

struct NetworkReceive {
  std::int32_t peer;    // a rank of the plan
  std::int32_t number;  // of its first block among the blocks that come from `peer` in one chunk
  std::int32_t
      block;  // as in Step; of a stack, the name of its first block if the plan names its blocks: the rank
              // that it comes from or goes to; of an alltoall, what comes in has numbers behind all that go out
  std::int32_t blockCount;
  NetworkPlace to;  // with isDirect where it lands, else {arrived, the first incoming slot}
  std::uint32_t isDirect : 1;
  std::uint32_t isCombined : 1;   // with others, by its step; nothing else reads it
  std::uint32_t postBefore : 30;  // may be posted once the steps before this one are done
};

struct NetworkSend {
  std::int32_t peer;
  std::int32_t number;  // as of a receive
  std::int32_t block;
  std::int32_t blockCount;
  NetworkPlace from;
};

/// A look at one step.
struct NetworkStep {
  using Numbers = std::ranges::iota_view<std::int32_t, std::int32_t>;
  std::int32_t block;
  std::int32_t blockCount;
  bool completes;  // as in Step
  std::span<const NetworkPlace> sources;
  std::span<const NetworkPlace> destinations;  // own memory, also the slot that sends read; empty: nothing to compute
  Numbers receives;                            // to be complete before
  Numbers sends;                               // to be started after
  std::span<const std::int32_t> afterSends;    // sends of earlier steps that read what this one writes
};

class NetworkSteps {
 public:
  std::size_t size() const noexcept { return steps_.empty() ? 0 : steps_.size() - 1; }
  /// What it shows lives as long as the list, and no step is added.
  NetworkStep operator[](std::size_t index) const;

  /// Makes room for `steps` steps, and places in all of them.
  void reserve(std::size_t steps, std::size_t places);
  /// Adds a step that has the next `receives` and `sends` in number; the ranges are copied.
  void append(const NetworkStep& step);

 private:
  /// Where a step's parts begin; they end where those of the next one begin.
  struct Record {
    std::int32_t block;
    std::uint32_t blockCount : 31;
    std::uint32_t completes : 1;
    std::uint32_t sources, destinations;
    std::int32_t receives, sends;
    std::uint32_t afterSends;
  };
  std::vector<Record> steps_;  // one more than there are
  std::vector<NetworkPlace> places_;
  std::vector<std::int32_t> afterSends_;
};

struct NetworkProgram {
  std::string algorithm;
  Partition partition = Partition::split;
  int blocks = 1;
  int scratchBlocks = 0;
  bool namesBlocks = false;  // of a stack: every step says whose block it handles (block_names.hpp)
  int incomingSlots = 0;     // in blocks
  int outgoingSlots = 0;
  NetworkSteps steps;
  std::vector<NetworkReceive> receives;  // in the order of their steps
  std::vector<std::int32_t> postOrder;   // receives by their postBefore
  std::vector<NetworkSend> sends;
  std::vector<std::int32_t> blocksFrom;  // per rank of the plan: blocks that come from it in one chunk
  std::vector<std::int32_t> blocksTo;
};

/// Lowers what one rank runs of a proven plan. `inPlace`: input and output are the same memory, as the plan's
/// collective defines it. Cost: time and memory of that rank's steps and blocks, and a few bytes for each rank.
NetworkProgram lowerForNetwork(const LocalPlan& plan, bool inPlace);

}  // namespace tacc

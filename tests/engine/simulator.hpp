// Runs the programs of all ranks in one thread, in a random order that their waits allow, on simulated memory. A second
// opinion on the lowering: it shares no code with the executor and follows the rules in program.hpp and partition.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "algorithms/interpreter.hpp"
#include "algorithms/plan.hpp"
#include "engine/partition.hpp"
#include "engine/shm/program.hpp"

namespace tacc::test {

/// A value whose low byte says what has been done to it: one for every contribution, and `completed` once it was marked
/// as holding all of them. The other bits are data.
using Element = std::uint64_t;
inline constexpr Element completed = 0x80;
inline constexpr Element contributionsOf(Element e) { return e & 0x7f; }

/// One call: every rank's program, and how the data is cut.
struct SimulatedCall {
  const Plan& plan;
  const std::vector<Program>& programs;  // one a rank
  Schedule schedule;
  std::size_t count = 0;
  std::vector<bool> inPlace;  // per rank
};

class Simulator {
 public:
  /// `seed` decides which of the ranks that may go on does.
  Simulator(const SimulatedCall& call, unsigned seed);

  /// Runs all ranks to their end and returns their outputs. Throws std::runtime_error when the ranks are stuck, when a
  /// slot or scratch block holds another chunk than its reader wants, when a slot is written before all have read it,
  /// when a pipe has another length than is read from it, or something is left in one,
  /// when an input changes, or when a rank touches the buffers of a rank that has returned from the call.
  PerRank<Element> run(const PerRank<Element>& inputs);

 private:
  /// One thing that a rank does; a rank does its own in order.
  struct Action {
    enum class Kind : std::uint8_t { wait, publish, load, store };
    Kind kind;
    int rank = 0;             // wait: for whose clock
    std::uint32_t ticks = 0;  // wait, publish
    const Operation* operation = nullptr;
    int piece = 0;  // load, store: which block of the operation
    std::uint32_t chunk = 0;
  };
  /// A slot or scratch block: which chunk it holds, and how often that has been read.
  struct Cell {
    std::int64_t chunk = -1;
    int reads = 0;
    std::vector<Element> data;
  };
  struct Rank {
    std::vector<Action> actions;
    std::size_t next = 0;
    std::uint32_t clock = 0;
    std::vector<Element> input, output, loaded;
    std::vector<Cell> scratch, slots;
    std::vector<int> readers;  // per slot: how often each chunk is read
  };

  /// A block in a pipe: it is in its owner's memory until it is read.
  struct Piped {
    const Element* from;
    std::size_t length;
  };

  void listActions(int rank);
  void listRound(int rank, const Round& round, std::uint32_t chunk);
  void countReaders();
  void fillBuffers(const PerRank<Element>& inputs);
  bool mayAct(int rank) const;
  int pickRank();
  void act(int rank);
  void load(int rank, const Action& action);
  void store(int rank, const Action& action);
  void checkInput(int rank, const std::vector<Element>& original);
  [[noreturn]] void failStuck() const;

  std::size_t firstOf(const Action& action) const;
  std::size_t lengthOf(const Action& action) const;
  /// Whether a rank is to read from a pipe that is empty.
  bool awaitsPipe(int rank) const;
  const Element* takeFromPipe(int rank, const Place& place, std::size_t length);
  Element* userMemory(int rank, bool isInput, const Action& action, const Place& place);
  Cell& cellOf(Rank& owner, const Place& place, const Action& action);
  bool isSplit() const { return partitionOf(call_.plan.request.collective) == Partition::split; }

  const SimulatedCall& call_;
  std::mt19937 random_;
  std::vector<int> favour_;  // empty: any rank; else ranks in order of preference
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::deque<Piped>> pipes_;  // by who gives and who reads
};

}  // namespace tacc::test

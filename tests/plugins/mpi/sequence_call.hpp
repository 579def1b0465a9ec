// One collective of a drawn program: its arguments, its buffers, and the same call made of MPI itself by another name,
// which has to leave the same bits.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

#include "draws.hpp"
#include "mpi_faults.hpp"

namespace tacc::test {

/// A communicator, and one for MPI's own calls.
struct Twin {
  MPI_Comm comm = MPI_COMM_NULL, other = MPI_COMM_NULL;  // null on ranks that are no part of it
  int rank = 0, ranks = 1;
  bool isGoing = false;  // it is freed while calls on it are under way
  bool isPart() const { return comm != MPI_COMM_NULL; }
};

/// Six numbers as one element. What one rank calls so may look otherwise on another one.
struct Layout {
  MPI_Datatype type;
  int times;   // elements of the type for six numbers
  int extent;  // of six numbers, in numbers
};
constexpr int unit = 6;
Layout layout(int which);
constexpr int layouts = 5;

/// What is reduced: a type with an operation.
struct Reduced {
  MPI_Datatype type;
  MPI_Op op;
  std::size_t bytes;
  void (*fill)(std::byte* at, int value);
  bool isOfProgram;  // the operation: such calls are MPI's
};
const std::vector<Reduced>& reductions();

class SequenceCall {
 public:
  /// Equal draws on all ranks of the world, also on those that are no part of it; `own` draws differ. `isTacc`: tacc
  /// serves all calls that it knows; else MPI may, so nothing is called that it does wrong itself.
  SequenceCall(const Twin& twin, Draws& draws, Draws& own, bool isTacc, int id);

  /// Makes the call of the program; `request` is what it returned where it is nonblocking, or persistent.
  void make();
  MPI_Request request = MPI_REQUEST_NULL;
  /// Whether that has to be started, by any rank at any time after it was made.
  bool isPersistent() const { return form_ == Form::persistent && request != MPI_REQUEST_NULL; }
  /// When it is complete: makes the same call of MPI, and compares. Collective.
  void compare();

 private:
  /// Numbers as `int` and as large ones: a function takes those that it is declared with.
  template <class Large>
  struct Numbers {
    const int* plain;
    const Large* large;
    operator const int*() const { return plain; }
    operator const Large*() const { return large; }
  };
  /// Blocks of a buffer, in elements of its type.
  struct Blocks {
    Layout layout{};
    std::vector<int> counts, places;
    std::vector<MPI_Count> largeCounts;
    std::vector<MPI_Aint> largePlaces;
    Numbers<MPI_Count> allCounts() const { return {counts.data(), largeCounts.data()}; }
    Numbers<MPI_Aint> allPlaces() const { return {places.data(), largePlaces.data()}; }
    int all = 0;  // numbers, gaps included
    void add(int units, int gap);
    int first() const { return counts.empty() ? 0 : counts[0]; }
  };

  void prepareReduction();
  void prepareMovement(Draws& own);
  int unitsOf(int from, int to) const;
  int callNow(bool isReference);
  bool isReduction() const { return test::isReduction(kind_); }
  std::size_t bytes() const;
  int call(bool isReference);
  int reduceBy(const std::byte* send, std::byte* receive, bool isReference);
  int moveBy(const std::byte* send, std::byte* receive, bool isReference);
  std::string text() const;

  Twin twin_;
  int id_;
  Call kind_;
  int root_ = 0, count_;
  bool isInPlace_;
  bool isServedByMpi_ = false;  // or may be
  bool isLarge_ = false;        // by MPI 4's form with large counts; others of the same call may use the other one
  Form form_;
  const Reduced* reduced_ = nullptr;
  std::vector<int> units_;  // of each rank, of calls with counts
  std::vector<MPI_Count> largeUnits_;
  Blocks from_, to_;
  // As they are before the call; then what the program's call makes of them, and MPI's.
  std::vector<std::byte> sent_, received_, send_, receive_, otherReceive_;
};

}  // namespace tacc::test

// What ranks and the saboteur know of each other: memory that all share and that outlives each of them.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string_view>

namespace tacc::chaos {

inline constexpr int mostRanks = 64;
inline constexpr int mostViews = 64;
inline constexpr double timeout = 2.0;      ///< seconds, of one operation
inline constexpr double initTimeout = 4.0;  ///< seconds, of init and shrink
/// Seconds that a call may take beyond its time-out on a machine that others use too.
inline constexpr double grace = 6.0;

/// Members of a communicator: a bit for each rank of the round.
using Members = std::uint64_t;

/// A communicator that a rank got when it shrank another: both by their members and by how often they had shrunk.
struct View {
  Members before;
  int generation;
  Members after;
};

enum class Stage : int { joining, calling, shrinking, over };

struct Seat {
  std::atomic<Stage> stage;
  std::atomic<double> since;          ///< of the call, on the clock of now(); 0: in none
  std::atomic<double> sabotagedTill;  ///< 0: never; then what the rank suffers may be seen by others
  std::atomic<bool> wantsChild;       ///< the rank is to fork a child that lives on
  std::atomic<pid_t> child;
  std::atomic<std::uint64_t> calls, errors;
  std::atomic<int> viewCount;
  View views[mostViews];
};

struct Board {
  std::atomic<bool> stop;
  std::atomic<bool> mayEnd;   ///< nobody is left who might come late
  std::atomic<int> problems;  ///< what must not happen; each is written to standard error
  bool tellsAll;              ///< and so is every fault and every error
  Seat seats[mostRanks];

  static Board* make() {
    void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
    return new (memory) Board{};
  }
};

/// Seconds on a clock that all processes share.
double now();

/// Writes a sentence that begins with the moment, where all is told.
void tellEvent(const Board& board, std::string_view what);

/// Writes a sentence that begins with the round and the rank, and counts it.
void tellProblem(Board& board, int round, int rank, std::string_view what);

}  // namespace tacc::chaos

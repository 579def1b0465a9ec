// What programs do with MPI beside the collectives that are taken over: MPI serves it, and it must go on while a rank
// waits in one of those.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "draws.hpp"
#include "sequence_call.hpp"

namespace tacc::test {

/// Goes on through one batch of calls, on all ranks of the world, with equal draws on all of them.
class Beside {
 public:
  virtual ~Beside() = default;
  /// Before the calls; may add requests, which are complete before end().
  virtual void begin(std::vector<MPI_Request>& requests) = 0;
  /// After each call, so at the same places on all ranks.
  virtual void step() {}
  /// Behind the last call; the requests are not complete yet.
  virtual void finish() {}
  /// When all is complete: looks at what it left.
  virtual void end() = 0;
};

/// Memory of ranks that others write to and read from, through batches.
class Window {
 public:
  virtual ~Window() = default;
  /// Operations on it in an epoch of a kind that is drawn, which lasts for a batch.
  virtual std::unique_ptr<Beside> epoch(Draws& draws) = 0;
};
/// Collective over the world; `twin` tells whose memory it is.
std::unique_ptr<Window> drawWindow(const Twin& twin, Draws& draws);

/// Neighbours, messages in parts, or a file that all write. Collective over the world.
std::unique_ptr<Beside> drawBeside(Draws& draws);

}  // namespace tacc::test

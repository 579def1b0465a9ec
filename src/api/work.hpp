// Work that does not run in its call at once: what a group recorded and what a stream was given.
//
//   Unit   one thing that a communicator does: a collective, a fused allreduce, an exchange, a split, or calls of the
//          library's own; or a gate, at which a stream waits for a unit of another stream
//   Lane   the units of one communicator, in their order
//   Batch  lanes that run at the same time: each but the first in a temporary thread
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "api/handles.hpp"
#include "comm/communicator.hpp"
#include "core/error.hpp"

namespace tacc {

/// A communicator that is to be made, by joining or splitting. Its group writes *result when all of it went well.
struct Creation {
  taccComm_t* result = nullptr;
  std::function<std::unique_ptr<Communicator>()> make;
  std::unique_ptr<Communicator> made;  // stays null for a split without a color
};

struct Unit {
  enum class Kind : std::uint8_t { collective, fused, exchange, creation, calls, gate };
  Kind kind = Kind::collective;
  bool hasFactor = false;
  const char* function = "";  // of the C interface, for messages
  std::uint64_t turn = 0;     // of the communicator

  Call call;                                    // collective; fused: count is the sum, the buffers are the parts'
  taccRedOp_t op = taccSum;                     // as the program named it
  alignas(8) std::byte factor[8] = {};          // of the program's operator, which may be destroyed before this runs
  UserReduction user;                           // likewise, if it is a function
  std::shared_ptr<const UnequalBlocks> blocks;  // null: none
  std::vector<Call> parts;                      // fused

  PointToPoint operation{};              // exchange of one
  std::vector<PointToPoint> operations;  // exchange of several; empty: of one

  Creation* creation = nullptr;

  std::function<void(Communicator&)> calls;

  /// How a unit that serves several streams has ended, for the gates behind it. Written before its turn is finished,
  /// and read by gates whose turn has come, not by those that an abort turns away.
  std::shared_ptr<std::optional<Error>> outcome;

  static Unit collective(const char* function, const Call& call, taccRedOp_t op);
  static Unit exchange(const char* function, const PointToPoint& operation);
};

/// Runs one unit in the calling thread. `comm` is null only for joining. Throws.
void runUnit(taccComm* comm, Unit& unit);

/// From where units run: the program's thread is inside their communicator, a stream's thread has to visit it.
enum class RunBy : std::uint8_t { program, stream };

/// Runs units that hold turns of `comm`, each in its turn. After an error the rest is not run. Returns the error,
/// which is the communicator's last error then.
std::optional<Error> runUnits(taccComm* comm, std::span<Unit> units, RunBy by) noexcept;

/// For units that cannot be run for a reason of this process: ends the communicator, so that other ranks do not wait
/// for them, and lets their turns pass.
void abandonUnits(taccComm* comm, std::span<Unit> units, const Error& reason) noexcept;

struct Lane {
  CommReference comm;  // none: joins a communicator
  std::vector<Unit> units;
  std::optional<Error> error;
};

struct Batch {
  std::vector<Lane> lanes;

  /// Runs all lanes to their ends.
  void run(RunBy by) noexcept;
  void abandon(const Error& reason) noexcept;
  /// The first error, in the order of the lanes.
  const Error* firstError() const noexcept;
};

/// A place in a stream's queue: all that the stream was given up to there. Order only, no errors.
struct StreamPlace {
  std::shared_ptr<taccStream> stream;  // none: a place that was reached long ago
  std::uint64_t number = 0;            // of the last entry
};

/// One entry of a stream's queue: one unit, or a batch, or the wait for a place of another stream.
struct Work {
  CommReference comm;
  Unit unit;
  std::unique_ptr<Batch> batch;
  StreamPlace after = {};  // of a wait

  std::optional<Error> run() noexcept;
  void abandon(const Error& reason) noexcept;
};

}  // namespace tacc

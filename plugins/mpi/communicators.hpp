// tacc's communicator of an MPI communicator, kept in an attribute of it.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "contests.hpp"
#include "inside.hpp"
#include "report.hpp"
#include "scratch.hpp"
#include "shared_messages.hpp"
#include "tacc/tacc.h"
#include "usual_bytes.hpp"

namespace tacc::mpi {

struct Communicator;

/// The last call of a function that tacc served (ready_calls.hpp).
struct ReadyCall {
  static constexpr std::size_t mostWords = 5;
  static inline Contests::Calls none{};  // nobody takes a turn of these

  std::array<std::uint64_t, mostWords> words{};  // its arguments, but for the buffers
  std::size_t bytes = 0;                         // as Judged has them
  taccDataType_t type = taccInt8;                // of a reduction
  taccRedOp_t op = taccSum;                      // the same
  Contests::Calls* calls = &none;                // that it is one of
  const Communicator* communicator = nullptr;
};

struct Communicator {
  MPI_Comm mpi = MPI_COMM_NULL;
  int rank = 0, ranks = 1;
  std::optional<Passed> passed;            // why all its calls go to MPI; the same on all its ranks
  taccComm_t tacc = nullptr;               // null until join()
  std::optional<int> callsBeforeJoining;   // of leavesFirst(); null: it was not asked
  std::shared_ptr<MessageRange> messages;  // where tacc sends in MPI's messages
  // A message that nobody sends. Testing whether it has come is what lets MPI move everything else: it may answer a
  // probe from what has come already, and does not look further on a communicator of one rank. One for each
  // communicator, as a request belongs to one thread at a time.
  MPI_Request never = MPI_REQUEST_NULL;
  taccStream_t stream = nullptr;  // of collectives with requests; null before the first
  // Of them. Whoever sees 0 may use `tacc` as if its own thread had waited for them: another one may have.
  std::atomic<int> underWay{0};
  int complaints = 0;  // error handlers of it that threads are in, for requests; under the mutex of Requests
  // Of a lane: a request has it. Whoever sees that none has may use it as if its own thread had freed the request.
  std::atomic<bool> isTaken{false};
  Contests contests;
  std::array<ReadyCall, Contests::functions> readyCalls{};
  UsualBytes usual;
  std::unique_ptr<Scratch> scratch = std::make_unique<Scratch>();
  // Of persistent requests. As many on all ranks.
  std::vector<std::shared_ptr<Communicator>> lanes;

  ReadyCall& readyCall(Function function) noexcept { return readyCalls[static_cast<std::size_t>(plainly(function))]; }
  /// Whether a call may go to `tacc` or to MPI without anything else first.
  bool isQuiet() const noexcept {
    return tacc != nullptr && underWay.load(std::memory_order_acquire) == 0 && !usual.isDue();
  }
};

/// All communicators that were met. Different ones may be used by different threads at once.
class Communicators {
 public:
  /// MPI is initialized. Local, but for duplicates of MPI_COMM_SELF and, with `usesMpiTransport`, of the world, where
  /// it is the same on all ranks.
  /// `isInOrder`: on every rank calls come one after the other.
  void open(bool usesMpiTransport, bool isInOrder);
  /// MPI is about to be finalized: destroys what is left, in the order in which it was made.
  void close() noexcept;

  /// What is known of `mpi`, which is not MPI_COMM_NULL. Local. Null where it is no communicator. Two comparisons for
  /// the one that this thread asked for last; else MPI is asked for an attribute, which takes about as long as a short
  /// call.
  Communicator* find(MPI_Comm mpi, CallingThread& thread = callingThread()) noexcept {
    const std::uint64_t ended = ended_.load(std::memory_order_acquire);
    if (mpi == thread.lastMpi && ended == thread.ended) return thread.lastFound;
    thread.lastFound = look(mpi, thread);
    thread.lastMpi = mpi;
    thread.ended = ended;
    return thread.lastFound;
  }
  /// The same for the one that this thread asked for last; null for all others.
  Communicator* findLast(MPI_Comm mpi, const CallingThread& thread) const noexcept {
    const bool isLast = mpi == thread.lastMpi && ended_.load(std::memory_order_acquire) == thread.ended;
    return isLast ? thread.lastFound : nullptr;
  }
  /// Ends `*mpi` by `free`, MPI's own function, and what belongs to it before. In between MPI calls the program's
  /// functions for the attributes that go; what these call on the communicator goes to MPI, on all ranks alike.
  int end(MPI_Comm* mpi, int (*free)(MPI_Comm*));
  /// Whether a blocking call goes to MPI, as one of the first on a communicator that has none of tacc's, which takes
  /// longer to make than such calls. Asked at each of them, so the same on all its ranks.
  bool leavesFirst(Communicator& communicator) const noexcept;
  /// Makes the tacc communicator, once a call is to be taken over. Collective over `communicator`. Where that fails on
  /// one rank all ranks pass their calls on from then on, and one of them has said why.
  void join(Communicator& communicator) noexcept;

 private:
  static int forget(MPI_Comm mpi, int key, void* attribute, void* self) noexcept;
  static void progressMpi(void* communicator);
  taccResult_t joinByMeeting(Communicator& communicator);
  taccResult_t joinWithStem(Communicator& communicator);
  taccResult_t joinByStem(Communicator& communicator);
  void dropStem() noexcept;
  std::optional<int> attempt(Communicator& communicator, taccResult_t (Communicators::*way)(Communicator&),
                             std::string& why);
  bool hasAllRanks(MPI_Comm mpi) const noexcept;
  Communicator* look(MPI_Comm mpi, const CallingThread& thread) noexcept;
  void remove(Communicator* communicator) noexcept;

  std::atomic<std::uint64_t> ended_{0};  // communicators so far: their handles may be others' by now

  int key_ = MPI_KEYVAL_INVALID;
  MPI_Comm self_ = MPI_COMM_NULL;  // of the messages that nobody sends
  SharedMessages messages_;        // open where tacc sends in MPI's messages
  // Of all ranks, for nothing but to make others of its ranks, which costs less than to meet. Null before there is one,
  // where threads may come to it in different orders, and where this rank has seen it fail.
  Communicator stem_;
  bool isInOrder_ = false;  // calls come one after the other in each process, and so in one order on all ranks; the
                            // same on all
  std::mutex mutex_;
  std::vector<std::unique_ptr<Communicator>> all_;
  Communicator endingOnes_;  // what look() says of them
};

}  // namespace tacc::mpi

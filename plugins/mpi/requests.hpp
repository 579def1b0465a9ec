// Nonblocking and persistent collectives that are taken over, behind requests of the real MPI.
//
// What the program holds is a receive of the real MPI from this rank itself, which nobody else can match. When tacc's
// call is done, its message is sent. So MPI answers for it in all the forms that it has, beside its own requests; only
// before it is asked, somebody has to look whether tacc is done, in an MPI function of the program (completions.cpp).
// tacc's calls go on by themselves, in a thread for each communicator that has any and for each lane (lanes.hpp), which
// calls no MPI.
#pragma once

#include <mpi.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "communicators.hpp"
#include "prepared.hpp"
#include "tacc/tacc.h"

namespace tacc::mpi {

/// One collective behind a request. Belongs to the thread that uses the request; `communicator` and `handler` are
/// changed, under the mutex of Requests, by a thread that frees the communicator.
struct Operation {
  const char* name;            // of MPI's function
  Communicator* communicator;  // of a persistent one its lane; null: it was freed
  MPI_Comm handler;            // whose error handler is called
  int rank, ranks;
  int tag;                                 // of the message that ends it
  MPI_Request handle;                      // the receive of that message
  taccRequest_t call = nullptr;            // null: not under way
  Prepared prepared;                       // what is under way
  std::function<Prepared()> prepareAgain;  // of a persistent one
};

/// All operations of the process. Thread safe. The functions are called inside MPI functions of the program.
class Requests {
 public:
  /// Between MPI_Init and MPI_Finalize. Local, but for a duplicate of MPI_COMM_SELF.
  void open();
  /// Waits for what is under way, some seconds at most, and says what has not ended. Then ends all of them.
  void close() noexcept;

  /// Whether a request of the program may be one of these.
  bool areInUse() const noexcept { return count_.load(std::memory_order_relaxed) > 0; }

  /// Starts a collective on a communicator that has joined. Returns MPI's code; throws what start() throws.
  int begin(const char* name, Communicator& communicator, Prepared prepared, MPI_Request* request);
  /// Makes an inactive persistent request, to run on a lane that `prepare` keeps.
  int makePersistent(const char* name, Communicator& lane, std::function<Prepared()> prepare, MPI_Request* request);
  /// MPI_Start of one of these.
  int start(Operation& operation);
  /// MPI_Request_free of one of these: what is under way goes on.
  int free(Operation& operation, MPI_Request* request);

  /// MPI_Cancel of one of these, which MPI forbids: the error handler is called. Returns MPI's code.
  int refuseToCancel(const Operation& operation) noexcept;

  /// Null where the request is none of these, or is one whose end MPI knows already.
  Operation* find(MPI_Request request);
  /// Whether it was under way and is done: MPI knows it then, and `operation` is gone unless it is persistent. `code`:
  /// how it went; stays as it is otherwise.
  bool completeIfDone(Operation& operation, int* code);
  /// Waits until completeIfDone() will be true, and lets MPI go on meanwhile.
  void await(const Operation& operation);
  /// A short wait for one of many things.
  void pause(const Operation& operation, double seconds);
  /// Lets MPI go on.
  void progress() noexcept;

  /// Waits until nothing of the communicator is under way: calls that come after must not wait without MPI.
  void drain(const Communicator& communicator);
  /// drain(), also of its lanes, for a communicator that ends. Its requests stay the program's. Waits for other threads
  /// that are in its error handler.
  void forget(Communicator& communicator) noexcept;

 private:
  int give(Operation& operation);
  void await(taccRequest_t call);
  int makeTag();
  /// Of one that is done: MPI knows it then. Returns why it failed, "" where it did not.
  std::string settle(Operation& operation);
  /// settle(), with the error handler called.
  int end(Operation& operation) noexcept;
  /// Nothing of it is under way any more, so its communicator may end. Under the mutex.
  static void leave(const Operation& operation) noexcept;
  /// Complains where that communicator's error handler is, which is kept meanwhile. Returns MPI's code.
  int failOperation(const Operation& operation, const std::string& why) noexcept;
  /// Of one that others do not come to.
  static void giveUp(Operation& operation) noexcept;
  Operation& keep(std::unique_ptr<Operation> operation);
  std::unique_ptr<Operation> take(const Operation& operation) noexcept;
  void completeFreed() noexcept;

  std::mutex mutex_;
  std::condition_variable complained_;  // a communicator has fewer complaints
  std::unordered_map<MPI_Request, std::unique_ptr<Operation>> all_;
  std::vector<std::unique_ptr<Operation>> freed_;  // by the program, and under way
  std::vector<int> freeTags_;
  int nextTag_ = 1;
  std::atomic<int> count_{0};
  MPI_Comm self_ = MPI_COMM_NULL;
  std::mutex neverMutex_;
  MPI_Request never_ = MPI_REQUEST_NULL;  // as Communicator::never, for waits of any communicator
};

}  // namespace tacc::mpi

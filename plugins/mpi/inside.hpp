// What a thread remembers between the calls of MPI's that the program makes, and whether it is inside one.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <utility>

namespace tacc::mpi {

struct Communicator;

/// One that the thread is in the middle of freeing.
struct EndingCommunicator {
  MPI_Comm mpi;
  const EndingCommunicator* outer;  // in whose freeing this one is freed
};

/// An error handler that the thread is about to call, or is in the middle of.
struct Complaint {
  Communicator* communicator;  // whose; null: it has none of tacc's any more
  Complaint* outer;            // in whose handler this one was met
};

struct CallingThread {
  bool isInside = false;
  // The communicator that it looked for last. 0 is no handle of an MPI's, and MPI_COMM_NULL no constant everywhere.
  MPI_Comm lastMpi = {};
  Communicator* lastFound = nullptr;
  std::uint64_t ended = 0;  // communicators that had ended then
  const EndingCommunicator* ending = nullptr;
  Complaint* complaint = nullptr;
};

/// Found by an offset that is known once the library is loaded, as there is always some room for the variables of
/// libraries that are opened late; to ask where they are takes as long as a tenth of a short call.
extern constinit thread_local CallingThread theThread [[gnu::tls_model("initial-exec")]];
inline CallingThread& callingThread() noexcept { return theThread; }

/// Whether this thread is inside a call already. An MPI may be built so that its functions call each other by the names
/// that are taken over.
class Inside {
 public:
  explicit Inside(CallingThread& thread = callingThread()) noexcept
      : thread_(thread), before_(std::exchange(thread.isInside, true)) {}
  ~Inside() { thread_.isInside = before_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool isTrue() noexcept { return callingThread().isInside; }

 private:
  CallingThread& thread_;
  bool before_;
};

}  // namespace tacc::mpi

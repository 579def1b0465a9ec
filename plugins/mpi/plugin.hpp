// The state of libtacc_mpi, and how a call is taken over or passed on.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "communicators.hpp"
#include "contest.hpp"
#include "inside.hpp"
#include "report.hpp"
#include "requests.hpp"
#include "tacc/tacc.h"

// The functions that the dispatcher finds by their names.
#define TACC_MPI_ENTRY extern "C" __attribute__((visibility("default"))) int

namespace tacc::mpi {

struct Plugin {
  Report report;
  Communicators communicators;
  Requests requests;
  // Equal on all ranks:
  bool takesRequests = false;          // collectives with requests are taken over
  Passed whyNoRequests{};              // why they are not
  std::size_t leastWithRequest = 0;    // bytes that make them worth it, where they sum up
  std::size_t leastMoved = 0;          // and where they only move
  std::uint32_t contestAfter = 0;      // calls of a kind, before it is measured who is the faster one; 0: it is not
  std::atomic<double> nextContest{0};  // by this rank's clock, of calls that were compared before
  bool hasBegun = false;               // MPI_Init has been called here
  bool isActive = false;               // between MPI_Init and MPI_Finalize, where all ranks agreed on it
  bool reports = false;                // this rank tells at the end what it did
  void (*passAllOn)() = nullptr;       // makes the dispatcher call MPI's own functions in C from then on
};

/// Never destroyed: threads may be in it as the process ends. There from when the library is loaded.
extern Plugin& theOnly;
inline Plugin& plugin() { return theOnly; }

/// Ends a call that failed as MPI does: writes `why` to standard error, and calls the communicator's error handler.
/// Returns the code for the caller, if that returns.
int failCall(const char* function, const Communicator& communicator, const std::string& why) noexcept;

/// Looks whether a contest is due, holds it and tells what came out, and returns who serves the calls of its kind from
/// now on. Nothing where it failed, and the call with `*code`. `repeated` may be null.
std::optional<Contests::Turn> settleContest(Function function, const char* name, std::size_t bytes,
                                            Communicator& communicator, const Repeated* repeated, int* code);

/// failCall() with what tacc said.
[[gnu::cold]] int failCall(const char* function, const Communicator& communicator) noexcept;

/// `judge(communicator)`: Judged; called for intracommunicators of several ranks only, as others do not use all
/// arguments. `run(communicator)`: makes the tacc call and returns its result. `pass()`: MPI's own function.
/// What most calls are does not come here (at_once.hpp). The three hold copies of the arguments: what the contest keeps
/// would otherwise hold all of them in memory.
template <class Judge, class Run, class Pass>
int takeOver(Function function, const char* name, MPI_Comm comm, Judge judge, Run run, Pass pass) {
  Plugin& self = plugin();
  CallingThread& thread = callingThread();
  const auto passOn = [&](Passed why) {
    self.report.countPassed(function, why);
    return pass();
  };
  if (thread.isInside) return passOn(Passed::nested);
  const Inside inside(thread);
  if (!self.isActive) return passOn(Passed::off);
  Communicator* const communicator = comm == MPI_COMM_NULL ? nullptr : self.communicators.find(comm, thread);
  if (communicator == nullptr) return passOn(Passed::arguments);
  if (communicator->passed) return passOn(*communicator->passed);
  const Judged judged = judge(*communicator);
  if (judged.passed != Passed::none) return passOn(judged.passed);
  if (judged.bytes > 0 || function == Function::Barrier) {
    if (communicator->tacc == nullptr) [[unlikely]] {
      if (self.communicators.leavesFirst(*communicator)) return passOn(Passed::first);
      self.communicators.join(*communicator);
      if (communicator->passed) return passOn(*communicator->passed);
    }
    if (communicator->underWay.load(std::memory_order_acquire) > 0) [[unlikely]]
      self.requests.drain(*communicator);
    if (communicator->usual.isDue()) [[unlikely]]
      communicator->usual.agree(*communicator);
    const Function kind = plainly(function);
    Contests::Turn turn = communicator->contests.next(kind, judged.bytes, self.contestAfter);
    if (turn == Contests::Turn::look) [[unlikely]] {
      int code = MPI_SUCCESS;
      const Repeated repeated{[run, communicator] { return run(*communicator); }, [pass] { pass(); }};
      const auto settled =
          settleContest(kind, name, judged.bytes, *communicator, judged.isMeasuredItself ? &repeated : nullptr, &code);
      if (!settled) return code;
      turn = *settled;
    }
    if (turn == Contests::Turn::mpi) return passOn(Passed::slower);
    try {
      if (run(*communicator) != taccSuccess) [[unlikely]]
        return failCall(name, *communicator);
    } catch (const std::exception& error) {
      return failCall(name, *communicator, error.what());
    }
  }
  self.report.countTaken(function, judged.bytes);
  return MPI_SUCCESS;
}

}  // namespace tacc::mpi

// How a collective that returns a request is taken over or passed on.
#pragma once

#include <mpi.h>

#include <exception>
#include <optional>
#include <utility>

#include "lanes.hpp"
#include "persistent.hpp"
#include "plugin.hpp"
#include "prepared.hpp"
#include "requests.hpp"

// Takes the parentheses off a list.
#define TACC_MPI_LIST(...) __VA_ARGS__

namespace tacc::mpi {

/// Why a collective with a request goes to MPI though the arguments would do. `isLocal`: the call must not wait for
/// others, and so cannot make the tacc communicator. The same on all ranks.
std::optional<Passed> reasonToPass(Kind kind, std::size_t bytes, Communicator& communicator, bool isLocal);

/// takeOver() of a collective that returns a request. `judge(communicator)`: Judged. `make(communicator)`: returns
/// MPI's code; nothing, on all ranks alike, where the call has to be MPI's.
template <class Judge, class Make, class Pass>
int takeOverRequest(Function function, const char* name, Kind kind, Judge judge, MPI_Comm comm, MPI_Request* request,
                    bool isLocal, Make make, Pass pass) {
  Plugin& self = plugin();
  const auto passOn = [&](Passed why) {
    self.report.countPassed(function, why);
    return pass();
  };
  if (Inside::isTrue()) return passOn(Passed::nested);
  const Inside inside;
  if (!self.isActive) return passOn(Passed::off);
  Communicator* const communicator =
      comm == MPI_COMM_NULL || request == nullptr ? nullptr : self.communicators.find(comm);
  if (communicator == nullptr) return passOn(Passed::arguments);
  if (communicator->passed) return passOn(*communicator->passed);
  const Judged judged = judge(*communicator);
  if (judged.passed != Passed::none) return passOn(judged.passed);
  if (const auto why = reasonToPass(kind, judged.bytes, *communicator, isLocal)) return passOn(*why);
  try {
    const std::optional<int> code = make(*communicator);
    if (!code) return passOn(Passed::noCommunicator);
    self.report.countTaken(function, judged.bytes);
    return *code;
  } catch (const std::exception& error) {
    return failCall(name, *communicator, error.what());
  }
}

/// `keep(communicator)`: Arguments that do not need the program's own any more, but for buffers and types.
template <class Judge, class Keep, class Pass>
int begin(Function function, const char* name, Kind kind, Judge judge, Keep keep, MPI_Comm comm, MPI_Request* request,
          Pass pass) {
  const auto make = [&](Communicator& communicator) -> std::optional<int> {
    Arguments own = keep(communicator);
    const auto types = keepTypes(kind, own, communicator.rank);
    Prepared prepared = prepare(kind, own, communicator);
    prepared.deliver = [types, deliver = std::move(prepared.deliver)] { deliver(); };
    return plugin().requests.begin(name, communicator, std::move(prepared), request);
  };
  return takeOverRequest(function, name, kind, judge, comm, request, true, make, pass);
}

template <class Judge, class Keep, class Pass>
int makePersistent(Function function, const char* name, Kind kind, Judge judge, Keep keep, MPI_Comm comm,
                   MPI_Request* request, Pass pass) {
  const auto make = [&](Communicator& communicator) -> std::optional<int> {
    const std::shared_ptr<Communicator> lane = takeLane(communicator);
    if (!lane) return std::nullopt;
    Arguments own = keep(communicator);
    const auto types = keepTypes(kind, own, communicator.rank);
    return plugin().requests.makePersistent(
        name, *lane, [kind, own = std::move(own), types, lane] { return prepare(kind, own, *lane); }, request);
  };
  return takeOverRequest(function, name, kind, judge, comm, request, false, make, pass);
}

}  // namespace tacc::mpi

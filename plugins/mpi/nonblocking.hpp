// How a collective that returns a request is taken over or passed on.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

#include "lanes.hpp"
#include "persistent.hpp"
#include "plugin.hpp"
#include "prepared.hpp"
#include "requests.hpp"
#include "usual_bytes.hpp"

// Takes the parentheses off a list.
#define TACC_MPI_LIST(...) __VA_ARGS__

namespace tacc::mpi {

/// Whether values are summed up, not only moved.
constexpr bool sumsUp(Kind kind) noexcept {
  switch (kind) {
    case Kind::allreduce:
    case Kind::reduce:
    case Kind::scan:
    case Kind::exscan:
    case Kind::reduceScatter:
    case Kind::reduceScatterBlock:
      return true;
    default:
      return false;
  }
}

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

/// From how many bytes on a call is worth it; SIZE_MAX: none is.
inline std::size_t leastBytes(Kind kind) noexcept {
  return sumsUp(kind) ? plugin().leastWithRequest : plugin().leastMoved;
}

/// Most calls are too small to gain, and go to MPI, where they take less than a microsecond. So these are passed on at
/// once, before begin() lays aside what it may need, where what it would look for is known.
///
/// Why it is passed on, on all ranks alike; Passed::none where begin() has to look.
template <class Judge>
[[gnu::always_inline]] inline Passed reasonToPassAtOnce(Kind kind, MPI_Comm comm, const MPI_Request* request,
                                                        const CallingThread& thread, const Judge& judge) {
  Plugin& self = plugin();
  if (thread.isInside || !self.isActive || !self.takesRequests || request == nullptr) return Passed::none;
  Communicator* const communicator = self.communicators.findLast(comm, thread);
  if (communicator == nullptr || communicator->passed) return Passed::none;
  const Judged judged = judge(*communicator);
  const std::size_t least = leastBytes(kind);
  if (judged.passed != Passed::none) return Passed::none;
  if (!UsualBytes::isAbout(kind)) return judged.bytes < least ? Passed::small : Passed::none;
  UsualBytes& usual = communicator->usual;
  if (least == 0 || (usual.isKnown(kind) && usual.known(kind) >= least)) return Passed::none;
  if (least < SIZE_MAX) usual.note(kind, judged.bytes);
  return usual.isKnown(kind) || least == SIZE_MAX ? Passed::small : Passed::unknown;
}

/// The function itself: `pass()`, or `look()` which takes over or passes on.
template <class Judge, class Pass, class Look>
[[gnu::always_inline]] inline int serveRequest(Function function, Kind kind, MPI_Comm comm, const MPI_Request* request,
                                               const Judge& judge, const Pass& pass, const Look& look) {
  CallingThread& thread = callingThread();
  const Passed why = reasonToPassAtOnce(kind, comm, request, thread, judge);
  if (why == Passed::none) return look();
  const Inside inside(thread);
  plugin().report.countPassed(function, why);
  return pass();
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

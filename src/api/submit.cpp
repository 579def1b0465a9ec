#include "api/submit.hpp"

#include <span>

#include "api/boundary.hpp"
#include "api/group.hpp"
#include "api/handles.hpp"
#include "api/stream.hpp"

namespace tacc {

namespace {

/// Records the unit or gives it to its stream. The program's thread is inside `comm`.
[[gnu::noinline]] void submitLater(taccComm& comm, taccStream_t stream, Unit unit) {
  StreamPointer target = findStream(stream);
  if (groupIsOpen()) {
    recordUnit(comm, std::move(target), std::move(unit));
    return;
  }
  unit.turn = comm.sequencer.take();
  target->push({CommReference(&comm), std::move(unit), nullptr});
}

}  // namespace

void submitChecked(const char* function, taccComm& comm, taccStream_t stream, Call& call, const ArgumentNames& names) {
  const taccRedOp_t op = call.op;
  checkCall(comm, call, names);
  if (stream != nullptr || groupIsOpen()) [[unlikely]]
    return submitLater(comm, stream, Unit::collective(function, call, op));
  comm.waitForStreams();
  comm.communicator->run(call);
}

taccResult_t submitUnequal(const char* function, taccComm_t comm, taccStream_t stream, Call&& call,
                           const UnequalArguments& arguments) noexcept {
  try {
    const Entry entry(comm);
    const taccRedOp_t op = call.op;
    checkUnequal(*comm, call, arguments, comm->checkedBlocks);
    if (stream != nullptr || groupIsOpen()) {
      submitLater(*comm, stream, Unit::collective(function, call, op));
      return taccSuccess;
    }
    comm->waitForStreams();
    comm->communicator->run(call);
    return taccSuccess;
  } catch (...) {
    return recordExceptionInGroup(function, comm);
  }
}

taccResult_t submitExchange(const char* function, taccComm_t comm, taccStream_t stream,
                            const PointToPoint& operation) noexcept {
  try {
    const Entry entry(comm);
    checkPointToPoint(*comm, operation, groupIsOpen());
    if (stream != nullptr || groupIsOpen()) [[unlikely]] {
      submitLater(*comm, stream, Unit::exchange(function, operation));
      return taccSuccess;
    }
    comm->waitForStreams();
    comm->communicator->exchange(std::span(&operation, 1));
    return taccSuccess;
  } catch (...) {
    return recordExceptionInGroup(function, comm);
  }
}

}  // namespace tacc

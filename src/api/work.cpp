#include "api/work.hpp"

#include <cstring>
#include <system_error>
#include <thread>

#include "api/boundary.hpp"
#include "api/fusion.hpp"
#include "api/stream.hpp"
#include "core/exceptions.hpp"
#include "core/quiet_thread.hpp"
#include "core/types.hpp"
#include "core/uncancelled.hpp"

namespace tacc {

namespace {

/// What ended a unit's run. What ended it before its communicator knew is told to the other ranks.
Error noteFailure(const char* function, taccComm* comm) noexcept {
  const std::exception_ptr what = std::current_exception();
  Error error = describeSafely(what, function, comm);
  setLastError(error, comm);
  if (!isError(what)) failCommunicator(comm, error);
  return error;
}

void runInTurn(taccComm& comm, Unit& unit, RunBy by) {
  const Visit visit(comm, by == RunBy::program ? VisitOf::program : VisitOf::stream);
  runUnit(&comm, unit);
}

}  // namespace

Unit Unit::collective(const char* function, const Call& call, taccRedOp_t op) {
  Unit unit;
  unit.function = function;
  unit.call = call;
  unit.op = op;
  if (call.factor != nullptr) {
    unit.hasFactor = true;
    std::memcpy(unit.factor, call.factor, sizeOf(call.type));
  }
  if (call.user != nullptr) unit.user = *call.user;
  if (call.blocks != nullptr) unit.blocks = std::make_shared<const UnequalBlocks>(*call.blocks);
  return unit;
}

Unit Unit::exchange(const char* function, const PointToPoint& operation) {
  Unit unit;
  unit.kind = Kind::exchange;
  unit.function = function;
  unit.operation = operation;
  return unit;
}

void runUnit(taccComm* comm, Unit& unit) {
  unit.call.factor = unit.hasFactor ? unit.factor : nullptr;
  unit.call.user = unit.user.function != nullptr ? &unit.user : nullptr;
  unit.call.blocks = unit.blocks.get();
  switch (unit.kind) {
    case Unit::Kind::collective:
      comm->communicator->run(unit.call);
      break;
    case Unit::Kind::fused:
      runFused(*comm, unit);
      break;
    case Unit::Kind::exchange:
      comm->communicator->exchange(unit.operations.empty() ? std::span<const PointToPoint>(&unit.operation, 1)
                                                           : std::span<const PointToPoint>(unit.operations));
      break;
    case Unit::Kind::creation: {
      const Uncancelled making;
      unit.creation->made = unit.creation->make();
      break;
    }
    case Unit::Kind::calls:
      unit.calls(*comm->communicator);
      break;
    case Unit::Kind::gate:
      break;
  }
}

std::optional<Error> runUnits(taccComm* comm, std::span<Unit> units, RunBy by) noexcept {
  std::optional<Error> error;
  for (Unit& unit : units) {
    try {
      if (comm == nullptr) {
        runUnit(nullptr, unit);
        continue;
      }
      const bool open = [&] {
        const Uncancelled wait;
        return comm->sequencer.waitTurn(unit.turn);
      }();
      if (!error) {
        if (!open) fail(taccRemoteError, "the communicator was aborted before this work ran");
        runInTurn(*comm, unit, by);
      }
    } catch (...) {
      error = noteFailure(unit.function, comm);
    }
    if (unit.outcome && unit.kind != Unit::Kind::gate) *unit.outcome = error;
    if (unit.outcome && unit.kind == Unit::Kind::gate && !error) error = *unit.outcome;
    if (comm != nullptr) comm->sequencer.finish();
  }
  return error;
}

void abandonUnits(taccComm* comm, std::span<Unit> units, const Error& reason) noexcept {
  if (comm == nullptr) return;
  failCommunicator(comm, reason);
  setLastError(reason, comm);
  for (const Unit& unit : units) {
    comm->sequencer.waitTurn(unit.turn);
    if (unit.outcome && unit.kind != Unit::Kind::gate) *unit.outcome = reason;
    comm->sequencer.finish();
  }
}

void Batch::run(RunBy by) noexcept {
  if (lanes.size() == 1) {
    lanes[0].error = runUnits(lanes[0].comm.get(), lanes[0].units, by);
    return;
  }
  const Uncancelled others;
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < lanes.size(); ++i) {
    Lane& lane = lanes[i];
    try {
      threads.reserve(lanes.size());  // before a thread is there that would have to end
      threads.push_back(startQuietThread([&lane, by] { lane.error = runUnits(lane.comm.get(), lane.units, by); }));
    } catch (...) {
      lane.error = noteFailure("starting a thread for a group's calls", nullptr);
      abandonUnits(lane.comm.get(), lane.units, *lane.error);
    }
  }
  if (!lanes.empty()) lanes[0].error = runUnits(lanes[0].comm.get(), lanes[0].units, by);
  for (std::thread& thread : threads) thread.join();
}

void Batch::abandon(const Error& reason) noexcept {
  for (Lane& lane : lanes) {
    lane.error = reason;
    abandonUnits(lane.comm.get(), lane.units, reason);
  }
}

const Error* Batch::firstError() const noexcept {
  for (const Lane& lane : lanes) {
    if (lane.error) return &*lane.error;
  }
  return nullptr;
}

std::optional<Error> Work::run() noexcept {
  if (after.stream) {
    after.stream->waitFor(after.number);
    return std::nullopt;
  }
  if (!batch) return runUnits(comm.get(), std::span(&unit, 1), RunBy::stream);
  batch->run(RunBy::stream);
  const Error* const error = batch->firstError();
  return error != nullptr ? std::optional<Error>(*error) : std::nullopt;
}

void Work::abandon(const Error& reason) noexcept {
  if (after.stream) return;
  if (batch) {
    batch->abandon(reason);
  } else {
    abandonUnits(comm.get(), std::span(&unit, 1), reason);
  }
}

}  // namespace tacc

#include "api/group.hpp"

#include <algorithm>
#include <utility>

#include "api/boundary.hpp"
#include "api/fusion.hpp"
#include "core/exceptions.hpp"
#include "core/per_thread.hpp"

namespace tacc {

constinit thread_local int groupDepth [[gnu::tls_model("initial-exec")]] = 0;

namespace {

struct Recorded {
  CommReference comm;  // none: joins a communicator
  StreamPointer stream;
  Unit unit;
};

struct RecordedGroup {
  std::vector<Recorded> calls;
  std::vector<std::unique_ptr<Creation>> creations;
  std::optional<Error> error;  // of the first call that failed its check
  bool isLoss = false;         // ... or for a reason of this process
  std::vector<CommReference> comms;
};

/// What each thread has recorded. Opening a group needs no memory, so that a rank without any can still tell the others
/// of its calls, which they wait for.
PerThread<RecordedGroup> groups;
/// There was no memory for a group in which a call has failed.
constinit thread_local bool groupIsLost [[gnu::tls_model("initial-exec")]] = false;

/// A unit, where it runs, and the other streams whose calls it has taken in.
struct Placed {
  StreamPointer stream;
  Unit unit;
  std::vector<StreamPointer> others;

  void serve(StreamPointer other) {
    if (other != stream && std::ranges::find(others, other) == others.end()) others.push_back(std::move(other));
  }
};

/// What one communicator does in the group.
struct Sequence {
  CommReference comm;
  std::vector<Placed> collectives;  // and splits
  std::optional<Placed> exchange;
  std::uint64_t units = 0;  // placed, gates among them
};

/// What one stream does in the group; without a stream, what the program's thread does. Work::batch is set.
using StreamBatch = taccStream::Given;

void add(Sequence& sequence, Placed placed) {
  if (placed.unit.kind == Unit::Kind::exchange) {
    const PointToPoint operation = placed.unit.operation;
    if (!sequence.exchange)
      sequence.exchange = std::move(placed);
    else
      sequence.exchange->serve(std::move(placed.stream));
    sequence.exchange->unit.operations.push_back(operation);
    return;
  }
  if (!sequence.collectives.empty()) {
    Placed& last = sequence.collectives.back();
    if (canFuse(last.unit, placed.unit)) {
      fuse(last.unit, placed.unit);
      last.serve(std::move(placed.stream));
      return;
    }
  }
  sequence.collectives.push_back(std::move(placed));
}

/// The calls by communicator, in the order of each communicator's first call. Every joining is a sequence of its own.
std::vector<Sequence> sortByCommunicator(std::vector<Recorded>& calls) {
  std::vector<Sequence> sequences;
  for (Recorded& call : calls) {
    auto same = sequences.end();
    if (call.comm.get() != nullptr) {
      same = std::find_if(sequences.begin(), sequences.end(),
                          [&](const Sequence& sequence) { return sequence.comm.get() == call.comm.get(); });
    }
    if (same == sequences.end()) {
      sequences.emplace_back();
      same = std::prev(sequences.end());
      same->comm = std::move(call.comm);
    }
    add(*same, {std::move(call.stream), std::move(call.unit), {}});
  }
  return sequences;
}

/// Puts a communicator's unit into a stream's batch. The units of one communicator come one after the other.
void placeUnit(std::vector<StreamBatch>& batches, taccComm* comm, const StreamPointer& stream, Unit unit) {
  auto batch =
      std::find_if(batches.begin(), batches.end(), [&](const StreamBatch& other) { return other.stream == stream; });
  if (batch == batches.end()) {
    batch = batches.insert(batch, {stream, {CommReference(), Unit(), std::make_unique<Batch>()}});
  }
  std::vector<Lane>& lanes = batch->work.batch->lanes;
  if (lanes.empty() || comm == nullptr || lanes.back().comm.get() != comm) {
    lanes.emplace_back();
    if (comm != nullptr) lanes.back().comm = CommReference(comm);
  }
  lanes.back().units.push_back(std::move(unit));
}

/// With a gate before it and one behind it on each other stream that it serves: it waits for what these do before, and
/// they wait for it.
void place(std::vector<StreamBatch>& batches, Sequence& sequence, Placed& placed) {
  taccComm* const comm = sequence.comm.get();
  Unit& unit = placed.unit;
  if (!placed.others.empty()) unit.outcome = std::make_shared<std::optional<Error>>();
  const auto placeGates = [&, function = unit.function](const std::shared_ptr<std::optional<Error>>& outcome) {
    for (const StreamPointer& other : placed.others) {
      Unit gate;
      gate.kind = Unit::Kind::gate;
      gate.function = function;
      gate.outcome = outcome;
      gate.turn = sequence.units++;
      placeUnit(batches, comm, other, std::move(gate));
    }
  };
  const auto outcome = unit.outcome;
  placeGates(nullptr);
  unit.turn = sequence.units++;
  placeUnit(batches, comm, placed.stream, std::move(unit));
  placeGates(outcome);
}

/// Units hold their number within their communicator's sequence; this makes it a turn.
void takeTurns(std::vector<Sequence>& sequences, std::vector<StreamBatch>& batches) noexcept {
  for (Sequence& sequence : sequences) {
    if (sequence.comm.get() == nullptr) continue;
    const std::uint64_t first = sequence.comm->sequencer.take(sequence.units);
    for (StreamBatch& batch : batches) {
      for (Lane& lane : batch.work.batch->lanes) {
        if (lane.comm.get() != sequence.comm.get()) continue;
        for (Unit& unit : lane.units) unit.turn += first;
      }
    }
  }
}

/// Gives the communicators that were made to the program.
void handOut(std::vector<std::unique_ptr<Creation>>& creations) {
  std::vector<std::unique_ptr<Communicator>> made;
  for (auto& creation : creations) made.push_back(std::move(creation->made));
  const std::vector<taccComm_t> handles = makeHandles(std::move(made));
  for (std::size_t i = 0; i < creations.size(); ++i) *creations[i]->result = handles[i];
}

/// The group's calls do not run, and their communicators' other ranks must not wait for them.
void failAll(const std::vector<CommReference>& comms, const Error& error) noexcept {
  for (const CommReference& comm : comms) failCommunicator(comm.get(), error);
}

/// Does all that can fail before the first turn is taken; from there on every unit runs or is abandoned.
void runGroup(RecordedGroup group) {
  std::vector<Sequence> sequences = sortByCommunicator(group.calls);
  std::vector<Entry> entries;
  entries.reserve(sequences.size());
  std::vector<StreamBatch> batches;
  for (Sequence& sequence : sequences) {
    if (sequence.comm.get() != nullptr) entries.emplace_back(sequence.comm.get());
    for (Placed& placed : sequence.collectives) place(batches, sequence, placed);
    if (sequence.exchange) place(batches, sequence, *sequence.exchange);
  }
  takeTurns(sequences, batches);
  std::unique_ptr<Batch> own;
  const auto ownBatch =
      std::find_if(batches.begin(), batches.end(), [](const StreamBatch& batch) { return batch.stream == nullptr; });
  if (ownBatch != batches.end()) {
    own = std::move(ownBatch->work.batch);
    batches.erase(ownBatch);
  }
  taccStream::pushTogether(batches);
  if (!own) return;
  own->run(RunBy::program);
  if (const Error* error = own->firstError()) throw Error(*error);
  handOut(group.creations);
}

template <class IsOf>
void checkNoCall(const IsOf& isOf, const char* what) {
  const RecordedGroup* const group = groups.find();
  if (group != nullptr && std::ranges::any_of(group->calls, isOf)) {
    fail(taccInvalidUsage, "the {} has calls in the group that is open in this thread; end the group first", what);
  }
}

/// For failAll(), which must not fail itself.
void noteUse(taccComm& comm) {
  auto& comms = groups.get().comms;
  if (std::ranges::none_of(comms, [&](const CommReference& other) { return other.get() == &comm; }))
    comms.emplace_back(&comm);
}

}  // namespace

void startGroup() noexcept { ++groupDepth; }

void endGroup() {
  if (groupDepth == 0) fail(taccInvalidUsage, "no group is open in this thread; taccGroupStart opens one");
  if (--groupDepth > 0) return;
  RecordedGroup* const recorded = groups.find();
  RecordedGroup group = recorded == nullptr ? RecordedGroup() : std::exchange(*recorded, RecordedGroup());
  if (std::exchange(groupIsLost, false) && !group.error) {
    group.error = describeSafely(std::make_exception_ptr(std::bad_alloc()), "taccGroupEnd", nullptr);
    group.isLoss = true;
  }
  const std::vector<CommReference> comms = std::move(group.comms);
  if (group.error) {
    if (group.isLoss) failAll(comms, *group.error);
    throw Error(*group.error);
  }
  try {
    runGroup(std::move(group));
  } catch (...) {
    const std::exception_ptr what = std::current_exception();
    if (!isError(what)) failAll(comms, describeSafely(what, "taccGroupEnd", nullptr));
    throw;
  }
}

void failGroupWith(const Error& error, bool isLoss) noexcept {
  try {
    RecordedGroup& group = groups.get();
    if (!group.error) group.error = error;
    group.isLoss = group.isLoss || isLoss;
  } catch (const std::bad_alloc&) {
    groupIsLost = true;
  }
}

void recordUnit(taccComm& comm, StreamPointer stream, Unit unit) {
  noteUse(comm);
  groups.get().calls.push_back({CommReference(&comm), std::move(stream), std::move(unit)});
}

void recordCreation(taccComm* parent, const char* function, std::unique_ptr<Creation> creation) {
  if (parent != nullptr) noteUse(*parent);
  Unit unit;
  unit.kind = Unit::Kind::creation;
  unit.function = function;
  unit.creation = creation.get();
  groups.get().creations.push_back(std::move(creation));
  groups.get().calls.push_back(
      {parent != nullptr ? CommReference(parent) : CommReference(), StreamPointer(), std::move(unit)});
}

void checkNoGroup() {
  if (groupIsOpen()) fail(taccInvalidUsage, "a group is open in this thread; end the group first");
}

void checkNotInGroup(const taccComm& comm) {
  checkNoCall([&](const Recorded& call) { return call.comm.get() == &comm; }, "communicator");
}

void checkNotInGroup(const StreamPointer& stream) {
  checkNoCall([&](const Recorded& call) { return call.stream == stream; }, "stream");
}

}  // namespace tacc

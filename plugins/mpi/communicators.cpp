#include "communicators.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absences.hpp"
#include "lanes.hpp"
#include "meeting.hpp"
#include "plugin.hpp"
#include "progress.hpp"

namespace tacc::mpi {
namespace {

/// The unique id of rank 0, or why there is none.
struct Start {
  int result;
  taccUniqueId id;
};

taccConfig_t configOf(Communicator& communicator, void (*idle)(void*)) {
  taccConfig_t config = TACC_CONFIG_INITIALIZER;
  config.operationTimeout = 0;  // MPI waits for ever, and so may a program that is right
  config.idle = idle;
  config.idleContext = &communicator;
  return config;
}

void endMessage(Communicator& communicator) noexcept {
  if (communicator.never == MPI_REQUEST_NULL) return;
  PMPI_Cancel(&communicator.never);
  PMPI_Wait(&communicator.never, MPI_STATUS_IGNORE);
}

/// The ranks by their numbers in this world, MPI_UNDEFINED for those of others.
std::vector<int> membersOf(MPI_Comm mpi, int ranks) {
  MPI_Group here = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  PMPI_Comm_group(mpi, &here);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> ours(static_cast<std::size_t>(ranks)), places(ours.size(), MPI_UNDEFINED);
  std::iota(ours.begin(), ours.end(), 0);
  PMPI_Group_translate_ranks(here, ranks, ours.data(), world, places.data());
  PMPI_Group_free(&here);
  PMPI_Group_free(&world);
  return places;
}

/// Whether all ranks were started together. Of those that were spawned, or that connected, nobody knows whether they
/// have the library at all: at MPI_Init each world asks for its own ranks only. The answer is the same on all ranks, as
/// each of a communicator of several worlds finds ranks outside of its own.
bool isOfOneWorld(MPI_Comm mpi, int ranks) {
  const std::vector<int> members = membersOf(mpi, ranks);
  return std::ranges::find(members, MPI_UNDEFINED) == members.end();
}

/// Whether it can be used, as far as this rank knows.
bool isWell(taccComm_t comm) {
  taccResult_t state = taccSuccess;
  return comm != nullptr && taccCommGetAsyncError(comm, &state) == taccSuccess && state == taccSuccess;
}

/// Whether it holds on all ranks.
bool holdsOnAll(bool here, MPI_Comm mpi) {
  int mine = here ? 1 : 0, all = 0;
  reduceOfAll(&mine, &all, 1, MPI_INT, MPI_MIN, mpi);
  return all != 0;
}

// To make a communicator of some of the ranks takes about half a millisecond, or some milliseconds where they have to
// meet by sockets: as long as hundreds, or thousands, of short calls of an MPI. Of such communicators many are freed
// after a few calls.
constexpr int callsOfSome = 16;

}  // namespace

taccResult_t Communicators::joinByMeeting(Communicator& communicator) {
  Start start{};
  if (communicator.rank == 0) start.result = static_cast<int>(taccGetUniqueId(&start.id));
  hearFirst(&start, static_cast<int>(sizeof start), communicator.mpi);
  if (start.result != static_cast<int>(taccSuccess))
    return communicator.rank == 0 ? static_cast<taccResult_t>(start.result) : taccRemoteError;
  taccConfig_t config = configOf(communicator, progressMpi);
  taccTransport_t transport;
  if (messages_.isOpen()) {
    if (messages_.fill(communicator, transport) != taccSuccess) return taccSystemError;
    config.transport = &transport;
  }
  return taccCommInitRankConfig(&communicator.tacc, communicator.ranks, start.id, communicator.rank, &config);
}

/// The same on all ranks.
bool Communicators::hasAllRanks(MPI_Comm mpi) const noexcept {
  int likeness = MPI_UNEQUAL;
  return isInOrder_ && PMPI_Comm_compare(mpi, MPI_COMM_WORLD, &likeness) == MPI_SUCCESS && likeness != MPI_UNEQUAL;
}

/// The first of all ranks. They make such ones in one order: no call on one of them ends before all have come to it.
taccResult_t Communicators::joinWithStem(Communicator& communicator) {
  const taccResult_t result = joinByMeeting(communicator);
  if (result != taccSuccess) return result;
  dropStem();
  const taccConfig_t config = configOf(stem_, progressMpi);
  return taccCommSplit(communicator.tacc, 0, stem_.rank, &stem_.tacc, &config);
}

/// Its ranks are all here, and nowhere else: messages that go between two of them are of this communicator.
taccResult_t Communicators::joinByStem(Communicator& communicator) {
  const std::vector<int> members = membersOf(communicator.mpi, communicator.ranks);
  const taccConfig_t config = configOf(communicator, progressMpi);
  return taccCommCreateGroup(stem_.tacc, members.data(), communicator.ranks, &communicator.tacc, &config);
}

void Communicators::dropStem() noexcept {
  if (stem_.tacc != nullptr) taccCommAbort(stem_.tacc);
  stem_.tacc = nullptr;
}

void Communicators::open(bool usesMpiTransport, bool isInOrder) {
  if (usesMpiTransport) messages_.open();
  learnHowMpiYields();
  // Communicators over MPI's messages are not parts of others.
  isInOrder_ = isInOrder && !usesMpiTransport;
  PMPI_Comm_rank(MPI_COMM_WORLD, &stem_.rank);
  endingOnes_.passed = Passed::noCommunicator;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key_, this);
  PMPI_Comm_dup(MPI_COMM_SELF, &self_);
  PMPI_Irecv(nullptr, 0, MPI_BYTE, 0, 0, self_, &stem_.never);
}

void Communicators::close() noexcept {
  for (;;) {
    MPI_Comm oldest = MPI_COMM_NULL;
    {
      const std::lock_guard lock(mutex_);
      if (all_.empty()) break;
      oldest = all_.front()->mpi;
    }
    if (PMPI_Comm_delete_attr(oldest, key_) != MPI_SUCCESS) break;
  }
  if (stem_.tacc != nullptr) taccCommDestroy(stem_.tacc);
  endMessage(stem_);
  PMPI_Comm_free_keyval(&key_);
  PMPI_Comm_free(&self_);
  messages_.close();
}

Communicator* Communicators::look(MPI_Comm mpi, const CallingThread& thread) noexcept {
  for (const EndingCommunicator* one = thread.ending; one != nullptr; one = one->outer)
    if (one->mpi == mpi) return &endingOnes_;
  void* attribute = nullptr;
  int isThere = 0;
  if (PMPI_Comm_get_attr(mpi, key_, &attribute, &isThere) != MPI_SUCCESS) return nullptr;
  if (isThere != 0) return static_cast<Communicator*>(attribute);
  // From here on a rank that gave up would leave the others waiting: what fails ends the program.
  auto made = std::make_unique<Communicator>();
  Communicator* const communicator = made.get();
  communicator->mpi = mpi;
  int isInter = 0;
  PMPI_Comm_test_inter(mpi, &isInter);
  PMPI_Comm_rank(mpi, &communicator->rank);
  PMPI_Comm_size(mpi, &communicator->ranks);
  if (isInter != 0)
    communicator->passed = Passed::intercommunicator;
  else if (communicator->ranks == 1)
    communicator->passed = Passed::alone;
  else if (!isOfOneWorld(mpi, communicator->ranks))
    communicator->passed = Passed::otherWorld;
  {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(made));
  }
  if (PMPI_Comm_set_attr(mpi, key_, communicator) != MPI_SUCCESS) PMPI_Abort(mpi, MPI_ERR_OTHER);
  return communicator;
}

int Communicators::end(MPI_Comm* mpi, int (*free)(MPI_Comm*)) {
  CallingThread& thread = callingThread();
  const EndingCommunicator ending{mpi == nullptr ? MPI_COMM_NULL : *mpi, thread.ending};
  bool isKnown = false;
  {
    const std::lock_guard lock(mutex_);
    isKnown = std::ranges::any_of(all_, [&](const auto& one) { return one->mpi == ending.mpi; });
  }
  if (isKnown) PMPI_Comm_delete_attr(ending.mpi, key_);
  thread.ending = &ending;
  const int code = free(mpi);
  thread.ending = ending.outer;
  ended_.fetch_add(1, std::memory_order_release);
  return code;
}

bool Communicators::leavesFirst(Communicator& communicator) const noexcept {
  std::optional<int>& left = communicator.callsBeforeJoining;
  if (!left) {
    const bool waits = communicator.mpi != MPI_COMM_WORLD && !hasAllRanks(communicator.mpi);
    left = waits && plugin().contestAfter > 0 ? callsOfSome : 0;
  }
  if (*left == 0) return false;
  --*left;
  return true;
}

void Communicators::join(Communicator& communicator) noexcept {
  // After this all are here: whoever joins owes nobody of them the progress of a message.
  if (const auto speaker = firstInTrouble(communicator, hasFilesToMeet() ? taccSuccess : taccSystemError)) {
    leaveToMpi(communicator, *speaker, describeNoFiles());
    return;
  }
  PMPI_Irecv(nullptr, 0, MPI_BYTE, 0, 0, self_, &communicator.never);
  std::string why;
  std::optional<int> speaker;
  if (isInOrder_ && holdsOnAll(isWell(stem_.tacc), communicator.mpi)) {
    speaker = attempt(communicator, &Communicators::joinByStem, why);
    if (!speaker) return;
    dropStem();  // what other ranks did may have ended it
  }
  const bool makesStem = hasAllRanks(communicator.mpi);
  speaker = attempt(communicator, makesStem ? &Communicators::joinWithStem : &Communicators::joinByMeeting, why);
  if (!speaker) return;
  if (makesStem) {  // some may have it and some not, and others may do without
    dropStem();
    isInOrder_ = false;
  }
  SharedMessages::keepRange(communicator);
  endMessage(communicator);
  leaveToMpi(communicator, *speaker, why);
}

/// Who says why it failed, and `why` of this rank; nothing where all have joined. Then the ranks that had, have not.
std::optional<int> Communicators::attempt(Communicator& communicator, taccResult_t (Communicators::*way)(Communicator&),
                                          std::string& why) {
  const taccResult_t result = (this->*way)(communicator);
  why = result == taccSuccess ? "" : taccGetLastError(nullptr);
  const std::optional<int> speaker = firstInTrouble(communicator, result);
  if (speaker && communicator.tacc != nullptr) taccCommAbort(std::exchange(communicator.tacc, nullptr));
  return speaker;
}

/// MPI calls this when the communicator ends.
int Communicators::forget(MPI_Comm /*mpi*/, int /*key*/, void* attribute, void* self) noexcept {
  static_cast<Communicators*>(self)->remove(static_cast<Communicator*>(attribute));
  return MPI_SUCCESS;
}

void Communicators::remove(Communicator* communicator) noexcept {
  std::unique_ptr<Communicator> ended;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(all_, communicator, &std::unique_ptr<Communicator>::get);
    if (found == all_.end()) return;
    ended = std::move(*found);
    all_.erase(found);
    ended_.fetch_add(1, std::memory_order_release);
  }
  const Inside inside;  // MPI_Comm_free or the like
  plugin().requests.forget(*ended);
  endLanes(*ended);
  if (ended->tacc != nullptr) taccCommDestroy(ended->tacc);
  if (ended->stream != nullptr) taccStreamDestroy(ended->stream);
  endMessage(*ended);
}

/// Called while a tacc call waits: MPI moves what it has under way only inside its own functions. Whoever waits in an
/// MPI function of the program's may call this one, whatever the level of thread support; the thread of a stream may
/// not.
void Communicators::progressMpi(void* communicator) {
  if (Inside::isTrue()) letMpiProgress(static_cast<Communicator*>(communicator)->never);
}

}  // namespace tacc::mpi

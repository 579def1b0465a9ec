#include "api/handles.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <system_error>
#include <thread>

#include "api/joining.hpp"
#include "core/error.hpp"
#include "core/fork.hpp"
#include "core/quiet_thread.hpp"
#include "core/uncancelled.hpp"

namespace tacc {

namespace {

constexpr std::size_t handlesHeldBack = 256;  // handles of ended communicators that wait before one is used again

/// All handles of the process. Never destroyed, as threads may still look at handles while the process ends.
class HandlePool {
 public:
  static HandlePool& instance() {
    static HandlePool* const pool = new HandlePool;
    return *pool;
  }

  taccComm* take() {
    const std::lock_guard lock(mutex_);
    if (free_.size() <= handlesHeldBack) {
      all_.push_back(std::make_unique<taccComm>());
      return all_.back().get();
    }
    taccComm* const comm = free_.front();
    free_.pop_front();
    return comm;
  }

  /// When memory is short the handle is not used again, which is all the harm there is.
  void give(taccComm* comm) noexcept {
    const std::lock_guard lock(mutex_);
    try {
      free_.push_back(comm);
    } catch (const std::bad_alloc&) {
    }
  }

  /// In a forked child, with the mutex held.
  void leaveToParent() noexcept {
    for (const auto& comm : all_) {
      const Life life = comm->life.load();
      if (life != Life::destroyed && life != Life::aborted) comm->life.store(Life::inherited);
    }
  }

  /// Whether this thread is inside a call on any communicator. Looks at all, as only an abort asks.
  bool hasThisThreadInside() noexcept {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(all_, [](const auto& comm) { return comm->inside.load() == ::pthread_self(); });
  }

  std::uint64_t nextSerial() noexcept { return serial_.fetch_add(1, std::memory_order_relaxed); }

 private:
  ForkMutex mutex_;
  std::vector<std::unique_ptr<taccComm>> all_;
  std::deque<taccComm*> free_;
  std::atomic<std::uint64_t> serial_{0};
};

/// The pool exists before the first fork: a hook must not allocate.
const ForkHook hook((HandlePool::instance(), []() noexcept { HandlePool::instance().leaveToParent(); }));

/// Ending a communicator is rare, so those who leave it do not signal, and the one who ends it looks again and again.
template <class Condition>
void pollUntil(Condition condition) noexcept {
  for (int i = 0; i < 100; ++i) {
    if (condition()) return;
    std::this_thread::yield();
  }
  while (!condition()) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

/// The visits that this thread is in, the last one first.
constinit thread_local Visit* visits [[gnu::tls_model("initial-exec")]] = nullptr;

void prepare(taccComm& comm, int rank, int ranks, std::uint64_t serial) {
  {
    const std::lock_guard lock(comm.errorMutex);
    comm.errorText.clear();
  }
  comm.rank.store(rank);
  comm.ranks.store(ranks);
  comm.process.store(::getpid());
  comm.operators.reset(serial);
  comm.sequencer.reset();
  comm.lastAlgorithm.clear();
  comm.references.store(1);
}

void start(taccComm& comm, std::unique_ptr<Communicator> communicator, std::uint64_t serial) {
  prepare(comm, communicator->rank(), communicator->ranks(), serial);
  comm.communicator = std::move(communicator);
  comm.life.store(Life::active);
}

void release(taccComm* comm) noexcept {
  if (comm->references.fetch_sub(1) == 1) HandlePool::instance().give(comm);
}

/// There is no memory for a handle: the other ranks are not to wait until this one takes part, or leaves.
void giveUp(const std::unique_ptr<Communicator>& communicator) noexcept {
  if (communicator) communicator->abort("out of memory");  // so short a string needs none
}

}  // namespace

std::vector<taccComm_t> makeHandles(std::vector<std::unique_ptr<Communicator>> communicators) {
  HandlePool& pool = HandlePool::instance();
  std::vector<taccComm_t> handles;
  try {
    handles.reserve(communicators.size());
    for (const auto& communicator : communicators) handles.push_back(communicator ? pool.take() : nullptr);
  } catch (...) {
    for (taccComm_t const handle : handles) {
      if (handle != nullptr) pool.give(handle);
    }
    for (const auto& communicator : communicators) giveUp(communicator);
    throw;
  }
  for (std::size_t i = 0; i < handles.size(); ++i) {
    if (handles[i] != nullptr) start(*handles[i], std::move(communicators[i]), pool.nextSerial());
  }
  return handles;
}

taccComm_t makeHandle(std::unique_ptr<Communicator> communicator) {
  try {
    taccComm_t const handle = HandlePool::instance().take();
    start(*handle, std::move(communicator), HandlePool::instance().nextSerial());
    return handle;
  } catch (...) {
    giveUp(communicator);
    throw;
  }
}

taccComm_t makeJoiningHandle(int rank, int ranks) {
  taccComm_t const handle = HandlePool::instance().take();
  prepare(*handle, rank, ranks, HandlePool::instance().nextSerial());
  handle->life.store(Life::joining);
  return handle;
}

bool completeHandle(taccComm& comm, std::unique_ptr<Communicator>& communicator) {
  std::swap(comm.communicator, communicator);  // nobody looks at it while the handle is joining
  Life life = Life::joining;
  if (comm.life.compare_exchange_strong(life, Life::active)) return true;
  std::swap(comm.communicator, communicator);
  return false;
}

void freeHandle(taccComm& comm, bool ownEntry) noexcept {
  comm.joining.reset();  // ends it, if it goes on
  pollUntil([&] {
    return (ownEntry || comm.inside.load() == pthread_t{}) && comm.observers.load() == 0 && comm.visitors.load() == 0;
  });
  comm.communicator.reset();
  comm.registrations.clear();
  comm.fusionBuffer = {};
  comm.isLeftToCall = false;
  if (ownEntry) comm.inside.store({});
  release(&comm);
}

namespace {

/// For a thread that is itself in a call, for which those that are inside this communicator may wait: a call of EASGD
/// for its stream, a group for its other calls, and a function of the program that aborts another communicator for
/// one that aborts this thread's.
void freeBehindCalls(taccComm& comm) noexcept {
  if (comm.inside.load() != pthread_t{} || comm.visitors.load() != 0) {
    try {
      startQuietThread([&comm] { freeHandle(comm, false); }).detach();
      return;
    } catch (const std::system_error&) {  // no thread: this one waits for the calls
    }
  }
  freeHandle(comm, false);
}

}  // namespace

void freeAborted(taccComm& comm) noexcept {
  if (Visit* const visit = Visit::ofThisThread(comm); visit != nullptr)
    visit->leaveHandle();
  else if (comm.inside.load() == ::pthread_self())
    comm.isLeftToCall = true;
  else if (visits != nullptr || HandlePool::instance().hasThisThreadInside())
    freeBehindCalls(comm);
  else
    freeHandle(comm, false);
}

void failOnHandle(const taccComm* comm) {
  if (comm == nullptr) fail(taccInvalidArgument, "comm is NULL");
  if (!isHandle(comm)) {
    fail(taccInvalidArgument, "comm {} is not a communicator; it must come from one of the taccCommInit functions",
         static_cast<const void*>(comm));
  }
  switch (comm->life.load()) {
    case Life::finalized:
      fail(taccInvalidUsage, "comm has been finalized; only queries and taccCommDestroy are allowed after that");
    case Life::aborted:
      fail(taccInvalidUsage, "comm has been aborted; its handle must not be used any more");
    case Life::joining:
      fail(taccInvalidUsage,
           "comm is still joining; ask taccCommGetAsyncError until it says something else than taccInProgress");
    case Life::notJoined:
      fail(taccInvalidUsage, "comm could not join; taccGetLastError(comm) says why, taccCommDestroy frees it");
    case Life::destroyed:
      fail(taccInvalidArgument, "comm has been destroyed; its handle must not be used any more");
    case Life::inherited:
      fail(taccInvalidUsage,
           "comm is of rank {} in process {}, from which this process was forked; a child makes communicators of its "
           "own, or calls exec",
           comm->rank.load(), comm->process.load());
    case Life::active:
      break;
  }
  fail(taccInternalError, "comm is fine but was refused");
}

namespace {

[[noreturn]] void failOnOwnThread() {
  fail(taccInvalidUsage,
       "this thread is inside a call on this communicator; what a call calls (a reduction or an idle function of the "
       "program) can only abort or revoke it");
}

}  // namespace

void Entry::failOnSecondThread(const taccComm& comm) {
  if (!has(comm.life.load(), Needs::alive)) failOnHandle(&comm);
  if (comm.inside.load() == ::pthread_self()) failOnOwnThread();
  fail(taccInvalidUsage,
       "another thread is inside a call on this communicator; a communicator is used by one thread at a time");
}

Observer::Observer(taccComm_t comm) : comm_(comm) {
  if (!isHandle(comm)) failOnHandle(comm);
  comm->observers.fetch_add(1);
  if (!has(comm->life.load(), Needs::alive)) {
    comm->observers.fetch_sub(1);
    failOnHandle(comm);
  }
}

Visit::Visit(taccComm& comm, VisitOf of) : comm_(comm), of_(of), next_(visits) {
  if (of == VisitOf::stream) comm.visitors.fetch_add(1);
  if (of == VisitOf::stream && !has(comm.life.load(), Needs::alive)) {
    comm.visitors.fetch_sub(1);
    fail(taccRemoteError, "the communicator was aborted before this work ran");
  }
  visits = this;
}

Visit* Visit::ofThisThread(const taccComm& comm) noexcept {
  Visit* visit = visits;
  while (visit != nullptr && &visit->comm_ != &comm) visit = visit->next_;
  return visit;
}

Visit::~Visit() {
  visits = next_;
  if (of_ == VisitOf::program) {
    if (isLeft_) comm_.isLeftToCall = true;  // its call waits for this thread
    return;
  }
  comm_.visitors.fetch_sub(1);
  if (isLeft_) freeBehindCalls(comm_);
}

CommReference::~CommReference() {
  if (comm_ != nullptr) release(comm_);
}

}  // namespace tacc

taccComm::taccComm() = default;
taccComm::~taccComm() = default;

void taccComm::waitForTurns() {
  const tacc::Uncancelled wait;
  if (tacc::Visit::ofThisThread(*this) != nullptr) tacc::failOnOwnThread();  // a stream's, which would wait for itself
  if (!sequencer.waitIdle()) {
    tacc::fail(taccRemoteError, "the communicator was aborted while this call waited for the work of its streams");
  }
}

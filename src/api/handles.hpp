// What a taccComm_t points to, and who may be inside it when.
//
// Handles are never given back to the operating system: a destroyed or aborted one waits in a pool and is used again as
// late as possible. So a handle that the program still holds can always be looked at, and using it is an error with a
// sentence instead of a crash.
//
// Three kinds of users meet in a handle, and the one that frees it (taccCommDestroy, taccCommAbort) first changes
// `life` and then waits until none of them is left:
//   Entry     the one thread that uses the communicator: `inside`
//   Observer  the few calls that are allowed from any thread: `observers`
//   Visit     a stream's thread that runs one unit of work: `visitors`
// Each announces itself first and looks at `life` afterwards, both in the single total order of seq_cst, so either it
// sees that the communicator has ended, or the one who frees sees it.
//
// A thread may abort a communicator that it is inside of itself: in a reduction or an idle function of the program. It
// cannot wait for itself, so the call that it is in frees the handle when it returns.
//
// In a child made by fork() the handles of its parent become `inherited` before the child can use one. What they point
// to is never touched there: other threads may have been inside at that moment.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "api/operators.hpp"
#include "api/stream_sequencer.hpp"
#include "api/unequal_check.hpp"
#include "comm/communicator.hpp"
#include "tacc/tacc.h"

namespace tacc {

class Joining;

enum class Life : std::uint8_t {
  active,     // everything is allowed
  joining,    // a separate thread joins (joining.hpp); only taccCommGetAsyncError and taccCommAbort
  notJoined,  // it could not; the error text says why
  finalized,  // only queries and taccCommDestroy
  aborted,    // by taccCommAbort; freed or about to be
  destroyed,  // by taccCommDestroy; freed or about to be
  inherited,  // by a forked child, in which it is nobody's: the child is no rank
};

/// What taccCommRegister's handle points to.
struct Registration {
  void* buffer;
};

inline constexpr std::uint64_t commMagic = 0x7acc'c033'5ca1'ab1eULL;

}  // namespace tacc

struct taccComm {
  const std::uint64_t magic = tacc::commMagic;
  std::atomic<tacc::Life> life{tacc::Life::destroyed};
  std::atomic<pthread_t> inside{};  // the thread that is; none: 0, which is nobody's
  std::atomic<int> observers{0};
  std::atomic<int> visitors{0};
  std::atomic<int> references{0};  // the program's handle, and each piece of work that is queued or recorded
  std::atomic<int> rank{0};        // of the communicator, for messages even when that is gone
  std::atomic<int> ranks{0};
  std::atomic<int> process{0};                       // that the communicator belongs to
  bool isLeftToCall = false;                         // to be freed by the call that `inside` is in
  std::unique_ptr<tacc::Communicator> communicator;  // null before all have joined
  std::unique_ptr<tacc::Joining> joining;            // of a communicator that was made without blocking
  tacc::StreamSequencer sequencer;
  tacc::OperatorTable operators;
  std::vector<std::unique_ptr<tacc::Registration>> registrations;
  tacc::CheckedBlocks checkedBlocks;    // of the call that this thread makes
  std::vector<std::byte> fusionBuffer;  // grows when allreduces are fused
  std::string lastAlgorithm;            // what taccCommLastAlgorithm returned
  std::string explanation;              // what taccExplain returned

  std::mutex errorMutex;
  std::string errorText;  // under errorMutex

  taccComm();
  ~taccComm();

  /// Waits until what was given to streams is done. Cheap when nothing was. Fails when the communicator is aborted.
  void waitForStreams() {
    if (!sequencer.idle()) [[unlikely]]
      waitForTurns();
  }

 private:
  void waitForTurns();
};

namespace tacc {

/// A handle for the program, with one reference, which freeHandle() takes away.
taccComm_t makeHandle(std::unique_ptr<Communicator> communicator);
/// A handle whose communicator is still to come.
taccComm_t makeJoiningHandle(int rank, int ranks);
/// Gives it to the handle, unless that was aborted meanwhile: then the result is false and `communicator` as it was.
bool completeHandle(taccComm& comm, std::unique_ptr<Communicator>& communicator);
/// The same for several, all or none. Null stays null.
std::vector<taccComm_t> makeHandles(std::vector<std::unique_ptr<Communicator>> communicators);

/// Waits until nobody is in it any more, frees the communicator and lets the handle go. `life` must be aborted or
/// destroyed and set by the caller of this function; `ownEntry`: the caller is itself inside.
void freeHandle(taccComm& comm, bool ownEntry) noexcept;
/// The same for an aborted one in any thread, which may be inside: then its call frees it when it returns.
void freeAborted(taccComm& comm) noexcept;

/// Points to something that looks like a handle, whatever its life. Never reads through a null or misaligned pointer.
inline bool isHandle(const taccComm* comm) noexcept {
  return comm != nullptr && reinterpret_cast<std::uintptr_t>(comm) % alignof(taccComm) == 0 && comm->magic == commMagic;
}

/// Fails with what is wrong with this handle: null, not a handle, destroyed, aborted, finalized.
[[noreturn]] void failOnHandle(const taccComm* comm);

enum class Needs : std::uint8_t { active, alive };  // alive: finalized is fine too

inline bool has(Life life, Needs needs) noexcept {
  return life == Life::active || (needs == Needs::alive && life == Life::finalized);
}

/// The program's thread is inside the communicator. Fails when another thread is, or when its life does not allow it.
class Entry {
 public:
  explicit Entry(taccComm_t comm, Needs needs = Needs::active) : comm_(comm) {
    if (!isHandle(comm)) [[unlikely]]
      failOnHandle(comm);
    pthread_t nobody{};
    if (!comm->inside.compare_exchange_strong(nobody, ::pthread_self())) [[unlikely]]
      failOnSecondThread(*comm);
    if (!has(comm->life.load(), needs)) [[unlikely]] {
      comm->inside.store({});
      failOnHandle(comm);
    }
  }
  Entry(Entry&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)) {}
  Entry& operator=(Entry&&) = delete;
  /// The handle was freed, or will be, by other means.
  void forget() noexcept { comm_ = nullptr; }
  ~Entry() {
    if (comm_ == nullptr) return;
    if (comm_->isLeftToCall) [[unlikely]]
      freeHandle(*comm_, true);
    else
      comm_->inside.store({}, std::memory_order_release);
  }

 private:
  [[noreturn]] static void failOnSecondThread(const taccComm& comm);
  taccComm_t comm_;
};

/// Any thread looks at a communicator that is alive.
class Observer {
 public:
  explicit Observer(taccComm_t comm);
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  ~Observer() { comm_->observers.fetch_sub(1); }

 private:
  taccComm_t comm_;
};

/// A part of the call that somebody is inside for: this thread, which runs it while that one waits, is inside
/// meanwhile.
class InsideFor {
 public:
  explicit InsideFor(taccComm& comm) : comm_(comm), before_(comm.inside.exchange(::pthread_self())) {}
  InsideFor(const InsideFor&) = delete;
  InsideFor& operator=(const InsideFor&) = delete;
  ~InsideFor() { comm_.inside.store(before_); }

 private:
  taccComm& comm_;
  pthread_t before_;
};

enum class VisitOf : std::uint8_t { stream, program };

/// A thread runs work on the communicator. A stream's fails with taccRemoteError when it has been aborted; one that
/// works for the program's thread, which is inside, or is that, never fails.
class Visit {
 public:
  explicit Visit(taccComm& comm, VisitOf of = VisitOf::stream);
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  ~Visit();

  /// The visit to `comm` that this thread is in; null: none.
  static Visit* ofThisThread(const taccComm& comm) noexcept;
  /// The handle, to be freed when this has ended.
  void leaveHandle() noexcept { isLeft_ = true; }

 private:
  taccComm& comm_;
  VisitOf of_;
  bool isLeft_ = false;
  Visit* next_;  // of this thread
};

/// Keeps a handle from being used again for another communicator while work refers to it.
class CommReference {
 public:
  CommReference() = default;
  explicit CommReference(taccComm* comm) noexcept : comm_(comm) { comm_->references.fetch_add(1); }
  CommReference(CommReference&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)) {}
  CommReference& operator=(CommReference&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  ~CommReference();

  taccComm* get() const noexcept { return comm_; }
  taccComm& operator*() const noexcept { return *comm_; }
  taccComm* operator->() const noexcept { return comm_; }

 private:
  taccComm* comm_ = nullptr;
};

}  // namespace tacc

// Most calls are made on a communicator that was called on before, with elements that are blocks of memory, and it is
// known who serves them. What they cost here is lost, and short ones take 0.2 to 0.6 us in all. So they
// are served before takeOver() lays aside what it may need: that is as much work as the rest, and stands in functions
// of their own.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <exception>

#include "known_types.hpp"
#include "plugin.hpp"

namespace tacc::mpi {

/// What a call's `bytes` are where takeOver() has to look at it.
constexpr std::size_t unclear = SIZE_MAX;

/// Of functions that findReady() does not know.
struct NotesNothing {
  void operator()(Communicator&, std::size_t) const noexcept {}
};

/// The function itself: `run(communicator, bytes)` makes the tacc call and returns its result, `pass()` is MPI's own
/// function, and `look()` takes over or passes on by takeOver(). `size(communicator)`: bytes as Judged has them, where
/// `run` may be called; otherwise `unclear`. Where it is 0, nothing is moved, and only a barrier is served.
/// `note(communicator, bytes)`: tacc has served it, and the same as often as it is asked again (noteReady()).
template <class Size, class Run, class Pass, class Look, class Note = NotesNothing>
[[gnu::always_inline]] inline int serve(Function function, const char* name, MPI_Comm comm, const Size& size,
                                        const Run& run, const Pass& pass, const Look& look, const Note& note = {}) {
  Plugin& self = plugin();
  CallingThread& thread = callingThread();
  if (thread.isInside) return look();
  Communicator* const communicator = self.communicators.findLast(comm, thread);
  if (communicator == nullptr) return look();
  if (communicator->passed) {
    const Inside inside(thread);
    self.report.countPassed(function, *communicator->passed);
    return pass();
  }
  if (!communicator->isQuiet()) return look();
  const Function kind = plainly(function);
  const std::size_t bytes = size(*communicator);
  if (bytes == unclear || (bytes == 0 && kind != Function::Barrier)) return look();
  const Contests::Turn turn = communicator->contests.nextAtOnce(kind, bytes);
  if (turn == Contests::Turn::look) return look();
  const Inside inside(thread);
  if (turn == Contests::Turn::mpi) {
    self.report.countPassed(function, Passed::slower);
    return pass();
  }
  try {
    if (run(*communicator, bytes) != taccSuccess) [[unlikely]]
      return failCall(name, *communicator);
  } catch (const std::exception& error) {
    return failCall(name, *communicator, error.what());
  }
  note(*communicator, bytes);
  self.report.countTaken(function, bytes);
  return MPI_SUCCESS;
}

/// As takeOver() would judge.
[[gnu::always_inline]] inline std::size_t bytesOf(const Judged& judged) noexcept {
  return judged.passed == Passed::none ? judged.bytes : unclear;
}

/// Bytes of `count` elements at `address`, `unclear` unless they are a block of memory whose type MPI has from the
/// beginning. Known are the types of a plugin that is active only.
[[gnu::always_inline]] inline std::size_t blockBytes(const void* address, MPI_Count count, MPI_Datatype type) noexcept {
  const KnownType* const known = knownTypes.find(type);
  const bool isClear = known != nullptr && known->isBlock && count >= 0 && address != MPI_IN_PLACE;
  return isClear ? known->bytes * static_cast<std::size_t>(count) : unclear;
}

[[gnu::always_inline]] inline bool areBlocks(MPI_Datatype type) noexcept {
  const KnownType* const known = knownTypes.find(type);
  return known != nullptr && known->isBlock;
}

/// Whether what is read lies where nothing is written, as MPI wants it: otherwise it is copied first.
[[gnu::always_inline]] inline bool areApart(const void* read, std::size_t bytesRead, const void* written,
                                            std::size_t bytesWritten) noexcept {
  const auto from = reinterpret_cast<std::uintptr_t>(read), to = reinterpret_cast<std::uintptr_t>(written);
  return from >= to + bytesWritten || to >= from + bytesRead;
}

/// What goes from one rank to another: `sent` bytes of one, of which as many are expected, in buffers of `sentTimes`
/// and `receivedTimes` as many.
[[gnu::always_inline]] inline std::size_t bytesApart(const void* send, std::size_t sent, int sentTimes,
                                                     const void* receive, std::size_t received,
                                                     int receivedTimes) noexcept {
  if (sent == unclear || received != sent) return unclear;
  const bool isClear = areApart(send, sent * static_cast<std::size_t>(sentTimes), receive,
                                received * static_cast<std::size_t>(receivedTimes));
  return isClear ? received : unclear;
}

}  // namespace tacc::mpi

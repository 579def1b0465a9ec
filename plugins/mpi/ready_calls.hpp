// Most calls are, but for their buffers, as the last one of their function on the communicator. What was judged of that
// one holds for them: so they are served by a few comparisons, and all others as at_once.hpp does.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "contests.hpp"
#include "inside.hpp"
#include "plugin.hpp"
#include "types.hpp"

namespace tacc::mpi {

/// What of a call, beside its buffers, decides how it is served. Handles are numbers in one MPI and pointers in
/// another.
template <class Argument>
[[gnu::always_inline]] inline std::uint64_t wordOf(Argument argument) noexcept {
  if constexpr (std::is_pointer_v<Argument>)
    return reinterpret_cast<std::uintptr_t>(argument);
  else
    return static_cast<std::uint64_t>(argument);
}

template <class... Arguments>
[[gnu::always_inline]] inline std::array<std::uint64_t, sizeof...(Arguments)> wordsOf(Arguments... arguments) noexcept {
  return {wordOf(arguments)...};
}

/// The call of these words that tacc served last, where it is like that and nothing else is to be done before; null
/// otherwise. Nothing is counted yet.
template <std::size_t count>
[[gnu::always_inline]] inline const ReadyCall* findReady(Function function, MPI_Comm comm,
                                                         const std::array<std::uint64_t, count>& words) noexcept {
  static_assert(count <= ReadyCall::mostWords);
  const CallingThread& thread = callingThread();
  if (thread.isInside) return nullptr;
  Communicator* const communicator = plugin().communicators.findLast(comm, thread);
  if (communicator == nullptr) return nullptr;
  const ReadyCall& ready = communicator->readyCall(function);
  for (std::size_t i = 0; i < count; ++i)
    if (ready.words[i] != words[i]) return nullptr;
  return communicator->isQuiet() ? &ready : nullptr;
}

/// Makes the tacc call by `run()`, once calls->take() of it has been true, and ends MPI's.
template <class Run>
[[gnu::always_inline]] inline int runReady(Function function, const char* name, const ReadyCall& ready,
                                           const Run& run) noexcept {
  CallingThread& thread = callingThread();
  thread.isInside = true;
  const taccResult_t result = run();
  thread.isInside = false;
  if (result != taccSuccess) [[unlikely]] {
    const Inside inside(thread);
    return failCall(name, *ready.communicator);
  }
  plugin().report.countTaken(function, ready.bytes);
  return MPI_SUCCESS;
}

/// Notes a call that tacc has served, of `bytes` as Judged has them, for findReady().
template <std::size_t count>
[[gnu::always_inline]] inline void noteReady(Function function, Communicator& communicator, std::size_t bytes,
                                             const std::array<std::uint64_t, count>& words,
                                             const Reduction& how = {Passed::none, taccInt8, taccSum, 1}) noexcept {
  Contests::Calls* const calls = communicator.contests.callsOf(plainly(function), bytes);
  if (calls == nullptr) return;
  ReadyCall& ready = communicator.readyCall(function);
  for (std::size_t i = 0; i < count; ++i) ready.words[i] = words[i];
  ready.bytes = bytes;
  ready.type = how.type;
  ready.op = how.op;
  ready.calls = calls;
  ready.communicator = &communicator;
}

}  // namespace tacc::mpi

// What needs more stack than the program's thread may have: joining, with what it loads of other libraries.
#pragma once

namespace tacc {

/// Runs `work(argument)` and throws what it throws: in this thread, or in another one where this one's stack has little
/// left, or is the program's own (of a fiber), so that nobody knows. Throws taccSystemError where no thread can be
/// made.
void runWithRoom(void (*work)(void*), void* argument);

/// The same for anything that can be called. Takes no memory for it: where there is none, ranks that join still tell
/// the others.
template <class Work>
void runWithRoom(Work work) {
  runWithRoom([](void* argument) { (*static_cast<Work*>(argument))(); }, &work);
}

}  // namespace tacc

// Waking a thread of another process out of poll(), where a futex cannot: a thread that sleeps has a descriptor that
// others reach by a name, so none of them has to hold one for it.
#pragma once

#include <cstdint>

namespace tacc {

/// The calling thread's descriptor for poll(), which is readable once it has been woken; -1 where there is none to be
/// had. A thread has one for all communicators, from its first call on; a forked child makes its own.
int wakeDescriptor() noexcept;

/// The name by which others wake this thread, among the processes of this network namespace; 0 without descriptor.
/// Another process that learns it can wake it in vain, and nothing more.
std::uint64_t wakeName() noexcept;

/// For who has found it readable: it is readable again when this thread is woken once more. A system call.
void forgetWakes() noexcept;

/// Wakes the thread of that name, if it is still there. A system call of about 2 us; from any thread.
void wakeThread(std::uint64_t name) noexcept;

}  // namespace tacc

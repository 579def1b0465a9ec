// What needs more stack than the program's thread may have: joining, with what it loads of other libraries.
#pragma once

#include <functional>

namespace tacc {

/// Runs `work` and throws what it throws: in this thread, or in another one where this one's stack has little left, or
/// is the program's own (of a fiber), so that nobody knows. Throws taccSystemError where no thread can be made.
void runWithRoom(const std::function<void()>& work);

}  // namespace tacc

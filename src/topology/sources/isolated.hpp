// Work that may crash, in a separate process: for libraries that do not survive damaged input.
#pragma once

#include <functional>
#include <string>

namespace tacc {

/// Runs `work` in a fork of this process, with bounds on time and memory and without standard error, and returns the
/// text that it returned. Throws Error: what `work` threw; or taccInvalidArgument that names `where`, when the process
/// crashed or went over a bound. `work` must not use locks that other threads may hold.
std::string runIsolated(const std::function<std::string()>& work, const std::string& where);

}  // namespace tacc

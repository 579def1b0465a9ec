// Messages for people who look for a fault, on standard error, one line each, off by default (TACC_DEBUG).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace tacc {

/// Each level includes those before it. warn: something is slower or less safe than it could be; info: decisions, once
/// per communicator; trace: every operation.
enum class LogLevel : std::uint8_t { none, warn, info, trace };

inline constexpr int noRank = -1;  // for messages that belong to no communicator

/// The level in force: TACC_DEBUG at the first use, later what setLogLevel() said. An environment that does not parse
/// counts as none: the communicator that comes next reports it.
LogLevel logLevel() noexcept;
void setLogLevel(LogLevel level) noexcept;

/// True when messages of this level are written. Costs a call and a load.
inline bool logs(LogLevel level) noexcept { return level <= logLevel(); }

/// Writes "tacc HOST:PID rank R LEVEL: message\n" in one write, so that lines of several processes do not mix. Line
/// ends inside the message become "; ". Failures to write are ignored.
void writeLog(LogLevel level, int rank, std::string_view message) noexcept;

/// Formats as fmt does, and only when the level is on. `level` is not none.
template <class... Args>
void log(LogLevel level, int rank, fmt::format_string<Args...> format, Args&&... args) {
  if (logs(level)) writeLog(level, rank, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tacc

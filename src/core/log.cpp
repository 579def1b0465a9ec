#include "core/log.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <string>

#include "core/environment.hpp"
#include "core/error.hpp"

namespace tacc {
namespace {

constexpr int unset = -1;
std::atomic<int> currentLevel{unset};

LogLevel levelOfProcess() noexcept {
  try {
    return processEnvironment().logLevel;
  } catch (const std::exception&) {
    return LogLevel::none;
  }
}

std::string_view levelName(LogLevel level) noexcept {
  constexpr std::array<std::string_view, 4> names = {"none", "warn", "info", "trace"};
  return names.at(static_cast<std::size_t>(level));
}

std::string nameOfHost() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "?";
  return name.data();
}

std::string lineOf(LogLevel level, int rank, std::string_view message) {
  static const std::string host = nameOfHost();
  std::string line = fmt::format("tacc {}:{}", host, ::getpid());  // not kept: it changes with fork
  if (rank != noRank) line += fmt::format(" rank {}", rank);
  line += fmt::format(" {}: ", levelName(level));
  for (const char c : message) {
    if (c == '\n') {
      line += "; ";
    } else {
      line += c;
    }
  }
  line += '\n';
  return line;
}

}  // namespace

LogLevel logLevel() noexcept {
  int level = currentLevel.load(std::memory_order_relaxed);
  if (level == unset) {
    const int fromProcess = static_cast<int>(levelOfProcess());
    // Keeps a level that setLogLevel() stored meanwhile; `level` is then that one.
    if (currentLevel.compare_exchange_strong(level, fromProcess, std::memory_order_relaxed)) level = fromProcess;
  }
  return static_cast<LogLevel>(level);
}

void setLogLevel(LogLevel level) noexcept { currentLevel.store(static_cast<int>(level), std::memory_order_relaxed); }

void writeLog(LogLevel level, int rank, std::string_view message) noexcept {
  try {
    const std::string line = lineOf(level, rank, message);
    while (::write(STDERR_FILENO, line.data(), line.size()) < 0 && errno == EINTR) {
    }
  } catch (const std::exception&) {
    return;  // no memory for a message: the work goes on without it
  }
}

}  // namespace tacc

// What a program writes, to its standard output and besides.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace tacc::tools {

/// To be called when a program begins: where not all of its standard output could be written, as on a full file
/// system, it says so and ends with 1, whatever it wanted to end with.
void requireStandardOutput(const char* program);

/// Text for standard error, which need not be there, nor have room: nothing else is left to be told of that.
template <class... Args>
void complain(fmt::format_string<Args...> format, Args&&... args) noexcept {
  try {
    (void)std::fputs(fmt::format(format, std::forward<Args>(args)...).c_str(), stderr);
  } catch (const std::exception&) {
    return;
  }
}

/// Throws std::runtime_error for what many programs take for their standard output, which has the tables here.
inline void refuseDash(const std::string& name) {
  if (name == "-")
    throw std::runtime_error(
        "cannot write -: tables go to standard output, and this into a file; name one (./- is one)");
}

/// Throws std::runtime_error when it cannot be written.
inline void writeOutput(const std::string& name, const std::string& text) {
  refuseDash(name);
  std::ofstream file(name);
  file << text;
  file.close();
  if (!file) throw std::runtime_error(fmt::format("cannot write {}", name));
}

/// To be called before a measurement rather than after it: throws like writeOutput(), and leaves what is there.
inline void requireWritable(const std::string& name) {
  refuseDash(name);
  if (!name.empty() && !std::ofstream(name, std::ios::app))
    throw std::runtime_error(fmt::format("cannot write {}", name));
}

/// One line on the terminal that is written over and over; nothing at all when standard error is not a terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text);
  /// Makes room for other output.
  void clear();

 private:
  bool isTerminal_;
  bool visible_ = false;
};

}  // namespace tacc::tools

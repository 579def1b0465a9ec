// What a program writes besides its standard output.
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>
#include <string>

namespace tacc::tools {

/// Throws std::runtime_error when it cannot be written.
inline void writeOutput(const std::string& name, const std::string& text) {
  std::ofstream file(name);
  file << text;
  file.close();
  if (!file) throw std::runtime_error(fmt::format("cannot write {}", name));
}

/// To be called before a measurement rather than after it: throws like writeOutput(), and leaves what is there.
inline void requireWritable(const std::string& name) {
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

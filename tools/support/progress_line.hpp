#pragma once

#include <string>

namespace tacc::tools {

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

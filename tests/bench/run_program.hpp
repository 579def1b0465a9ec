// Runs tacc_bench as a user does, for tests.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace tacc::bench::test {

/// Of an environment variable that Meson sets. Throws std::runtime_error where it is missing.
inline std::string setting(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string("the test needs the environment variable ") + name);
  return value;
}

/// Of a program that has ended.
struct Outcome {
  int status;  // -1: a signal ended it
  std::string output;

  bool has(const std::string& text) const { return output.find(text) != std::string::npos; }
  int count(const std::string& text) const {
    int found = 0;
    for (size_t at = output.find(text); at != std::string::npos; at = output.find(text, at + 1)) ++found;
    return found;
  }
};

/// Runs a line of the shell to its end; its standard error is in the output too.
inline Outcome runLine(const std::string& line) {
  FILE* pipe = ::popen((line + " 2>&1").c_str(), "r");
  std::string output;
  char bytes[4096];
  for (size_t n; (n = std::fread(bytes, 1, sizeof(bytes), pipe)) > 0;) output.append(bytes, n);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

/// Its path.
inline std::string program() { return setting("TACC_BENCH_PROGRAM"); }

}  // namespace tacc::bench::test

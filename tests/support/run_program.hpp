// Runs a program as people do, and keeps what it printed.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace tacc::test {

struct Ran {
  int status = -1;
  std::string output;  // both streams
};

/// `environment`: "NAME=value ...", before the program's path. It has no terminal and no input.
inline Ran runProgram(const std::string& program, const std::string& arguments, const std::string& environment) {
  Ran ran;
  FILE* pipe = ::popen((environment + " '" + program + "' " + arguments + " 2>&1 </dev/null").c_str(), "r");
  std::array<char, 4096> piece{};
  for (std::size_t size; (size = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;)
    ran.output.append(piece.data(), size);
  const int status = ::pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

}  // namespace tacc::test

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

}  // namespace tacc::tools

#include "support/find_tool.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

namespace tacc::tools {

namespace fs = std::filesystem;

std::string findTool(const char* name) {
  const fs::path here = fs::path(fs::read_symlink("/proc/self/exe")).parent_path();
  for (const char* place : {"../../tools", "../libexec/tacc"})
    if (const fs::path tool = here / place / name; ::access(tool.c_str(), X_OK) == 0) return fs::canonical(tool);
  throw std::runtime_error(fmt::format("there is no {} in ../../tools or ../libexec/tacc of {}", name, here.string()));
}

}  // namespace tacc::tools

// The golden files of the tests, and messages of errors.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "core/error.hpp"
#include "topology/sources/source_registry.hpp"
#include "topology/sources/text_file.hpp"

namespace tacc::test {

/// The folder of golden files, or the one named beside it.
inline std::string goldenPath(const std::string& name) { return std::string(TACC_TEST_GOLDEN) + "/" + name; }

/// Read by the source that its contents tell.
inline Topology golden(const std::string& name) {
  const std::string text = readText(goldenPath(name));
  return sourceOfFile(text, name).read(text, name);
}

template <class Work>
std::string messageOf(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace tacc::test

// The golden files of the tests, what is asked of a topology in many of them, and messages of errors.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "core/error.hpp"
#include "core/text_file.hpp"
#include "topology/sources/source_registry.hpp"
#include "topology/toml/toml.hpp"

namespace tacc::test {

/// The folder of golden files, or the one named beside it.
inline std::string goldenPath(const std::string& name) { return std::string(TACC_TEST_GOLDEN) + "/" + name; }

/// Read by the source that its contents tell.
inline Topology golden(const std::string& name) {
  const std::string text = readText(goldenPath(name));
  return sourceOfFile(text, name).read(text, name);
}

/// What a file of a fabric says. Written as TOML it has to read as the same.
inline Topology readFabric(const std::string& text) {
  const Topology topology = sourceOfFile(text, "net").read(text, "net");
  EXPECT_EQ(topologyFromToml(topologyToToml(topology), "again"), topology);
  EXPECT_EQ(topologyFromToml(topologyToToml(topology), "again").digest(), topology.digest());
  return topology;
}

/// The level at which two hosts meet.
inline int meet(const Topology& topology, const std::string& a, const std::string& b) {
  return topology.meet(topology.find(a).value(), topology.find(b).value());
}

/// The message of the Error that `work` ends with.
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

// What a topology looks like in one line, and texts of Slurm's kinds to begin with.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "golden.hpp"
#include "topology/model/host_list.hpp"

namespace tacc::test {

/// "((a[1-2]) (a[3-4])) (b1)": groups in brackets, hosts as a list, "4x2:" before what a torus joins.
inline std::string shapeOf(const Topology& topology, int level, std::uint32_t group) {
  const LeafRange range = topology.hostsOf(level, group);
  std::string text;
  if (topology.level(level).wiring == Wiring::torus) text = topology.level(level).dimensionsText() + ": ";
  if (level == 1) {
    std::vector<std::string> names;
    for (std::uint32_t h = range.first; h < range.last; ++h) names.push_back(topology.host(h));
    return text + foldHosts(names);
  }
  std::uint32_t last = topology.groups(level - 1);
  for (std::uint32_t h = range.first; h < range.last; ++h) {
    const std::uint32_t inner = topology.groupOf(level - 1, h);
    if (inner == last) continue;
    text += (last == topology.groups(level - 1) ? "(" : " (") + shapeOf(topology, level - 1, inner) + ")";
    last = inner;
  }
  return text;
}
inline std::string shape(const Topology& topology) { return shapeOf(topology, topology.root(), 0); }

struct Case {
  const char* what;
  std::string text;
  std::string shape;
};

/// As a file that the user names: its contents must tell that it is Slurm's.
inline std::string shapeOfText(const std::string& text, const std::string& origin = "t") {
  try {
    return shape(sourceOfFile(text, origin).read(text, origin));
  } catch (const Error& error) {
    return error.what();
  }
}

inline void expectShapes(const std::vector<Case>& cases) {
  for (const Case& one : cases) EXPECT_EQ(shapeOfText(one.text), one.shape) << one.what << "\n" << one.text;
}

inline const std::string twoLeaves = "SwitchName=l1 Nodes=n[1-2]\nSwitchName=l2 Nodes=n[3-4]\n";
inline const std::string twoShape = "(n[1-2]) (n[3-4])";

inline std::string named(const std::string& name, const std::string& body) {
  return "- topology: " + name + "\n  " + body + "\n";
}
inline const std::string tree1 = "tree: {switches: [{switch: l1, nodes: 'n[1-2]'}, {switch: l2, nodes: 'n[3-4]'}]}";
inline const std::string block1 =
    "block: {block_sizes: [1, 2], blocks: [{block: b1, nodes: n1}, {block: b2, nodes: n2}, {block: b3, nodes: n3}]}";
inline const std::string blockShape = "((n1) (n2)) ((n3))";
inline const std::string ring1 = "ring: {rings: [{ring: r1, nodes: 'n[1-4]'}]}";
inline const std::string torus1 = "torus3d: {toruses: [{name: pod, dims: {x: 3, y: 2, z: 1}, nodes: 'n[1-6]'}]}";

}  // namespace tacc::test

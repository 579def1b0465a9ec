// Slurm's files as sites write them: what each is read as, and what is said of those that are wrong.
#include "topology/sources/slurm.hpp"

#include <gmock/gmock.h>

#include "slurm_shapes.hpp"
#include "topology/sources/yaml_text.hpp"
#include "topology/toml/toml.hpp"

namespace tacc::test {
namespace {

using testing::HasSubstr;

TEST(SlurmConf, LinesAsSlurmReadsThem) {
  const std::string top = "SwitchName=top Switches=l[1-2]\n";
  expectShapes({
      {"plain", twoLeaves + top, twoShape},
      {"the root is not said", twoLeaves, twoShape},
      {"the upper switch comes first", top + twoLeaves, twoShape},
      {"keys in any case", "switchname=l1 nodes=n[1-2]\nSWITCHNAME=l2 NODES=n[3-4]\n" + top, twoShape},
      {"ends of lines of another system", "SwitchName=l1 Nodes=n[1-2]\r\nSwitchName=l2 Nodes=n[3-4]\r\n", twoShape},
      {"a mark of the byte order", "\xef\xbb\xbf" + twoLeaves, twoShape},
      {"blanks round =", "SwitchName = l1   Nodes= n[1-2]\n\tSwitchName =l2 Nodes\t=\tn[3-4]\n", twoShape},
      {"in quotes", "SwitchName=\"l1\" Nodes=\"n1, n2\"\nSwitchName=l2 Nodes=\"n[3-4]\"\n", twoShape},
      {"a line goes on", "SwitchName=l1 \\\n  Nodes=n[1-2]\nSwitchName=l2 Nodes=n3,\\\nn4\n", twoShape},
      {"blanks behind the backslash", "SwitchName=l1 \\  \t\n  Nodes=n[1-2]\nSwitchName=l2 Nodes=n[3-4]\n", twoShape},
      {"a comment behind the backslash", "SwitchName=l1 \\ # one\n  Nodes=n[1-2]\nSwitchName=l2 Nodes=n[3-4]\n",
       twoShape},
      {"comments", "# a \\\nSwitchName=l1 Nodes=n[1-2]# b\n   #SwitchName=x\nSwitchName=l2 Nodes=n[3-4] #c\n",
       twoShape},
      {"an escaped sign of comments", "SwitchName=l\\#1 Nodes=n[1-2]\nSwitchName=l2 Nodes=n[3-4]\n", twoShape},
      {"speeds", "SwitchName=l1 LinkSpeed=900 Nodes=n[1-2]\nSwitchName=l2 Nodes=n[3-4] LinkSpeed=1800\n", twoShape},
      {"too many commas", "SwitchName=l1 Nodes=,n1,,n2,\nSwitchName=l2 Nodes=n[3-4],\n", twoShape},
      {"a host twice in a line", "SwitchName=l1 Nodes=n[1-2],n1\nSwitchName=l2 Nodes=n[3-4]\n" + top, twoShape},
      {"a switch twice in a line", twoLeaves + "SwitchName=top Switches=l1,l[1-2]\n", twoShape},
      {"nothing behind Nodes=", twoLeaves + "SwitchName=top Nodes= Switches=l[1-2]\n", twoShape},
      {"no line end at the end", "SwitchName=l1 Nodes=n[1-2]\nSwitchName=l2 Nodes=n[3-4]", twoShape},
      {"the file ends in a backslash", "SwitchName=l1 Nodes=n[1-2]\nSwitchName=l2 Nodes=n[3-4] \\", twoShape},
      {"several brackets", "SwitchName=a Nodes=r[1-2]n[01-02]\nSwitchName=b Nodes=r3-n[9-11]-ib\n",
       "(r1n[01-02],r2n[01-02]) (r3-n[9-11]-ib)"},
      {"zeros before numbers", "SwitchName=a Nodes=n[008-011]\nSwitchName=b Nodes=n[8-11]\n", "(n[008-011]) (n[8-11])"},
  });
}

TEST(SlurmConf, TreesOfAllShapes) {
  expectShapes({
      {"hosts at an upper switch", twoLeaves + "SwitchName=top Switches=l[1-2] Nodes=login\n",
       "(login) (n[1-2]) (n[3-4])"},
      {"an upper switch lists all again", twoLeaves + "SwitchName=top Nodes=n[1-4] Switches=l[1-2]\n", twoShape},
      {"and some of its own", twoLeaves + "SwitchName=top Nodes=n[1-4],x Switches=l[1-2]\n", "(n[1-2]) (n[3-4]) (x)"},
      {"a leaf without hosts", twoLeaves + "SwitchName=l3\nSwitchName=l4 Nodes=\nSwitchName=top Switches=l[1-4]\n",
       twoShape},
      {"one leaf below a root", "SwitchName=l1 Nodes=n[1-2]\nSwitchName=top Switches=l1\n", "(n[1-2])"},
      {"one switch", "SwitchName=l1 Nodes=n[1-2]\n", "n[1-2]"},
      {"a chain above",
       twoLeaves + "SwitchName=m Switches=l[1-2]\nSwitchName=k Switches=m\nSwitchName=top Switches=k\n", twoShape},
      {"chains below",
       twoLeaves + "SwitchName=m1 Switches=l1\nSwitchName=m2 Switches=l2\nSwitchName=top Switches=m[1-2]\n", twoShape},
      {"a chain on one side", twoLeaves + "SwitchName=m Switches=l1\nSwitchName=top Switches=m,l2\n", twoShape},
      {"two trees",
       twoLeaves + "SwitchName=a Switches=l[1-2]\nSwitchName=k[1] Nodes=x[1-2]\nSwitchName=k2 Nodes=x[3-4]\n"
                   "SwitchName=b Switches=k[1-2]\n",
       "((n[1-2]) (n[3-4])) ((x[1-2]) (x[3-4]))"},
      {"two trees of different heights", twoLeaves + "SwitchName=a Switches=l[1-2]\nSwitchName=k Nodes=x[1-2]\n",
       "((n[1-2]) (n[3-4])) ((x[1-2]))"},
      {"spines", twoLeaves + "SwitchName=s1 Switches=l[1-2]\nSwitchName=s2 Switches=l[1-2]\n", twoShape},
      {"switches that share some below",
       twoLeaves + "SwitchName=l3 Nodes=n[5-6]\nSwitchName=l4 Nodes=n[7-8]\nSwitchName=s1 Switches=l[1-2]\n"
                   "SwitchName=s2 Switches=l[2-3]\nSwitchName=top Switches=s[1-2],l4\n",
       "((n[1-2]) (n[3-4]) (n[5-6])) ((n[7-8]))"},
      {"below switches of two heights",
       "SwitchName=x Nodes=a\nSwitchName=b Switches=x\nSwitchName=c Switches=x,d\nSwitchName=d Nodes=e\n", "(a) (e)"},
  });
  EXPECT_EQ(shape(golden("meshed.topology.conf")),
            "((login[1-2]) (r5n[08-11])) ((r1n[01-02],r2n[01-02]) (r3n[01-02],r4n[1-2]))");
  EXPECT_EQ(golden("meshed.topology.conf").groupName(2, 1), "agg[1-2]");
  // What joined switches are called may be a name that a switch has.
  EXPECT_EQ(shape(topologyOfSwitches(asTree({{"s[1-2]", {"a"}, {}, "1"},
                                             {"b", {"b"}, {}, "2"},
                                             {"s1", {}, {"s[1-2]", "b"}, "3"},
                                             {"s2", {}, {"b"}, "4"}}),
                                     "t")),
            "(a) (b)");
}

/// A tree is the same whatever redundant cables its file lists: all of random fat trees, as against the plain tree.
TEST(SlurmConf, CablesThatAreListedTooDoNotChangeTheTree) {
  for (unsigned pods = 1; pods < 5; ++pods) {
    for (unsigned leaves = 1; leaves < 4; ++leaves) {
      for (unsigned planes = 1; planes < 4; ++planes) {
        std::string lean, meshed, podsOf;
        for (unsigned p = 0; p < pods; ++p) {
          for (unsigned l = 0; l < leaves; ++l)
            lean +=
                fmt::format("SwitchName=l{}-{} Nodes=n[{}-{}]\n", p, l, (p * leaves + l) * 3, (p * leaves + l) * 3 + 2);
          podsOf += fmt::format("SwitchName=p{0} Switches=l{0}-[0-{1}]\n", p, leaves - 1);
        }
        meshed = lean;
        for (unsigned plane = 0; plane < planes; ++plane) {
          for (unsigned p = 0; p < pods; ++p)
            meshed += fmt::format("SwitchName=a{}-{} Switches=l{}-[0-{}]\n", plane, p, p, leaves - 1);
          for (unsigned core = 0; core < 2; ++core)
            meshed += fmt::format("SwitchName=c{}-{} Switches=a{}-[0-{}]\n", plane, core, plane, pods - 1);
        }
        lean += podsOf + fmt::format("SwitchName=top Switches=p[0-{}]\n", pods - 1);
        EXPECT_EQ(shapeOfText(meshed), shapeOfText(lean)) << meshed;
      }
    }
  }
}

TEST(SlurmConf, WhatScontrolPrints) {
  expectShapes({
      {"a tree",
       "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=tux[0-3] \nSwitchName=s1 Level=0 LinkSpeed=1 Nodes=tux[4-7]\n"
       "SwitchName=s2 Level=1 LinkSpeed=1 Nodes=tux[0-7] Switches=s[0-1] \n",
       "(tux[0-3]) (tux[4-7])"},
      {"hosts of an upper switch, cut off", twoLeaves + "SwitchName=s2 Level=1 LinkSpeed=1 Switches=l[1-2] Nodes=n[1-",
       twoShape},
      {"no value", "SwitchName=l1 Level=0 Nodes=n[1-2] Switches=(null)\nSwitchName=l2 Level=0 Nodes=n[3-4]\n",
       twoShape},
      {"blocks of an older Slurm", "BlockName=b1 BlockIndex=0 Nodes=n[1-2]\nBlockName=b2 BlockIndex=1 Nodes=n[3-4]\n",
       twoShape},
      {"blocks that are joined",
       "BlockName=b1 BlockIndex=0 Nodes=n1 BlockSize=1\nBlockName=b2 BlockIndex=1 Nodes=n2 BlockSize=1\n"
       "BlockName=b3 BlockIndex=2 Nodes=n3 BlockSize=1\nAggregatedBlock=b[1-2] BlockIndex=3 Nodes=n[1- BlockSize=2\n",
       "((n1) (n2)) ((n3))"},
      {"rings", "RingName=r1 Nodes=a[1-4] RingSize=4\nRingName=r2 Nodes=b4,b2,b1,b3 RingSize=4\n",
       "(4: a[1-4]) (4: b[4,2,1,3])"},
      {"a torus, whose order is not told",
       "TorusName=p1 Dims=2x2x1 Nodes=a[1-4]\n  TorusName=p1 PlacementDims=2x1x1(2) Anchors=2\n"
       "TorusName=p2 Dims=2x2x1 Nodes=b[1-4]\n",
       "(a[1-4]) (b[1-4])"},
  });
  EXPECT_EQ(shape(golden("printed_tree.topology.txt")),
            "((cn[0001-0004]) (cn[0005-0008])) ((cn[0009-0012]) (cn[0013-0015],gpu[1-2]))");
  EXPECT_EQ(shape(golden("printed_blocks.topology.txt")),
            "(((gb[001-018]) (gb[019-036])) ((gb[037-054]) (gb[055-072]))) (((gb[073-090]) (gb[091-107])))");
}

TEST(SlurmConf, BlocksAndRings) {
  const std::string four =
      "BlockName=b1 Nodes=n[1-3]\nBlockName=b2 Nodes=n[4-6]\nBlockName=b3 Nodes=n[7-9]\n"
      "BlockName=b4 Nodes=m[1-2]\n";
  const std::string flat = "(m[1-2]) (n[1-3]) (n[4-6]) (n[7-9])";
  const std::string joined = "((m[1-2]) (n[7-9])) ((n[1-3]) (n[4-6]))";
  expectShapes({
      {"no sizes", four, flat},
      {"a size alone", four + "BlockSizes=3\n", flat},
      {"pairs, and blocks with spare hosts", four + "BlockSizes=2,4\n", joined},
      {"sizes first", "blocksizes=2,4\n" + four, joined},
      {"sizes in another order", "BlockSizes=8,4,2\n" + four, joined},
      {"an odd one is left over", four + "BlockName=b5 Nodes=z\nBlockSizes=1,2\n",
       "((m[1-2]) (n[7-9])) ((n[1-3]) (n[4-6])) ((z))"},
      {"a block without hosts keeps its place", "BlockName=b0\n" + four + "BlockSizes=2,4\n",
       "((m[1-2])) ((n[1-3])) ((n[4-6]) (n[7-9]))"},
      {"a ring", "RingName=r1 Nodes=c,a,b\n", "3: c,a,b"},
      {"rings of different lengths", "RingName=r1 Nodes=n[1-3]\nRingName=r2 Nodes=m[1-2]\n", "(m[1-2]) (n[1-3])"},
  });
}

/// A name may begin with what marks groups without one in saved files.
TEST(SlurmConf, NamesAreSaved) {
  const Topology topology = topologyFromSlurmConf("SwitchName=\\#1 Nodes=a\nSwitchName=b Nodes=b\n", "t");
  EXPECT_EQ(topology.groupName(1, 0), "#1");
  EXPECT_EQ(topologyFromToml(topologyToToml(topology), "t.toml"), topology);
}

TEST(SlurmConf, BadLinesAreNamed) {
  const auto error = [](const std::string& text) { return messageOf([&] { topologyFromSlurmConf(text, "t.conf"); }); };
  EXPECT_THAT(error("SwitchName=a Nodes=n1, n2\n"),
              HasSubstr("t.conf:1: \"n2\" is no key=value; lists of names have no blanks"));
  EXPECT_THAT(error(twoLeaves + "hello\n"), HasSubstr("t.conf:3: \"hello\" is no key=value"));
  EXPECT_THAT(error("SwitchName=a BlockName=b Nodes=n1\n"), HasSubstr("SwitchName and BlockName in one line"));
  EXPECT_THAT(error("BlockName=b Switches=n1\n"), HasSubstr("Switches does not belong to a line with BlockName"));
  EXPECT_THAT(error("Nodes=n1\n"), HasSubstr("t.conf:1: a line begins with SwitchName="));
  EXPECT_THAT(error("SwitchName=a \\\n Nodes=n1\nSwitchName=b Nods=n2\n"),
              HasSubstr("t.conf:3: unknown key \"Nods\"; did you mean Nodes?"));
  EXPECT_THAT(error("SwitchName=a Level=0 Nodes=n[1-\n"), HasSubstr("a bracket is not closed"));
  EXPECT_THAT(error("SwitchName=a Level=0 Nodes=n[1-\n"), HasSubstr("SLURM_TOPO_LEN"));
  EXPECT_THAT(error("SwitchName=a Level=1 Nodes=n[1-2]\n"),
              HasSubstr("the switch a is of level 1, but has no Switches="));
  EXPECT_THAT(error("SwitchName=a Switches=b\nSwitchName=b Switches=c\nSwitchName=c Switches=b\n"),
              HasSubstr("the switches form a loop: b > c > b"));
  EXPECT_THAT(error("BlockName=a Nodes=x\nBlockName=a Nodes=y\n"),
              HasSubstr("t.conf:2: the block a stands in t.conf:1"));
  EXPECT_THAT(error("BlockName=a Nodes=x\nBlockName=b Nodes=y,x\n"),
              HasSubstr("t.conf:2: the host x is in the block a already (t.conf:1)"));
  EXPECT_THAT(error("BlockName=a Nodes=x\nBlockSizes=4,6\n"),
              HasSubstr("t.conf:2: a block size of 6 is no multiple of 4"));
  EXPECT_THAT(error("BlockName=a Nodes=x\nBlockSizes=4,\n"), HasSubstr("numbers of hosts such as 18,36"));
  EXPECT_THAT(error("BlockName=a Nodes=x\nBlockSizes=4\nBlockSizes=4\n"),
              HasSubstr("t.conf:3: BlockSizes stands in t.conf:2"));
  EXPECT_THAT(error("BlockName=a Nodes=x\nAggregatedBlock=a,b BlockSize=2\n"),
              HasSubstr("joins the block b, of which there is no line"));
  EXPECT_THAT(error("BlockName=a BlockSize=1\n"), HasSubstr("no block has hosts"));
  EXPECT_THAT(error("RingName=a Nodes=x\nRingName=b Nodes=x\n"),
              HasSubstr("t.conf:2: the host x is in the ring a already"));
  EXPECT_THAT(error("RingName=a Nodes=x\nBlockName=b Nodes=y\n"), HasSubstr("has both BlockName and RingName"));
}

TEST(SlurmYaml, WhatOneFileMayLookLike) {
  if (!hasYaml()) GTEST_SKIP() << "this build has no libyaml";
  expectShapes({
      {"a tree",
       "- topology: topo1\n  cluster_default: True\n  tree:\n    switches:\n    - switch: top\n      children: l[1-2]\n"
       "    - switch: l1\n      nodes: n[1-2]\n    - switch: l2\n      nodes: n[3-4]\n",
       twoShape},
      {"one table, no list", "topology: t\ncluster_default: yes\n" + tree1 + "\n", twoShape},
      {"after a comment and a mark", "# our machine\n%YAML 1.1\n---\n" + named("a", tree1) + "...\n", twoShape},
      {"the name is not the first key", "- cluster_default: true\n  topology: a\n  " + tree1 + "\n", twoShape},
      {"the dash alone in a line", "-\n  topology: a\n  " + tree1 + "\n", twoShape},
      {"indented", "  - topology: a\n    " + tree1 + "\n", twoShape},
      {"JSON",
       R"([{"topology": "a", "cluster_default": true, "tree": {"switches": [{"switch": "l1", "nodes": "n[1-2]"},)"
       R"( {"switch": "l2", "nodes": "n[3-4]", "children": ""}]}}])",
       twoShape},
      {"JSON on lines of its own",
       "[\n  {\n    \"topology\": \"a\",\n    \"tree\": {\"switches\": [{\"switch\": \"l1\", \"nodes\": \"n1,n2\"}, "
       "{\"switch\": "
       "\"l2\", \"nodes\": \"n[3-4]\"}]}\n  }\n]\n",
       twoShape},
      {"what is empty says nothing",
       "- topology: a\n  cluster_default:\n  block:\n  tree:\n    switches:\n      - {switch: top, children: 'l[1-2]', "
       "nodes: }\n"
       "      - {switch: l1, nodes: 'n[1-2]', children: null}\n      - {switch: l2, nodes: 'n[3-4]', children: ''}\n",
       twoShape},
      {"lists of names",
       "- topology: a\n  tree:\n    switches:\n      - {switch: top, children: [l1, l2]}\n"
       "      - {switch: l1, nodes: [n1, n2]}\n      - {switch: l2, nodes: ['n[3-4]']}\n",
       twoShape},
      {"one is written once and used twice",
       "- topology: a\n  tree: &net {switches: [{switch: l1, nodes: 'n[1-2]'}, {switch: l2, nodes: 'n[3-4]'}]}\n"
       "- topology: b\n  cluster_default: on\n  tree: *net\n",
       twoShape},
      {"blocks", named("a", block1), blockShape},
      {"a ring", named("a", ring1), "4: n[1-4]"},
      {"a torus", named("a", torus1), "2x3: n[1-6]"},
      {"toruses of different extents",
       named("a",
             "torus3d: {toruses: [{name: p, dims: {x: 2, y: 2, z: 2}, nodes: 'n[1-8]'}, "
             "{name: q, dims: {x: 2, y: 1, z: 1}, nodes: 'm[1-2]'}]}"),
       "(m[1-2]) (n[1-8])"},
      {"a torus with places without hosts",
       named("a",
             "torus3d: {toruses: [{name: p, dims: {x: 3, y: 2, z: 1}, regions: [{anchor: {x: 1, y: 0, z: 0}, "
             "dims: {x: 2, y: 2, z: 1}, nodes: 'n[1-4]'}]}]}"),
       "2x2: n[1-4]"},
      {"a torus whose hosts fill no box",
       named("a",
             "torus3d: {toruses: [{name: p, dims: {x: 3, y: 2, z: 1}, regions: [{anchor: {x: 1, y: 0, z: 0}, "
             "dims: {x: 2, y: 1, z: 1}, nodes: 'n[1-2]'}, {anchor: {x: 0, y: 1, z: 0}, dims: {x: 1, y: 1, z: 1}, "
             "nodes: n3}]}]}"),
       "n[1-3]"},
  });
  const Topology pods = golden("torus.topology.yaml");
  EXPECT_EQ(shape(pods), "(2x2x4: a[01-16]) (2x2x4: b[09-16,01-08])");
  // x varies fastest: a01 and a02 are neighbours in it, a01 and a05 in y, a01 and a09 in z.
  EXPECT_EQ(shape(pods.only(std::vector<std::string>{"a01", "a05", "a09", "a13"})), "(2x2x1: a[01,05,09,13])");
}

TEST(SlurmYaml, WhichTopologyCounts) {
  if (!hasYaml()) GTEST_SKIP() << "this build has no libyaml";
  const std::string standard = "cluster_default: True\n  ";
  expectShapes({
      {"the first", named("a", tree1) + named("b", block1), twoShape},
      {"the default", named("a", tree1) + named("b", standard + block1), blockShape},
      {"the first of two defaults", named("a", "cluster_default: ON\n  " + tree1) + named("b", standard + block1),
       twoShape},
      {"others are rings and toruses", named("r", ring1) + named("t", torus1) + named("b", standard + block1),
       blockShape},
      {"the default is a torus", named("b", block1) + named("t", standard + torus1), "2x3: n[1-6]"},
      {"the default is flat", named("a", tree1) + named("f", standard + "flat: true"), "n[1-4]"},
      {"the first is flat", named("f", "flat: {alpha_step_rank: true}") + named("a", tree1), "n[1-4]"},
      {"no more flat", named("a", "flat: no\n  " + tree1), twoShape},
      {"another is of a kind that nobody knows yet",
       named("x", "hypercube: {corners: [a, b]}") + named("b", standard + block1), blockShape},
  });
}

TEST(SlurmYaml, BadFilesAreNamed) {
  if (!hasYaml()) GTEST_SKIP() << "this build has no libyaml";
  const auto error = [](const std::string& text) { return messageOf([&] { topologyFromSlurmYaml(text, "t.yaml"); }); };
  EXPECT_THAT(error(named("a", "cluster_default: maybe\n  " + tree1)),
              HasSubstr("t.yaml:2: \"maybe\" is neither true nor false"));
  EXPECT_THAT(error(named("a", "cluster_defalt: true\n  " + tree1)), HasSubstr("did you mean cluster_default?"));
  EXPECT_THAT(error(named("a", tree1 + "\n  " + block1)), HasSubstr("of the kind tree and of the kind block"));
  EXPECT_THAT(error(named("a", "cluster_default: true")),
              HasSubstr("t.yaml:1: it is of no kind (tree, block, ring, torus3d, flat)"));
  EXPECT_THAT(error(named("a", tree1) + named("a", block1)), HasSubstr("the topology a stands twice"));
  EXPECT_THAT(error(named("a", tree1 + "\n  " + tree1)), HasSubstr("t.yaml:3: the key tree stands twice"));
  EXPECT_THAT(error(named("a", tree1) + "---\n" + named("b", block1)), HasSubstr("a second document begins"));
  EXPECT_THAT(error(","), HasSubstr("t.yaml:1: no YAML: "));
  EXPECT_THAT(error("a text"), HasSubstr("a topology.yaml is a list"));
  EXPECT_THAT(error(""), HasSubstr("a topology.yaml is a list"));
  EXPECT_THAT(error("- \xff"), HasSubstr("t.yaml: no YAML: "));
  EXPECT_THAT(error("- *nothing"), HasSubstr("t.yaml:1: no YAML: "));
  EXPECT_THAT(error("&a [*a]"), HasSubstr("here stands a table"));
  EXPECT_THAT(error(named("x", "hypercube: {corners: [a]}")),
              HasSubstr("of the kind hypercube, of which nothing is known"));
  EXPECT_THAT(error(named("f", "flat: true")), HasSubstr("the topology f is flat: it groups no hosts"));
  EXPECT_THAT(error(named("t", "torus3d: {toruses: [{name: p, dims: {x: 2, y: 2, z: 2}, nodes: 'n[1-7]'}]}")),
              HasSubstr("t.yaml:2: the dims have 8 places, but there are 7 nodes"));
  EXPECT_THAT(error(named("t", "torus3d: {toruses: [{name: p, dims: {x: 2, y: 2}, nodes: n1}]}")),
              HasSubstr("the key z is missing"));
  EXPECT_THAT(error(named("t", "torus3d: {toruses: [{name: p, dims: {x: 0, y: 2, z: 1}, nodes: n1}]}")),
              HasSubstr("x of dims is a number from 1 to 65535"));
  EXPECT_THAT(error(named("t", "torus3d: {toruses: [{name: p, dims: {x: 60000, y: 60000, z: 60000}, nodes: n1}]}")),
              HasSubstr("more than 1048576 places"));
  EXPECT_THAT(error(named("t", "torus3d: {toruses: [{name: p, dims: {x: 2, y: 1, z: 1}}]}")),
              HasSubstr("either nodes or regions"));
  const std::string at = "{anchor: {x: 1, y: 0, z: 0}, dims: {x: 1, y: 1, z: 1}, nodes: ";
  EXPECT_THAT(error(named("t", "torus3d: {toruses: [{name: p, dims: {x: 2, y: 1, z: 1}, regions: [" + at + "n1}, " +
                                   at + "n2}]}]}")),
              HasSubstr("n2 would be at 1,0,0, where n1 is"));
  EXPECT_THAT(error(named("t", "torus3d: {toruses: [{name: p, dims: {x: 1, y: 1, z: 1}, regions: [" + at + "n1}]}]}")),
              HasSubstr("does not lie wholly in its torus"));
}

}  // namespace
}  // namespace tacc::test

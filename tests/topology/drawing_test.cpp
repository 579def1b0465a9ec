// Pictures of topologies: what must hold of every one, and what single ones must show.
#include "tacc_topo/drawing.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <set>

#include "drawn_topology.hpp"
#include "golden.hpp"
#include "picture.hpp"
#include "tacc_topo/panel.hpp"
#include "tacc_topo/text_fit.hpp"
#include "topology/model/draft.hpp"
#include "topology/model/host_list.hpp"
#include "topology/sources/hwloc_node.hpp"
#include "topology/sources/slurm.hpp"
#include "topology/sources/yaml_text.hpp"
#include "topology/toml/toml.hpp"

namespace tacc::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::size_t mostBytes = 1'000'000;

/// The picture, after what must hold of every one.
std::unique_ptr<Element> drawn(const Topology& topology) {
  const std::string svg = drawing(topology);
  EXPECT_LT(svg.size(), mostBytes);
  std::unique_ptr<Element> picture;
  EXPECT_NO_THROW(picture = readXml(svg));
  if (!picture) return std::make_unique<Element>();
  EXPECT_THAT(faultsOf(*picture), IsEmpty());
  EXPECT_LT(picture->number("width"), 1400);
  return picture;
}

/// What is written, in full where it is shortened.
std::vector<std::string> wordsOf(const Element& picture) {
  std::vector<std::string> words;
  for (const Element* text : picture.all("text"))
    words.push_back(text->children.empty() ? text->text : text->children.front()->text);
  return words;
}

bool says(const std::vector<std::string>& words, const std::string& part) {
  return std::ranges::any_of(words, [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

TEST(Drawing, DrawnTopologiesAreWellDrawn) {
  const char* more = std::getenv("TACC_TEST_PICTURES");
  const std::uint32_t seeds = more == nullptr ? 200 : static_cast<std::uint32_t>(std::atol(more));
  for (std::uint32_t seed = 0; seed < seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    drawn(drawnTopology(seed));
  }
}

/// With few different speeds, each uplink that is not as the others stands in the picture with its group's name.
TEST(Drawing, UplinksThatDifferAreNamed) {
  std::mt19937 engine(1);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    std::string toml = "hosts = \"n[001-900]\"\n[node]\nuplink = \"1 GB/s\"\nuplinks = { ";
    const auto host = [&] { return fmt::format("n{:03}", 1 + random() % 900); };
    const std::set<std::string> slow = {host(), host(), host()};
    for (const std::string& one : slow)
      toml += fmt::format("{}{} = \"{} MB/s\"", one == *slow.begin() ? "" : ", ", one, 100 + random() % 3);
    toml += " }\n[[level]]\nname = \"rack\"\ngroups = { ";
    const std::uint32_t racks = 2 + random() % 60;
    for (std::uint32_t r = 0; r < racks; ++r)
      toml += fmt::format("{}rack{} = \"n[{:03}-{:03}]\"", r > 0 ? ", " : "", r, r * 900 / racks + 1,
                          (r + 1) * 900 / racks);
    toml += " }\nuplink = \"10 GB/s\"\nuplinks = { ";
    const std::uint32_t a = random() % racks, b = (a + 1 + random() % (racks - 1)) % racks;
    toml += fmt::format("rack{} = \"5.5 GB/s\", rack{} = \"{} GB/s\" }}\n[[level]]\n", a, b,
                        random() % 2 == 0 ? "5.5" : "2");
    if (random() % 2 == 0) toml += "wiring = \"all-to-all\"\nlinks = 2\nlink = \"1 GB/s\"\n";
    const Topology topology = topologyFromToml(toml, "drawn");
    const std::vector<std::string> words = wordsOf(*drawn(topology));
    std::set<std::string> names;
    for (const std::string& text : words) {
      try {
        for (std::string& name : expandHosts(text)) names.insert(std::move(name));
      } catch (const Error&) {  // other words
      }
    }
    for (int level = 0; level < topology.root(); ++level) {
      for (std::uint32_t group = 0; group < topology.groups(level); ++group) {
        const std::optional<double> own = ownUplink(topology, level, group);
        if (!own) continue;
        EXPECT_TRUE(says(words, shortSpeed(*own))) << shortSpeed(*own);
        EXPECT_TRUE(names.contains(topology.groupName(level, group))) << topology.groupName(level, group);
      }
    }
  }
}

TEST(Drawing, GoldenFilesAndExamplesAreWellDrawn) {
  if (!hasHwloc() || !hasYaml()) GTEST_SKIP() << "this build lacks hwloc or libyaml";
  int files = 0;
  for (const std::string folder : {TACC_TEST_GOLDEN, TACC_TEST_EXAMPLES, TACC_TEST_CLUSTERS}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".ibsim" || entry.path().extension() == ".md") continue;
      SCOPED_TRACE(entry.path());
      const std::string text = readText(entry.path());
      drawn(sourceOfFile(text, entry.path()).read(text, entry.path()));
      ++files;
    }
  }
  EXPECT_GE(files, 18);
}

TEST(Drawing, HugeTopologiesStaySmall) {
  TopologyDraft draft;
  LevelDraft leaf;
  std::mt19937 random(3);
  for (std::uint32_t h = 0; h < 100'000; ++h) {
    draft.hosts.push_back(fmt::format("h{}", h * 7));  // folds badly
    draft.hostUplinks[draft.hosts.back()] = 1e9 + h;
    leaf.groupOf.push_back(std::to_string(h % 5000));
  }
  for (std::uint32_t g = 0; g < 5000; ++g) leaf.uplinks[std::to_string(g)] = 2e9 + g * 1e6;
  draft.levels.push_back(leaf);
  draft.root.wiring = Wiring::allToAll;
  draft.root.links = 1;
  EXPECT_TRUE(says(wordsOf(*drawn(build(std::move(draft)))), "further group"));
}

TEST(Drawing, WiderUplinksAreWiderLines) {
  const Topology topology = topologyFromToml(R"(
hosts = "n[1-6]"
[[level]]
groups = { a = "n[1-2]", b = "n[3-4]", c = "n[5-6]" }
uplinks = { a = "4 GB/s", b = "1 GB/s", c = "250 MB/s" }
)",
                                             "here");
  const std::unique_ptr<Element> picture = drawn(topology);
  std::vector<double> widths;
  for (const Element* line : picture->all("line")) {
    if (line->attributes.at("x1") == line->attributes.at("x2") && line->attributes.at("stroke") == ink::black)
      widths.push_back(line->number("stroke-width"));
  }
  EXPECT_THAT(widths, ElementsAre(6, 3, 1.5));
  for (const std::string speed : {"4 GB/s", "1 GB/s", "250 MB/s"}) EXPECT_THAT(wordsOf(*picture), Contains(speed));
}

TEST(Drawing, TorusHasItsPlacesLinksAndHooks) {
  const auto torus = [](const std::string& dimensions, std::uint32_t hosts) {
    return drawn(topologyFromToml(
        fmt::format(
            "hosts = \"n[1-{}]\"\n[[level]]\nwiring = \"torus\"\ndimensions = [{}]\nlinks = 2\nlink = \"3 GB/s\"\n",
            hosts, dimensions),
        "here"));
  };
  const auto flat = torus("3, 4", 12);
  EXPECT_TRUE(says(wordsOf(*flat), "2 links of 3 GB/s each way between neighbours"));
  EXPECT_THAT(flat->all("path"), SizeIs(2 * 3 + 2 * 4));  // both ends of each row and column
  for (int host = 1; host <= 12; ++host) EXPECT_THAT(wordsOf(*flat), Contains(fmt::format("n{}", host)));
  const auto cube = torus("5, 6, 7", 210);
  EXPECT_THAT(cube->all("circle"), SizeIs(210));
  EXPECT_THAT(cube->all("path"), SizeIs(5 * (2 * 6 + 2 * 7) + 2));  // and from the last slice to the first
  for (int slice = 0; slice < 5; ++slice) EXPECT_THAT(wordsOf(*cube), Contains(fmt::format("x = {}", slice)));
  EXPECT_THAT(torus("2, 2", 4)->all("path"), IsEmpty());  // two are joined once
}

TEST(Drawing, AllToAllHasAChordForEveryTwo) {
  const auto dragonfly = [](std::uint32_t groups) {
    return drawn(topologyFromToml(
        fmt::format("hosts = \"n[1-{}]\"\n[[level]]\nwiring = \"all-to-all\"\nlinks = 4\nlink = \"25 GB/s\"\n", groups),
        "here"));
  };
  const auto few = dragonfly(9);
  EXPECT_THAT(few->all("line"), SizeIs(9 * 8 / 2 + 1));  // and the rule in the table
  EXPECT_TRUE(says(wordsOf(*few), "4 links of 25 GB/s each way, 100 GB/s together"));
  const auto many = dragonfly(2000);
  EXPECT_TRUE(says(wordsOf(*many), "Of 1,999,000 pairs only those of n1 are drawn"));
}

TEST(Drawing, InsideOfAHostIsDrawnWhole) {
  if (!hasHwloc()) GTEST_SKIP() << "this build lacks hwloc";
  const Topology topology = golden("two_sockets.hwloc.xml");
  const std::vector<std::string> words = wordsOf(*drawn(topology));
  const NodeDescription& node = topology.nodeDescriptions().front();
  for (const auto& core : node.cores) EXPECT_THAT(words, Contains(std::to_string(core.front())));
  EXPECT_EQ(std::ranges::count(words, "cache 16 MiB"), 16);
  for (const char* name : {"socket 0", "socket 1", "NUMA 0", "NUMA 7"}) EXPECT_THAT(words, Contains(name));
}

TEST(Drawing, AHostWithSeveralCardsHasEachOfThem) {
  if (!hasHwloc()) GTEST_SKIP() << "this build lacks hwloc";
  const auto wordsWith = [](int cards) {
    const std::string toml = fmt::format(
        "hosts = \"n[1-4]\"\n[node]\nrails = {}\nuplink = \"400 GB/s\"\nsynthetic = \"pack:2 core:4 pu:1\"\n", cards);
    return wordsOf(*drawn(topologyFromToml(toml, "here")));
  };
  const std::vector<std::string> eight = wordsWith(8), hundred = wordsWith(100), one = wordsWith(1);
  EXPECT_THAT(eight, Contains("8 cards to the network: 400 GB/s together"));
  EXPECT_TRUE(says(hundred, "card 99"));
  EXPECT_TRUE(says(hundred, " more"));
  for (int card = 0; card < 8; ++card) EXPECT_THAT(eight, Contains(fmt::format("card {}", card)));
  EXPECT_THAT(one, Contains("link to the network: 400 GB/s"));
  EXPECT_FALSE(says(one, "card "));
}

TEST(Drawing, ChoosesEndsAndWhatDiffers) {
  const Topology topology =
      topologyFromToml("hosts = \"n[1-100]\"\n[node]\nuplink = \"1 GB/s\"\nuplinks = { n50 = \"2 GB/s\" }\n", "here");
  EXPECT_THAT(choose(topology, 0, 0, 100, 6),
              ElementsAre(Stretch{0, 1, true}, Stretch{1, 2, true}, Stretch{2, 49, false}, Stretch{49, 50, true},
                          Stretch{50, 99, false}, Stretch{99, 100, true}));
  EXPECT_THAT(choose(topology, 0, 0, 100, 3),
              ElementsAre(Stretch{0, 1, true}, Stretch{1, 99, false}, Stretch{99, 100, true}));
  EXPECT_THAT(choose(topology, 0, 0, 2, 3), ElementsAre(Stretch{0, 1, true}, Stretch{1, 2, true}));
}

/// That the test above would notice.
TEST(Picture, FaultsAreFound) {
  const auto faults = [](const std::string& inside) {
    return faultsOf(*readXml("<svg width=\"100\" height=\"100\">" + inside + "</svg>")).size();
  };
  const auto rect = [](int x, int width) {
    return fmt::format("<rect x=\"{}\" y=\"10\" width=\"{}\" height=\"20\"/>", x, width);
  };
  EXPECT_EQ(faults(rect(0, 100)), 0u);
  EXPECT_EQ(faults(rect(1, 100)), 1u);                                             // beyond the canvas
  EXPECT_EQ(faults("<g>" + rect(0, 50) + "</g><g>" + rect(50, 50) + "</g>"), 0u);  // side by side
  EXPECT_EQ(faults("<g>" + rect(0, 50) + "</g><g>" + rect(45, 50) + "</g>"), 1u);  // overlap
  EXPECT_EQ(faults("<g>" + rect(0, 50) + "<g>" + rect(45, 50) + "</g></g>"), 1u);  // beyond its box
  EXPECT_EQ(faults("<g>" + rect(0, 50) + "<text x=\"2\" y=\"25\">abc</text></g>"), 0u);
  EXPECT_EQ(faults("<g>" + rect(0, 50) + "<text x=\"2\" y=\"25\">abcdefgh</text></g>"), 1u);     // too wide
  EXPECT_EQ(faults("<text x=\"2\" y=\"25\">abc</text><text x=\"20\" y=\"25\">abc</text>"), 1u);  // on each other
  for (const char* wrong : {"<a>", "<a></b>", "<a b=\"1\" b=\"2\"/>", "<a>&nbsp;</a>", "<a>\xff</a>", "<a>\x01</a>",
                            "<a b=\"<\"/>", "<a/><b/>", "<a b=1/>"}) {
    EXPECT_THROW(readXml(wrong), std::runtime_error) << wrong;
  }
}

}  // namespace
}  // namespace tacc::test

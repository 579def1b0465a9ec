// Descriptions of networks and hosts, in the form of every source: each is an Error or a whole topology. XML of hwloc,
// which a separate process reads, is in host_xml.cpp.
//
// Input: the number of the source, its text.
#include "fuzz/golden_files.hpp"
#include "fuzz/target.hpp"
#include "topology/fabric_text.hpp"
#include "topology/model/compare.hpp"
#include "topology/model/tree_text.hpp"
#include "topology/sources/source_registry.hpp"
#include "topology/toml/toml.hpp"

namespace tacc::fuzz {
namespace {

constexpr int mostShownHosts = 2000;

/// What would be read in a process of its own.
bool isXml(const TopologySource& source, const std::string& text) {
  return source.name == "hwloc" && text.find("<topology") != std::string::npos;
}

void read(Input input) {
  const auto sources = topologySources();
  const TopologySource& source = sources[static_cast<std::size_t>(input.below(static_cast<int>(sources.size())))];
  const std::string text = input.restAsText();
  if (source.recognises != nullptr) (void)source.recognises(text);
  if (source.read == nullptr || isXml(source, text)) return;
  const Topology topology = source.read(text, "fuzz");
  (void)topology.digest();
  if (topology.hosts() > mostShownHosts) return;
  (void)treeText(topology);
  const Topology again = topologyFromToml(topologyToToml(topology), "again");
  require(differences(topology, again, "it", "what was saved").empty(), "what was saved loads as something else");
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> corpus;
  const auto add = [&corpus](std::string_view name, const std::string& text) {
    const auto sources = topologySources();
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (sources[i].name == name) corpus.push_back(Output().byte(static_cast<int>(i)).range(text).take());
  };
  for (const char* file :
       {"tree.topology.conf", "block.topology.conf", "rails.topology.conf", "meshed.topology.conf",
        "printed_tree.topology.txt", "printed_blocks.topology.txt", "topology.yaml", "torus.topology.yaml"})
    add("slurm", goldenFile(file));
  add("slurm", "RingName=r1 Nodes=a[1-4] RingSize=4\nInclude missing-%c.conf\n");
  add("slurm", "topology: t\ncluster_default: Yes\nring: {rings: [{ring: r, nodes: 'n[1-4]'}]}\n");
  for (const char* file : {"three_levels.ibnetdiscover", "fat_tree.ibnetdiscover", "fat_tree.ibsim", "edge.opareport",
                           "edge.opareport.xml"}) {
    add("ibnet", goldenFile(file));
    add("file", topologyToToml(topologySource("ibnet").read(goldenFile(file), file)));
  }
  const auto card = [](int host, int number) {
    return host == 2 ? "MT4129 ConnectX7   Mellanox Technologies" : fmt::format("n{} mlx5_{}", host, number);
  };
  tacc::test::FabricText rails = tacc::test::FabricText::railOptimised(2, 2, 2, 1, card);
  rails.addAggregationNode(0);
  add("ibnet", "[root@admin ~]# ibnetdiscover\n" + rails.text());
  for (const char* file : {"xc40.hosts", "ex.hosts"}) {
    const std::string beginning = goldenFile(file).substr(0, 4000);
    add("cray", beginning.substr(0, beginning.rfind('\n') + 1));
  }
  add("cray",
      "n0 c0-0c0s0n0\nn1 c0-0c0s0n2\nc0-0c0s0g0l00[(0,0,0)] Y+ -> c0-0c0s0g1l00[(0,1,0)] LinkType: mezzanine\n");
  add("cray", "n0 c0-0c0s0n0\nn1 c2-0c0s0n0\nc0-0c0s0a0l00(0:0:0) blue -> c2-0c0s0a0l00(1:0:0)\n");
  add("sunway", "vn000123\nvn000124\nvn000500\n");
  add("hwloc", "pack:2 numa:2 l3:2(size=16MB) core:4 pu:2");
  add("file",
      "hosts = \"cn[001-008]\"\n[[machine]]\nhosts = \"cn[001-008]\"\ncpus = \"0-7+8-15\"\n[[machine.level]]\nkind = "
      "\"numa\"\nsizes = \"2*4\"\nbytes = \"1 GiB\"\n");
  std::string probe = "# measured\n";
  for (int a = 0; a < 4; ++a)
    for (int b = a + 1; b < 4; ++b) {
      probe += "pair n" + std::to_string(a) + " n" + std::to_string(b);
      probe += a / 2 == b / 2 ? " 1us 1GB/s\n" : " 2us 1GB/s\n";
    }
  add("probe", probe + "alone n0 n1 1us 1GB/s\noutward n[0-1] 1GB/s\n");
  return corpus;
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tacc::fuzz::mayRefuse([&] { tacc::fuzz::read({data, size}); });
}

// What is inside a host, as XML of lstopo: each is an Error or a whole host. A separate process reads it, as hwloc does
// not survive damaged files. As a test an input costs a fork; libFuzzer's inputs go to a process that reads them until
// one ends it.
//
// Input: the text.
#include "fuzz/beside.hpp"
#include "fuzz/golden_files.hpp"
#include "fuzz/target.hpp"
#include "topology/model/compare.hpp"
#include "topology/sources/hwloc_node.hpp"
#include "topology/sources/source_registry.hpp"
#include "topology/toml/toml.hpp"

namespace tacc::fuzz {
namespace {

constexpr std::size_t longestXml = 1 << 16;  // libxml's own work, not this library's

void read(Input input) {
  const std::string text = input.restAsText();
  if (!hasHwloc() || text.size() > longestXml || text.find("<topology") == std::string::npos) return;
  const Topology topology = topologySource("hwloc").read(text, "fuzz");
  const Topology again = topologyFromToml(topologyToToml(topology), "again");
  require(differences(topology, again, "it", "what was saved").empty(), "what was saved loads as something else");
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> corpus;
  for (const char* file :
       {"two_sockets.hwloc.xml", "dies_hbm.hwloc3.xml", "container.hwloc.xml", "arm_board.hwloc.xml"})
    corpus.push_back(Output().range(goldenFile(file)).take());
  return corpus;
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
#ifdef TACC_FUZZ_ENGINE
  tacc::fuzz::runBeside(tacc::fuzz::read, {data, size});
  return 0;
#else
  return tacc::fuzz::mayRefuse([&] { tacc::fuzz::read({data, size}); });
#endif
}

// What a host tells of itself, and the parts of it: lists of hosts, of cores, sizes.
//
// Input: which parser, its text.
#include "topology/sources/host_clues.hpp"

#include "core/parse.hpp"
#include "fuzz/target.hpp"
#include "topology/model/host_list.hpp"

namespace tacc::fuzz {
namespace {

constexpr int parsers = 3;
constexpr std::size_t mostNames = 4096;

void read(Input input) {
  const int parser = input.below(parsers);
  const std::string text = input.restAsText();
  if (parser == 0) {
    const HostClues clues = cluesFromText(text);
    if (clues.node && clues.node->cores.size() > mostNames) return;
    const std::string again = cluesToText(clues);
    require(cluesToText(cluesFromText(again)) == again, "clues that are told change");
  } else if (parser == 1) {
    const std::vector<std::string> names = expandHosts(text, mostNames);
    require(names.size() <= mostNames, "more hosts than asked for");
    require(expandHosts(foldHosts(names), mostNames) == names, "a folded list expands to another");
    (void)someHosts(names);
    for (const std::string& name : names) (void)numberIn(name);
  } else {
    (void)parseSize(text);
    (void)parseSeconds(text);
    (void)parseInteger(text, -5, 1 << 20);
    (void)shownText(text);
    (void)isHostName(text);
  }
}

}  // namespace

std::vector<Bytes> seeds() {
  const std::string clues =
      "host node7\ncname c0-0c0s0n0\nxname x1000c0s0b0n0\ncard 02:00:00:00:00:01 200000\nslurm-address s1.s2.node7\n"
      "slurm-pattern switch.switch.node\nslurm-partition gpu\ncpus 0-7+8-15\ninner numa 2*4 1 GiB\n";
  std::vector<Bytes> corpus;
  const auto add = [&corpus](int parser, const std::string& text) {
    corpus.push_back(Output().byte(parser).range(text).take());
  };
  add(0, clues);
  add(0, "host a\ncpus 0-3\ninner core 4*1 -\n");
  add(0, "host a\ncard 02:00:00:00:00:02\r\r  1x\n");
  for (const char* list : {"node[001-016],login1", "rack[0-3]node[0-7]", "a,b,c", "n[1,3,5-7]x[00-02]"}) add(1, list);
  for (const char* number : {"100M", "250ms", "0.5", "-5", "1048576"}) add(2, number);
  return corpus;
}

}  // namespace tacc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tacc::fuzz::mayRefuse([&] { tacc::fuzz::read({data, size}); });
}

#include "coordinator/options.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "coordinator/command_line.hpp"
#include "coordinator/launch.hpp"
#include "coordinator/words.hpp"
#include "worker/element.hpp"

namespace tacc::bench {
namespace {

/// Words as they stand on the command line, before they are understood.
struct Words {
  std::string collective, first, last, step, single, pool, cluster;
  std::string type = "float", op = "sum", root = "0", memory = "private";
  size_t factor = 0;
  int check = 1;
  std::vector<std::string> peerArguments;
};

std::string collectiveNames() {
  std::string names;
  for (const Collective& collective : allCollectives())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", collective.name);
  return names;
}

void declare(CLI::App& app, Words& words, Options& options) {
  app.add_option("COLLECTIVE", words.collective, collectiveNames())->required();
  app.add_option("-b,--minbytes", words.first, "smallest size, with K, M or G for binary units (8)");
  app.add_option("-e,--maxbytes", words.last, "largest size (128M)");
  auto* factor = app.add_option("-f,--stepfactor", words.factor, "factor from one size to the next (2)");
  app.add_option("-i,--stepbytes", words.step, "bytes from one size to the next, instead of a factor")
      ->excludes(factor);
  app.add_option("--size", words.single, "this one size");
  app.add_option("-n,--iters", options.iterations, "timed iterations per size (as many as take about a second)")
      ->check(CLI::PositiveNumber);
  app.add_option(
         "-w,--warmup", options.warmup,
         "untimed iterations before each repetition (a tenth of the timed; between hosts as many as use up the links' "
         "bursts)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--repetitions", options.repetitions, "blocks that the iterations are cut into; the median counts (5)")
      ->check(CLI::PositiveNumber);
  app.add_option("-c,--check", words.check, "1: check all results (1)")->check(CLI::IsMember({0, 1}));
  app.add_option("-d,--datatype", words.type,
                 "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 all (float)");
  app.add_option("-o,--op", words.op, "sum prod min max avg all (sum)");
  app.add_option("-r,--root", words.root, "a rank, or all (0)");
  app.add_option("--ranks", options.ranks, "ranks to start (one for each CPU allowed, at least 2)")
      ->check(CLI::Range(1, 4096));
  app.add_option("--algo", options.algorithm, "force this algorithm of tacc");
  app.add_flag("--explain", options.explains, "tell on standard error why tacc runs each size as it does");
  app.add_option("--memory", words.memory, "tacc's buffers: private, or library (taccMemAlloc) (private)")
      ->check(CLI::IsMember({"private", "library"}));
  app.add_flag("--threads", options.threads, "tacc's ranks are threads of one process");
  app.add_option("--peer", options.peers, "compare with mpich, openmpi, gloo; several with commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--peer-args", words.peerArguments, "NAME=\"...\": more arguments for a peer's launcher")
      ->allow_extra_args(false);
  app.add_option("--reference", options.reference,
                 "compare the --peer among themselves, with this one as the reference")
      ->check(CLI::IsMember(peerNames()));
  app.add_option("--cluster", words.cluster,
                 "SUPERNODES,HOSTS,HOST_MBIT,UPLINK_MBIT, or a topology file: run on the hosts of a virtual cluster, "
                 "one rank on each by default");
  app.add_option("--place", options.placement, "ranks on its hosts: block, cyclic or random[:SEED] (block)");
  app.add_flag("--bound", options.bound,
               "also measure the machine's memory bound (allreduce; always with library memory)");
  app.add_option("--pool", words.pool,
                 "bytes that the calls of a rank move through, per direction (2 x cache / ranks)");
  app.add_option("--json", options.jsonFile, "write the results to this file");
  app.add_option("--plot", options.plotFile, "draw time over size into this SVG file");
  app.add_option("--peer-dir", options.peerDirectory, "where the peer programs are")->group("");
}

/// "all", or the one value that `parse` finds.
template <typename T, typename Parse>
std::vector<T> oneOrAll(const std::string& word, int limit, const char* what, Parse parse) {
  std::vector<T> values;
  if (word == "all") {
    for (int i = 0; i < limit; ++i) values.push_back(static_cast<T>(i));
  } else if (const auto value = parse(word)) {
    values.push_back(*value);
  } else {
    throw std::invalid_argument(fmt::format("unknown {} \"{}\"", what, word));
  }
  return values;
}

std::optional<int> parseRank(const std::string& word, int ranks) {
  char* end = nullptr;
  const long value = std::strtol(word.c_str(), &end, 10);
  if (word.empty() || *end != '\0' || value < 0 || value >= ranks)
    throw std::invalid_argument(fmt::format("root \"{}\" is not a rank from 0 to {}", word, ranks - 1));
  return static_cast<int>(value);
}

SizeRange parseSizes(const Words& words) {
  SizeRange range;
  if (!words.single.empty()) {
    if (!(words.first + words.last + words.step).empty() || words.factor != 0)
      throw std::invalid_argument("--size stands alone, without -b, -e, -f and -i");
    range.first = range.last = parseSize(words.single);
    return range;
  }
  if (!words.first.empty()) range.first = parseSize(words.first);
  if (!words.last.empty()) range.last = parseSize(words.last);
  if (words.factor == 1) throw std::invalid_argument("-f 1 would never end; the factor is at least 2");
  if (words.factor > 1) range.factor = words.factor;
  if (!words.step.empty()) {
    range.factor = 0;
    range.step = parseSize(words.step);
    if (range.step == 0) throw std::invalid_argument("-i 0 would never end; the step is at least 1 byte");
  }
  if (range.first > range.last)
    throw std::invalid_argument(fmt::format("-b {} is above -e {}", range.first, range.last));
  if (range.first == 0 && range.factor > 1) throw std::invalid_argument("with a factor, -b is at least 1 byte");
  return range;
}

void parsePeers(const Words& words, Options& options) {
  const auto known = peerNames();
  const auto requireKnown = [&](const std::string& name) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw std::invalid_argument(fmt::format("unknown peer \"{}\"; there are {}", name, joinWords(known)));
  };
  for (const std::string& peer : options.peers) {
    requireKnown(peer);
    if (std::count(options.peers.begin(), options.peers.end(), peer) > 1)
      throw std::invalid_argument(fmt::format("--peer names {} twice", peer));
  }
  if (options.reference != "tacc" && std::erase(options.peers, options.reference) == 0)
    throw std::invalid_argument(fmt::format("--reference {} is not among the peers", options.reference));
  for (const std::string& word : words.peerArguments) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos)
      throw std::invalid_argument(fmt::format("--peer-args \"{}\" is not NAME=ARGUMENTS", word));
    const std::string name = word.substr(0, equals);
    requireKnown(name);
    std::istringstream rest(word.substr(equals + 1));
    for (std::string argument; rest >> argument;) options.peerArguments[name].push_back(argument);
  }
}

void understand(const Words& words, Options& options) {
  options.collective = findCollective(words.collective);
  if (options.collective == nullptr)
    throw std::invalid_argument(
        fmt::format("unknown collective \"{}\"; there are {}", words.collective, collectiveNames()));
  if (!words.cluster.empty()) options.cluster = ClusterShape::parse(words.cluster);
  if (options.cluster && options.threads) throw std::invalid_argument("--threads are on one host, not on a --cluster");
  if (options.ranks == 0) options.ranks = options.cluster ? options.cluster->totalHosts() : std::max(2, allowedCpus());
  options.sizes = parseSizes(words);
  options.check = words.check != 0;
  options.types = oneOrAll<taccDataType_t>(words.type, taccNumTypes, "type", typeFromName);
  options.ops = oneOrAll<taccRedOp_t>(words.op, taccNumOps, "operation", opFromName);
  options.roots = oneOrAll<int>(words.root, options.ranks, "root",
                                [&](const std::string& word) { return parseRank(word, options.ranks); });
  if (!options.collective->reduces) options.ops = {taccSum};
  if (!options.collective->rooted) options.roots = {0};
  options.libraryMemory = words.memory == "library";
  if (!words.pool.empty()) options.poolBytes = parseSize(words.pool);
  const bool isAllReduce = options.collective->kind == Kind::allReduce;
  if (options.bound && !isAllReduce) throw std::invalid_argument("--bound is there for allreduce only");
  options.bound = options.bound || ((options.libraryMemory || options.cluster) && isAllReduce);
  parsePeers(words, options);
}

}  // namespace

int allowedCpus() {
  // The kernel refuses a set that is too small for its CPUs, so it is doubled until it fits.
  for (int capacity = 1024; capacity <= 1 << 20; capacity *= 2) {
    cpu_set_t* set = CPU_ALLOC(capacity);
    const size_t bytes = CPU_ALLOC_SIZE(capacity);
    const bool known = ::sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return count;
  }
  return 1;
}

Options parseOptions(int argc, char** argv) {
  CLI::App app("Times a collective of tacc between local ranks, and of other libraries beside it.", "tacc_bench");
  Words words;
  Options options;
  declare(app, words, options);
  parseCommandLine(app, "tacc_bench", argc, argv, [&] { understand(words, options); });
  return options;
}

}  // namespace tacc::bench

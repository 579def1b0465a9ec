#include "coordinator/options.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "coordinator/launch.hpp"
#include "support/command_line.hpp"
#include "support/process.hpp"
#include "support/words.hpp"
#include "worker/element.hpp"

namespace tacc::bench {
namespace {

/// Words as they stand on the command line, before they are understood.
struct GivenWords {
  std::string collective, first, last, step, single, pool, cluster;
  std::string type = "float", op = "sum", root = "0", memory = "private";
  size_t factor = 0;
  int check = 1, average = 1, blocking = -1;
  std::vector<std::string> peerArguments;
};

std::string collectiveNames() {
  std::string names;
  for (const Collective& collective : allCollectives())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", collective.name);
  return names;
}

void declare(CLI::App& app, GivenWords& words, Options& options) {
  app.add_option("COLLECTIVE", words.collective, collectiveNames())->required();
  app.add_option("-b,--minbytes", words.first, "smallest size, with K, M or G for binary units (8)");
  app.add_option("-e,--maxbytes", words.last, "largest size (128M)");
  auto* factor = app.add_option("-f,--stepfactor", words.factor, "factor from one size to the next (2)");
  app.add_option("-i,--stepbytes", words.step, "bytes from one size to the next, instead of a factor")
      ->excludes(factor);
  app.add_option("--size", words.single, "this one size");
  app.add_option("-n,--iters", options.iterations, "timed iterations per size (as many as take about a second)")
      ->check(tools::isPositive);
  app.add_option(
         "-w,--warmup", options.warmup,
         "untimed iterations before each repetition (a tenth of the timed; between hosts as many as use up the links' "
         "bursts)")
      ->check(tools::isNotNegative);
  app.add_option("--repetitions", options.repetitions, "blocks that the iterations are cut into; the median counts (5)")
      ->check(tools::isPositive);
  app.add_option("-m,--agg_iters", options.aggregate, "calls of one iteration, given to tacc as one group (1)")
      ->check(CLI::Range(1, 4096));
  app.add_option("-N,--run_cycles", options.cycles, "measure all sizes so often; 0: until it is ended (1)")
      ->check(tools::isNotNegative);
  app.add_option("-a,--average", words.average, "over ranks: 0 rank 0's time, 1 mean, 2 least, 3 most (1)")
      ->check(CLI::Range(0, 3));
  app.add_option("-C,--report_cputime", options.reportsCpuTime, "1: processor time of a call instead of its time (0)")
      ->check(CLI::IsMember({0, 1}));
  app.add_option("-I,--per_iter", options.perCall,
                 "1: time every call, and add the least, the most, the 99th percentile and the variation in percent of "
                 "their mean, of the calls of all ranks (0)")
      ->check(CLI::IsMember({0, 1}));
  app.add_option("-T,--timeout", options.timeout, "seconds that one call may take before it is an error (600)")
      ->check(tools::isPositive);
  app.add_option("-c,--check", words.check, "1: check all results (1)")->check(CLI::IsMember({0, 1}));
  app.add_option("-d,--datatype", words.type,
                 "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 all (float)");
  app.add_option("-o,--op", words.op, "sum prod min max avg all (sum)");
  app.add_option("-r,--root", words.root, "a rank, or all (0)");
  app.add_option("--ranks", options.ranks, "ranks to start (one for each CPU allowed, at least 2)")
      ->check(CLI::Range(1, 4096));
  app.add_option("--algo", options.algorithm, "force this algorithm of tacc");
  app.add_flag("--explain", options.explains, "tell on standard error why tacc runs each size as it does");
  app.add_option("--memory", words.memory,
                 "buffers: private, on huge pages where the kernel has them; small-pages, private without them; or "
                 "library, tacc's from taccMemAlloc (private)")
      ->check(CLI::IsMember({"private", "small-pages", "library"}));
  app.add_flag("--threads", options.threads, "tacc's ranks are threads of one process");
  app.add_option("-p,--parallel_init", options.parallelInit, "1: such threads join each by itself (0)")
      ->check(CLI::IsMember({0, 1}));
  app.add_option("-R,--local_register", options.registers, "1: register tacc's private buffers (0)")
      ->check(CLI::IsMember({0, 1}));
  app.add_option("-z,--blocking", words.blocking,
                 "1: each call ends before the next; 0: they are given to a stream, and the last is waited for (1)")
      ->check(CLI::IsMember({0, 1}));
  app.add_option("--streams", options.streams,
                 "give the calls to so many streams in turn, each with a communicator of its own (0)")
      ->check(CLI::Range(0, 64));
  app.add_option(
         "--peer", options.peers,
         "compare with mpich, openmpi, gloo; with mpich+tacc or openmpi+tacc: an MPI whose calls are taken over by the "
         "preloaded libtacc_mpi; several with commas")
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
  app.add_flag(
      "--bound", options.bound,
      "also measure the machine's memory bound (allreduce; always with library memory); of a --cluster what its "
      "links allow is always shown");
  app.add_option("--load", options.load, "let so many other processes compute meanwhile (0)")
      ->check(CLI::Range(0, 1024));
  app.add_option("--pool", words.pool,
                 "bytes that the calls of a rank move through, per direction (2 x cache / ranks)");
  app.add_option("-J,--json", options.jsonFile, "write the results to this file");
  app.add_flag("--append", options.appends, "add them to the file as one line instead, beside those of earlier runs");
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

tools::SizeRange parseSizes(const GivenWords& words) {
  tools::SizeRange range;
  if (!words.single.empty()) {
    if (!(words.first + words.last + words.step).empty() || words.factor != 0)
      throw std::invalid_argument("--size stands alone, without -b, -e, -f and -i");
    range.first = range.last = tools::parseSize(words.single);
    return range;
  }
  if (!words.first.empty()) range.first = tools::parseSize(words.first);
  if (!words.last.empty()) range.last = tools::parseSize(words.last);
  if (words.factor == 1) throw std::invalid_argument("-f 1 would never end; the factor is at least 2");
  if (words.factor > 1) range.factor = words.factor;
  if (!words.step.empty()) {
    range.factor = 0;
    range.step = tools::parseSize(words.step);
    if (range.step == 0) throw std::invalid_argument("-i 0 would never end; the step is at least 1 byte");
  }
  if (range.first > range.last)
    throw std::invalid_argument(fmt::format("-b {} is above -e {}", range.first, range.last));
  if (range.first == 0 && range.factor > 1) throw std::invalid_argument("with a factor, -b is at least 1 byte");
  return range;
}

void parsePeers(const GivenWords& words, Options& options) {
  const auto known = peerNames();
  const auto requireKnown = [&](const std::string& name) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw std::invalid_argument(fmt::format("unknown peer \"{}\"; there are {}", name, tools::joinWords(known)));
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

/// Things that exclude each other.
void requireOneWay(const GivenWords& words, const Options& options) {
  if (words.blocking == 1 && options.streams > 0)
    throw std::invalid_argument("-z 1 lets each call end before the next, and --streams does not: take one of them");
  if (options.perCall && options.streams > 0)
    throw std::invalid_argument("-I 1 times every call to its end, and calls on streams have no end of their own");
  if (options.perCall && options.reportsCpuTime) throw std::invalid_argument("-I 1 times calls, -C 1 processors");
  if (options.parallelInit && !options.threads)
    throw std::invalid_argument("-p 1 is for --threads: processes join in parallel anyway");
  if (options.registers && options.libraryMemory)
    throw std::invalid_argument("-R 1 makes private memory shared, and --memory library is shared already");
  if (options.appends && options.jsonFile.empty())
    throw std::invalid_argument("--append adds to a file: name it with --json");
  if (options.collective->kind == Kind::barrier && !options.plotFile.empty())
    throw std::invalid_argument("--plot draws time over size, and a barrier has none");
}

/// What cannot be asked for in a job of which the launcher has started every rank.
void requireFitting(const GivenWords& words, const Options& options) {
  const Job& job = *options.job;
  const auto reject = [&](const std::string& what, const std::string& instead) {
    throw std::invalid_argument(
        fmt::format("{}, but {} has started all {} ranks already: {}", what, job.launcher, job.ranks, instead));
  };
  if (options.ranks != 0)
    reject("--ranks starts ranks", "leave it out, and give the launcher their number (mpiexec -n, srun -n)");
  if (!words.cluster.empty())
    reject("--cluster starts ranks on a virtual cluster",
           "leave it out, or start tacc_bench by itself; to run on a cluster that is up: ./dev cluster run -- "
           "tacc_bench");
  if (options.placement != "block") reject("--place deals out ranks to be started", "leave it out");
  if (options.threads) reject("--threads makes all ranks threads of one process", "leave it out");
  if (options.load > 0) reject("--load starts other processes beside the ranks of this host", "leave it out");
  if (options.bound) reject("--bound starts ranks that share memory", "leave it out");
  if (options.reference != "tacc")
    reject("--reference compares peers among themselves", "start tacc_bench without a launcher for that");
  const bool isOpenMpi = job.launcher == "Open MPI", isHydra = job.launcher == "Hydra";
  for (const std::string& peer : options.peers) {
    if (peer == "gloo") reject("--peer gloo starts ranks of Gloo", "start tacc_bench without a launcher for that");
    if (isPreloaded(peer))
      reject(fmt::format("--peer {} preloads a library into ranks", peer),
             "start tacc_bench without a launcher for that");
    if (job.launcher == "torchrun" || (peer == "mpich" ? isOpenMpi : isHydra))
      reject(fmt::format("--peer {} is the MPI whose launcher started the ranks", peer),
             fmt::format("start them by {}, or leave it out",
                         peer == "mpich" ? "MPICH's mpiexec, mpiexec.mpich" : "Open MPI's mpirun, mpirun.openmpi"));
  }
}

void understand(const GivenWords& words, Options& options) {
  parsePeers(words, options);
  options.collective = findCollective(words.collective);
  if (options.collective == nullptr)
    throw std::invalid_argument(
        fmt::format("unknown collective \"{}\"; there are {}", words.collective, collectiveNames()));
  if (options.job) {
    requireFitting(words, options);
    options.ranks = options.job->ranks;
  }
  if (!words.cluster.empty()) options.cluster = tools::ClusterShape::parse(words.cluster);
  if (options.cluster && options.threads) throw std::invalid_argument("--threads are on one host, not on a --cluster");
  if (options.ranks == 0)
    options.ranks = options.cluster ? options.cluster->totalHosts() : std::max(2, tools::allowedCpus());
  options.sizes = parseSizes(words);
  options.check = words.check != 0;
  options.types = oneOrAll<taccDataType_t>(words.type, numTypes, "type", typeFromName);
  options.ops = oneOrAll<taccRedOp_t>(words.op, numOps, "operation", opFromName);
  options.roots = oneOrAll<int>(words.root, options.ranks, "root",
                                [&](const std::string& word) { return parseRank(word, options.ranks); });
  if (!options.collective->reduces) options.ops = {taccSum};
  if (options.collective->isPrefix && words.op == "all") std::erase(options.ops, taccAvg);
  if (options.collective->isPrefix && std::ranges::find(options.ops, taccAvg) != options.ops.end())
    throw std::invalid_argument(fmt::format("{} has no average", options.collective->name));
  if (options.collective->kind == Kind::barrier) options.types = {taccFloat32};
  if (!options.collective->rooted) options.roots = {0};
  options.libraryMemory = words.memory == "library";
  options.smallPages = words.memory == "small-pages";
  if (!words.pool.empty()) options.poolBytes = tools::parseSize(words.pool);
  const bool isAllReduce = options.collective->kind == Kind::allReduce;
  if (options.bound && !isAllReduce && !options.cluster)
    throw std::invalid_argument("--bound is there for allreduce only");
  // Of a cluster it is computed, for every collective.
  options.bound = options.bound || (!options.job && (options.cluster || (options.libraryMemory && isAllReduce)));
  options.average = static_cast<Average>(words.average);
  if (words.blocking == 0 && options.streams == 0) options.streams = 1;
  requireOneWay(words, options);
}

}  // namespace

namespace {

/// What is written goes nowhere for as long as this lives.
class Silence {
 public:
  Silence() {
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (int i = 0; i < 2; ++i) {
      kept_[i] = ::fcntl(i + 1, F_DUPFD_CLOEXEC, 3);
      ::dup2(nowhere, i + 1);
    }
    ::close(nowhere);
  }
  ~Silence() {
    for (int i = 0; i < 2; ++i) {
      ::dup2(kept_[i], i + 1);
      ::close(kept_[i]);
    }
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  int kept_[2];
};

}  // namespace

Options parseOptions(int argc, char** argv, const std::optional<Job>& job) {
  CLI::App app(
      "Times a collective of tacc, and of other libraries beside it. Under mpiexec, srun or torchrun all processes are "
      "one job, and rank 0 prints; else it starts ranks itself, on this host or a virtual cluster.",
      "tacc_bench");
  GivenWords words;
  Options options;
  options.job = job;
  for (int i = 1; i < argc; ++i) options.arguments += fmt::format("{}{}", i == 1 ? "" : " ", argv[i]);
  declare(app, words, options);
  // All ranks find the same in it, and rank 0 says so.
  std::optional<Silence> silence;
  if (job && job->rank != 0) silence.emplace();
  tools::parseCommandLine(app, "tacc_bench", argc, argv, [&] { understand(words, options); });
  return options;
}

}  // namespace tacc::bench

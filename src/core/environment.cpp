#include "core/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/instruction_sets.hpp"
#include "core/mpi_variables.hpp"
#include "core/parse.hpp"
#include "core/topology_sources.hpp"
#include "core/transports.hpp"

namespace tacc {
namespace {

constexpr std::string_view prefix = "TACC_";
// The Texas Advanced Computing Center's systems and modules have variables of the same prefix in every job:
// TACC_SYSTEM, TACC_FAMILY_MPI, TACC_HDF5_DIR and the like. Theirs are no business of the library.
constexpr std::array<std::string_view, 3> reservedPrefixes = {"TACC_TEST_", "TACC_BENCH_", "TACC_FAMILY_"};
constexpr std::array<std::string_view, 7> moduleSuffixes = {"_DIR", "_LIB", "_LIB64", "_INC", "_BIN", "_DOC", "_HOME"};
constexpr std::array<std::string_view, 8> centerNames = {
    "TACC_SYSTEM", "TACC_DOMAIN", "TACC_NODE_TYPE", "TACC_VEC_FLAGS", "TACC_CC", "TACC_CXX", "TACC_FC", "TACC_SCRATCH"};
constexpr int longestSpin = 1'000'000;  // microseconds
constexpr int widestJoin = 65536;

/// A word of a variable with a fixed choice, and what it means.
template <class Value>
struct Choice {
  std::string_view word;
  Value value;
};

#define TACC_WORD(name, ...) std::string_view(#name),
constexpr std::array isas = {TACC_INSTRUCTION_SETS(TACC_WORD) std::string_view("best")};
constexpr std::array transportWords = {std::string_view("auto"), TACC_TRANSPORTS(TACC_WORD)};
constexpr std::array topologyWords = {std::string_view("auto"), TACC_TOPOLOGY_SOURCES(TACC_WORD)};
#undef TACC_WORD
constexpr Choice<LogLevel> logLevels[] = {
    {"none", LogLevel::none}, {"warn", LogLevel::warn}, {"info", LogLevel::info}, {"trace", LogLevel::trace}};
constexpr Choice<CmaMode> cmaModes[] = {
    {"auto", CmaMode::automatic}, {"on", CmaMode::on}, {"pipes", CmaMode::pipes}, {"off", CmaMode::off}};
constexpr Choice<std::optional<bool>> switches[] = {{"on", true}, {"off", false}};
constexpr Choice<SegmentSource> segmentSources[] = {
    {"memfd", SegmentSource::memfd}, {"file", SegmentSource::file}, {"off", SegmentSource::off}};

template <class Value, std::size_t size>
std::string wordsOf(const Choice<Value> (&choices)[size]) {
  std::vector<std::string_view> words;
  for (const Choice<Value>& choice : choices) words.push_back(choice.word);
  return listOf(words);
}

template <class Value, std::size_t size>
bool choose(const Choice<Value> (&choices)[size], std::string_view text, Value& result) {
  for (const Choice<Value>& choice : choices) {
    if (choice.word != text) continue;
    result = choice.value;
    return true;
  }
  return false;
}

template <class Value>
bool keep(std::optional<Value> parsed, std::optional<Value>& result) {
  if (parsed) result = parsed;
  return parsed.has_value();
}

bool readAlgorithm(std::string_view text, Environment& environment) {
  environment.algorithm = text;
  return !text.empty();
}

bool readIsa(std::string_view text, Environment& environment) {
  environment.isa = text;
  return std::find(isas.begin(), isas.end(), text) != isas.end();
}

bool readChunkSize(std::string_view text, Environment& environment) {
  return keep(parseSize(text), environment.chunkSize) && *environment.chunkSize >= 4096;
}

bool readTransport(std::string_view text, Environment& environment) {
  environment.transport = text == "auto" ? std::string_view() : text;
  return std::ranges::find(transportWords, text) != transportWords.end();
}

bool readTopologySource(std::string_view text, Environment& environment) {
  environment.topologySource = text == "auto" ? std::string_view() : text;
  return std::ranges::find(topologyWords, text) != topologyWords.end();
}

bool readSpin(std::string_view text, Environment& environment) {
  if (text == "auto") return true;
  const std::optional<std::int64_t> microseconds = parseInteger(text, 0, longestSpin);
  if (microseconds) environment.spin = static_cast<int>(*microseconds);
  return microseconds.has_value();
}

bool readJoinWidth(std::string_view text, Environment& environment) {
  const std::optional<std::int64_t> width = parseInteger(text, 1, widestJoin);
  if (width) environment.joinWidth = static_cast<int>(*width);
  return width.has_value();
}

bool readPortRange(std::string_view text, Environment& environment) {
  environment.portRange = parsePortRange(text);
  return environment.portRange.has_value();
}

bool readReproducible(std::string_view text, Environment& environment) {
  environment.reproducible = text == "on";
  return text == "on" || text == "off";
}

bool readHalfPartialSums(std::string_view text, Environment& environment) {
  environment.halfPartialSums = text == "on";
  return text == "on" || text == "off";
}

bool readEncryption(std::string_view text, Environment& environment) {
  environment.encryption = text == "on";
  return text == "on" || text == "off";
}

bool readInterfaces(std::string_view text, Environment& environment) {
  environment.interfaces = text;
  return !text.empty() && text.find(' ') == std::string_view::npos && text.front() != ',' && text.back() != ',' &&
         text.find(",,") == std::string_view::npos;
}

/// As in PATH.
bool readTopologyFiles(std::string_view text, Environment& environment) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    environment.topologyFiles.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  const auto isEmpty = [](const std::string& file) { return file.empty(); };
  return std::ranges::none_of(environment.topologyFiles, isEmpty);
}

struct Row {
  EnvironmentVariable variable;
  bool isAgreed;  // all ranks of a communicator must have the same value
  /// Reads the value; false when it is malformed.
  bool (*read)(std::string_view text, Environment& environment);
};

const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
      {{"TACC_ALGO", "the name of an algorithm", "chosen by the library",
        "Forces one algorithm for the collectives that it serves."},
       true,
       readAlgorithm},
      {{"TACC_ISA", listOf(isas), "best", "The widest instruction set that the kernels may use."}, false, readIsa},
      {{"TACC_INIT_TIMEOUT", "seconds, e.g. 30, 0.5 or 500ms", "as configured, 120",
        "How long a communicator waits for all its ranks to join."},
       false,
       [](std::string_view text, Environment& e) { return keep(parseSeconds(text), e.initTimeout); }},
      {{"TACC_TIMEOUT", "seconds, e.g. 30, 0.5 or 500ms; 0: for ever", "as configured, 600",
        "How long one operation may wait for another rank."},
       false,
       [](std::string_view text, Environment& e) { return keep(parseSeconds(text), e.operationTimeout); }},
      {{"TACC_DEBUG", wordsOf(logLevels), "none", "What is written to standard error."},
       false,
       [](std::string_view text, Environment& e) { return choose(logLevels, text, e.logLevel); }},
      {{"TACC_CHUNK_SIZE", "a size of 4K or more, e.g. 256K or 1M", "512K, less for a broadcast or reduce",
        "The bytes of each rank's staging chunk in shared memory."},
       true,
       readChunkSize},
      {{"TACC_CMA", wordsOf(cmaModes), "auto",
        "Whether ranks read each other's private memory through the kernel; auto: where a probe shows that it works; "
        "pipes: always through pipes, where ranks have them."},
       true,
       [](std::string_view text, Environment& e) { return choose(cmaModes, text, e.cma); }},
      {{"TACC_DYNAMIC", wordsOf(switches), "as configured, on",
        "Whether the times of calls correct what the model chooses between hosts, while the job runs."},
       true,
       [](std::string_view text, Environment& e) { return choose(switches, text, e.dynamic); }},
      {{"TACC_SPIN", fmt::format("auto, or microseconds from 0 to {}", longestSpin), "auto",
        "How long a waiting rank spins before it yields its core."},
       false,
       readSpin},
      {{"TACC_TRANSPORT", listOf(transportWords), "auto",
        "How data goes between hosts; auto: by the first of them that works on all ranks."},
       true,
       readTransport},
      {{"TACC_ENCRYPTION", "on, off", "off",
        "Whether what goes between ranks over TCP, init's connections among it, is encrypted; tacc's own TCP is then "
        "what "
        "carries messages between hosts."},
       true,
       readEncryption},
      {{"TACC_SHM", wordsOf(segmentSources), "memfd",
        "Where shared memory comes from: memfd_create, or files without a name in /dev/shm; off: ranks of one host "
        "exchange messages, as if each were alone on its host."},
       false,
       [](std::string_view text, Environment& e) { return choose(segmentSources, text, e.segments); }},
      {{"TACC_REPRODUCIBLE", "on, off", "off",
        "Reductions of floating-point numbers give the same bits in every run, on any hosts: they combine in the order "
        "of the ranks."},
       true,
       readReproducible},
      {{"TACC_HALF_PARTIAL_SUMS", "on, off", "off",
        "Partial sums of float16 and bfloat16 travel between hosts as 16 bits and are rounded at each hop: half the "
        "bytes of float32."},
       true,
       readHalfPartialSums},
      {{"TACC_TRACE", "the beginning of file names, e.g. /tmp/job", "nothing is written",
        "Writes every communicator's last operations when it ends or fails: FILE.<n>.rank<r>.txt, and .json for "
        "chrome://tracing."},
       false,
       [](std::string_view text, Environment& e) { return !(e.trace = text).empty(); }},
      {{"TACC_SOCKET_IFNAME", "names of network interfaces with commas between, e.g. eth0 or ib0,eth0",
        "all that are up, loopback only if there is no other",
        "The interfaces whose addresses a unique id tells the other hosts, in the order in which they are tried."},
       false,
       readInterfaces},
      {{"TACC_TOPO_FILE", "files that describe the topology, each of any source's kind, with colons between",
        "where the sources look", "Where the topology of the network and of its hosts is described."},
       false,
       readTopologyFiles},
      {{"TACC_TOPO_SOURCE", listOf(topologyWords), "auto",
        "Which source says what the topology is; auto: all, the first of them has the most weight."},
       true,
       readTopologySource},
      {{"TACC_TUNE_FILE", "a file that tacc_tune wrote, or none", "/etc/tacc/tune.toml, ~/.config/tacc/tune.toml",
        "Which algorithms were measured to be the fastest; none: no file is used."},
       false,
       [](std::string_view text, Environment& e) { return !(e.tuningFile = text).empty(); }},
      {{"TACC_RENDEZVOUS", "HOST:PORT of rank 0's host, e.g. node1:29400 or [fd00::2]:29400", "as the launcher says",
        "Where ranks that join with taccCommInitEnv meet; the same on all ranks."},
       false,
       [](std::string_view text, Environment& e) { return !(e.rendezvous = text).empty(); }},
      {{"TACC_JOB_SECRET", "any text that only this job knows", "what the launcher tells its ranks",
        "From which ranks that join with taccCommInitEnv derive their secret; the same on all ranks."},
       false,
       [](std::string_view text, Environment& e) { return !(e.jobSecret = text).empty(); }},
      {{"TACC_JOIN_WIDTH", fmt::format("1 to {}", widestJoin), "32",
        "More ranks than that meet in a tree while they join: hosts connect to rank 0, or to each other, with so many "
        "connections over the network for one rank."},
       false,
       readJoinWidth},
      {{"TACC_PORT_RANGE", "FIRST-LAST of TCP ports, e.g. 29400-29499", "the kernel chooses",
        "At which ports this process listens for other hosts, where a firewall lets only some through."},
       false,
       readPortRange},
      {{"TACC_MPI", std::string(mpi::allowedModes), "on",
        "Whether a preloaded libtacc_mpi takes over MPI's collectives (it reads this itself), and tells of it at the "
        "end."},
       false,
       [](std::string_view text, Environment&) { return mpi::modeIn(text).has_value(); }},
      {{"TACC_MPI_NONBLOCKING", std::string(mpi::allowedNonblocking), "65536",
        "From how many bytes on a preloaded libtacc_mpi takes over MPI's nonblocking and persistent collectives (it "
        "reads "
        "this itself)."},
       false,
       [](std::string_view text, Environment&) { return mpi::nonblockingIn(text).has_value(); }},
      {{"TACC_MPI_CONTEST", std::string(mpi::allowedContest), "100",
        "After how many calls of a kind a preloaded libtacc_mpi measures whether MPI's own are faster, and leaves them "
        "to it where they are (it reads this itself)."},
       false,
       [](std::string_view text, Environment&) { return mpi::contestIn(text).has_value(); }},
  };
  return rows;
}

std::vector<std::string_view> allNames() {
  std::vector<std::string_view> names;
  for (const Row& row : table()) names.push_back(row.variable.name);
  return names;
}

bool isReserved(std::string_view name) {
  const auto any = [](const auto& words, const auto& fits) { return std::any_of(words.begin(), words.end(), fits); };
  return any(reservedPrefixes, [name](std::string_view reserved) { return name.starts_with(reserved); }) ||
         any(moduleSuffixes, [name](std::string_view suffix) { return name.ends_with(suffix); }) ||
         any(centerNames, [name](std::string_view center) { return name == center; });
}

[[noreturn]] void failUnknown(std::string_view name) {
  const std::vector<std::string_view> names = allNames();
  const std::string_view meant = nearest(name, names);
  const std::string hint = meant.empty() ? std::string() : fmt::format("; did you mean {}?", meant);
  fail(taccInvalidArgument, "unknown environment variable {}{} (allowed: {})", name, hint, listOf(names));
}

}  // namespace

std::optional<PortRange> parsePortRange(std::string_view text) {
  constexpr std::int64_t mostPort = 65535;
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = parseInteger(text.substr(0, dash), 1, mostPort);
  const auto last = parseInteger(text.substr(dash + 1), first.value_or(1), mostPort);
  if (!first || !last) return std::nullopt;
  return PortRange{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
}

std::span<const EnvironmentVariable> environmentVariables() {
  static const std::vector<EnvironmentVariable> variables = [] {
    std::vector<EnvironmentVariable> all;
    for (const Row& row : table()) all.push_back(row.variable);
    return all;
  }();
  return variables;
}

Environment parseEnvironment(const char* const* entries) {
  std::vector<std::pair<const Row*, std::string_view>> given;
  for (; entries != nullptr && *entries != nullptr; ++entries) {
    const std::string_view entry = *entries;
    const std::size_t equals = entry.find('=');
    const std::string_view name = entry.substr(0, equals);
    if (equals == std::string_view::npos || !name.starts_with(prefix) || isReserved(name)) continue;
    const auto row = std::find_if(table().begin(), table().end(),
                                  [name](const Row& candidate) { return candidate.variable.name == name; });
    if (row == table().end()) failUnknown(name);
    given.emplace_back(&*row, entry.substr(equals + 1));
  }
  std::sort(given.begin(), given.end());  // rows lie in one vector: the table's order

  Environment environment;
  for (const auto& [row, value] : given) {
    const EnvironmentVariable& variable = row->variable;
    if (!row->read(value, environment)) {
      fail(taccInvalidArgument, "{}=\"{}\" is not valid: allowed are {} (default: {})", variable.name, value,
           variable.allowed, variable.defaultValue);
    }
    if (!row->isAgreed) continue;
    if (!environment.agreed.empty()) environment.agreed += ' ';
    environment.agreed += fmt::format("{}={}", variable.name, value);
  }
  return environment;
}

Environment checkEnvironment() { return parseEnvironment(environ); }

const Environment& processEnvironment() {
  static const Environment environment = checkEnvironment();
  return environment;
}

}  // namespace tacc

#include "core/environment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/instruction_sets.hpp"
#include "core/topology_sources.hpp"
#include "core/transports.hpp"

namespace tacc {
namespace {

Environment parse(std::initializer_list<const char*> list) {
  std::vector<const char*> entries = list;
  entries.push_back(nullptr);
  return parseEnvironment(entries.data());
}

std::string errorOf(const char* entry) {
  try {
    parse({entry});
  } catch (const Error& error) {
    EXPECT_EQ(error.result(), taccInvalidArgument);
    return error.what();
  }
  return "no error";
}

/// The words of a table of core, with a comma and a space behind each.
#define TACC_WORD(name, ...) #name ", "
constexpr const char* isaWords = TACC_INSTRUCTION_SETS(TACC_WORD);
constexpr const char* transportWords = TACC_TRANSPORTS(TACC_WORD);
constexpr const char* topologyWords = TACC_TOPOLOGY_SOURCES(TACC_WORD);
#undef TACC_WORD

std::string allButLastComma(std::string_view words) { return std::string(words.substr(0, words.size() - 2)); }

TEST(Environment, HasDefaults) {
  const Environment environment =
      parse({"PATH=/bin", "HOME=/", "no equals sign", "TACC_WITHOUT_EQUALS", "XTACC_ALGO=1"});
  EXPECT_EQ(environment.algorithm, "");
  EXPECT_EQ(environment.isa, "best");
  EXPECT_EQ(environment.initTimeout, std::nullopt);
  EXPECT_EQ(environment.operationTimeout, std::nullopt);
  EXPECT_EQ(environment.logLevel, LogLevel::none);
  EXPECT_EQ(environment.chunkSize, std::nullopt);
  EXPECT_EQ(environment.cma, CmaMode::automatic);
  EXPECT_EQ(environment.spin, std::nullopt);
  EXPECT_EQ(environment.dynamic, std::nullopt);
  EXPECT_EQ(environment.segments, SegmentSource::memfd);
  EXPECT_EQ(environment.interfaces, "");
  EXPECT_EQ(environment.transport, "");
  EXPECT_EQ(environment.joinWidth, 32);
  EXPECT_EQ(environment.agreed, "");
}

TEST(Environment, ReadsEveryVariable) {
  const std::initializer_list<const char*> entries = {"TACC_TRACE=/tmp/job",
                                                      "TACC_TRANSPORT=ofi",
                                                      "TACC_ENCRYPTION=off",
                                                      "TACC_JOB_SECRET=open sesame",
                                                      "TACC_RENDEZVOUS=node1:29400",
                                                      "TACC_SOCKET_IFNAME=ib0,eth0",
                                                      "TACC_SHM=file",
                                                      "TACC_SPIN=20",
                                                      "TACC_CMA=off",
                                                      "TACC_CHUNK_SIZE=256K",
                                                      "TACC_DEBUG=trace",
                                                      "TACC_TIMEOUT=0",
                                                      "TACC_INIT_TIMEOUT=500ms",
                                                      "TACC_ISA=avx2",
                                                      "TACC_ALGO=ring",
                                                      "TACC_TOPO_FILE=/etc/net.toml:node.xml",
                                                      "TACC_TOPO_SOURCE=slurm",
                                                      "TACC_TUNE_FILE=/etc/tune.toml",
                                                      "TACC_DYNAMIC=off",
                                                      "TACC_REPRODUCIBLE=on",
                                                      "TACC_HALF_PARTIAL_SUMS=on",
                                                      "TACC_JOIN_WIDTH=4",
                                                      "TACC_PORT_RANGE=29400-29499",
                                                      "TACC_MPI=report",
                                                      "TACC_MPI_NONBLOCKING=off",
                                                      "TACC_MPI_CONTEST=10"};
  for (const EnvironmentVariable& variable : environmentVariables()) {
    const std::string begin = std::string(variable.name) + '=';
    EXPECT_TRUE(std::any_of(entries.begin(), entries.end(),
                            [&](const char* entry) { return std::string_view(entry).starts_with(begin); }))
        << variable.name << " wants a value here, and what is read of it below";
  }
  const Environment environment = parse(entries);
  ASSERT_TRUE(environment.portRange);
  EXPECT_EQ(environment.portRange->first, 29400);
  EXPECT_EQ(environment.portRange->last, 29499);
  EXPECT_EQ(environment.portRange->count(), 100U);
  EXPECT_EQ(environment.joinWidth, 4);
  EXPECT_EQ(environment.algorithm, "ring");
  EXPECT_EQ(environment.isa, "avx2");
  EXPECT_DOUBLE_EQ(environment.initTimeout.value(), 0.5);
  EXPECT_DOUBLE_EQ(environment.operationTimeout.value(), 0.0);
  EXPECT_EQ(environment.logLevel, LogLevel::trace);
  EXPECT_EQ(environment.chunkSize, 262'144u);
  EXPECT_EQ(environment.cma, CmaMode::off);
  EXPECT_EQ(environment.spin, 20);
  EXPECT_EQ(environment.segments, SegmentSource::file);
  EXPECT_EQ(environment.trace, "/tmp/job");
  EXPECT_EQ(environment.interfaces, "ib0,eth0");
  EXPECT_EQ(environment.rendezvous, "node1:29400");
  EXPECT_EQ(environment.jobSecret, "open sesame");
  EXPECT_EQ(environment.transport, "ofi");
  EXPECT_EQ(environment.topologyFiles, (std::vector<std::string>{"/etc/net.toml", "node.xml"}));
  EXPECT_EQ(environment.topologySource, "slurm");
  EXPECT_EQ(environment.tuningFile, "/etc/tune.toml");
  EXPECT_EQ(environment.dynamic, false);
  EXPECT_EQ(environment.reproducible, true);
  EXPECT_EQ(environment.halfPartialSums, true);
}

TEST(Environment, AgreedTextDependsOnTheTableOrderOnly) {
  EXPECT_EQ(parse({"TACC_CMA=off", "TACC_DEBUG=none", "TACC_ALGO=ring", "TACC_ISA=scalar"}).agreed,
            "TACC_ALGO=ring TACC_CMA=off");
}

TEST(Environment, LeavesTestsAndBenchmarksTheirOwn) {
  EXPECT_NO_THROW(parse({"TACC_TEST_QUICK=1", "TACC_BENCH_RANK=what ever"}));
}

TEST(Environment, LeavesTheModulesOfACenterOfTheSameNameTheirOwn) {
  EXPECT_NO_THROW(parse({"TACC_SYSTEM=frontera", "TACC_FAMILY_MPI=impi", "TACC_FAMILY_COMPILER_VERSION=19.1.1",
                         "TACC_HDF5_DIR=/opt/apps/hdf5", "TACC_MKL_LIB=/opt/mkl/lib", "TACC_GCC_LIB64=/opt/gcc/lib64",
                         "TACC_VEC_FLAGS=-xCORE-AVX512", "TACC_CC=icx"}));
}

TEST(Environment, UnknownNameSuggestsTheNearest) {
  std::string names;
  for (const EnvironmentVariable& variable : environmentVariables()) names += ", " + std::string(variable.name);
  EXPECT_EQ(
      errorOf("TACC_CHUNKSIZE=1M"),
      "unknown environment variable TACC_CHUNKSIZE; did you mean TACC_CHUNK_SIZE? (allowed: " + names.substr(2) + ")");
  EXPECT_EQ(errorOf("TACC_BENCHMARK=1").substr(0, 53), "unknown environment variable TACC_BENCHMARK (allowed:");
}

TEST(Environment, MalformedValueListsWhatIsAllowed) {
  EXPECT_EQ(errorOf("TACC_ALGO="),
            "TACC_ALGO=\"\" is not valid: allowed are the name of an algorithm (default: chosen by the library)");
  EXPECT_EQ(errorOf("TACC_ISA=avx3"),
            "TACC_ISA=\"avx3\" is not valid: allowed are " + std::string(isaWords) + "best (default: best)");
  EXPECT_EQ(
      errorOf("TACC_INIT_TIMEOUT=soon"),
      "TACC_INIT_TIMEOUT=\"soon\" is not valid: allowed are seconds, e.g. 30, 0.5 or 500ms (default: as configured, "
      "120)");
  EXPECT_EQ(errorOf("TACC_TIMEOUT=-1"),
            "TACC_TIMEOUT=\"-1\" is not valid: allowed are seconds, e.g. 30, 0.5 or 500ms; 0: for ever (default: as "
            "configured, 600)");
  EXPECT_EQ(errorOf("TACC_DEBUG=loud"),
            "TACC_DEBUG=\"loud\" is not valid: allowed are none, warn, info, trace (default: none)");
  EXPECT_EQ(errorOf("TACC_CHUNK_SIZE=4095"),
            "TACC_CHUNK_SIZE=\"4095\" is not valid: allowed are a size of 4K or more, e.g. 256K or 1M (default: 512K, "
            "less for a broadcast or reduce)");
  EXPECT_EQ(errorOf("TACC_CMA=yes"), "TACC_CMA=\"yes\" is not valid: allowed are auto, on, pipes, off (default: auto)");
  EXPECT_EQ(errorOf("TACC_SPIN=-1"),
            "TACC_SPIN=\"-1\" is not valid: allowed are auto, or microseconds from 0 to 1000000 (default: auto)");
  for (const std::string value : {"", ":", "a:", ":a", "a::b"}) {
    EXPECT_EQ(errorOf(("TACC_TOPO_FILE=" + value).c_str()),
              "TACC_TOPO_FILE=\"" + value +
                  "\" is not valid: allowed are files that describe the topology, each of any source's kind, with "
                  "colons between (default: where the sources look)");
  }
  for (const std::string value : {"", "29400", "-", "29400-", "-29400", "2-1", "0-1", "1-65536", "a-b", "1-2-3"}) {
    EXPECT_EQ(
        errorOf(("TACC_PORT_RANGE=" + value).c_str()),
        "TACC_PORT_RANGE=\"" + value +
            "\" is not valid: allowed are FIRST-LAST of TCP ports, e.g. 29400-29499 (default: the kernel chooses)");
  }
  EXPECT_EQ(errorOf("TACC_JOIN_WIDTH=0"), "TACC_JOIN_WIDTH=\"0\" is not valid: allowed are 1 to 65536 (default: 32)");
  EXPECT_EQ(errorOf("TACC_SHM=hugetlb"),
            "TACC_SHM=\"hugetlb\" is not valid: allowed are memfd, file, off (default: memfd)");
  EXPECT_EQ(errorOf("TACC_TRANSPORT=pigeon"), "TACC_TRANSPORT=\"pigeon\" is not valid: allowed are auto, " +
                                                  allButLastComma(transportWords) + " (default: auto)");
  EXPECT_EQ(errorOf("TACC_MPI_NONBLOCKING=1M"),
            "TACC_MPI_NONBLOCKING=\"1M\" is not valid: allowed are a number of bytes, or off (default: 65536)");
  for (const std::string value : {"", "0", "-1", "many"})
    EXPECT_EQ(errorOf(("TACC_MPI_CONTEST=" + value).c_str()),
              "TACC_MPI_CONTEST=\"" + value +
                  "\" is not valid: allowed are a number of calls, 1 or more, or off (default: 100)");
  EXPECT_EQ(errorOf("TACC_TOPO_SOURCE=lldp"), "TACC_TOPO_SOURCE=\"lldp\" is not valid: allowed are auto, " +
                                                  allButLastComma(topologyWords) + " (default: auto)");
}

TEST(Environment, EveryVariableIsDocumentedAndRefusesNonsense) {
  std::set<std::string_view> names;
  for (const EnvironmentVariable& variable : environmentVariables()) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name << " stands twice in the table";
    EXPECT_FALSE(variable.allowed.empty()) << variable.name;
    EXPECT_FALSE(variable.defaultValue.empty()) << variable.name;
    EXPECT_TRUE(variable.documentation.ends_with('.')) << variable.name;
    EXPECT_THROW(parse({(std::string(variable.name) + '=').c_str()}), Error) << variable.name;
  }
}

TEST(Environment, CheckSeesTheProcessAsItIsNow) {
  ASSERT_EQ(setenv("TACC_ALGO", "ring", 1), 0);
  EXPECT_EQ(checkEnvironment().algorithm, "ring");
  ASSERT_EQ(setenv("TACC_ALGO_RITHM", "ring", 1), 0);
  EXPECT_THROW(checkEnvironment(), Error);
  ASSERT_EQ(unsetenv("TACC_ALGO_RITHM"), 0);
  ASSERT_EQ(unsetenv("TACC_ALGO"), 0);
  EXPECT_EQ(checkEnvironment().algorithm, "");
}

TEST(Environment, ProcessEnvironmentStaysAsItWas) {
  const Environment before = processEnvironment();
  ASSERT_EQ(setenv("TACC_CMA", before.cma == CmaMode::off ? "on" : "off", 1), 0);
  EXPECT_EQ(processEnvironment().cma, before.cma);
  ASSERT_EQ(unsetenv("TACC_CMA"), 0);
}

}  // namespace
}  // namespace tacc

// The TACC_* environment variables: one table of all of them (environment.cpp), read into one typed struct. A variable
// that is not in the table, or a value that does not fit, is an error: a misspelt setting that is silently ignored
// costs days.
//
// To add a variable: a member here and a row in the table there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.hpp"

namespace tacc {

enum class CmaMode : std::uint8_t { automatic, on, pipes, off };
enum class SegmentSource : std::uint8_t { memfd, file, off };

/// TCP ports from first to last, both included.
struct PortRange {
  std::uint16_t first;
  std::uint16_t last;

  unsigned count() const noexcept { return last - first + 1U; }
};

/// "29400-29499"; nothing where it is no range of ports from 1 to 65535.
std::optional<PortRange> parsePortRange(std::string_view text);

/// All settings, with their defaults. An empty optional means: not set, the library or the configuration decides.
struct Environment {
  std::string algorithm;             // TACC_ALGO; empty: chosen by the library. Not checked against the registry here
  std::string isa = "best";          // TACC_ISA; one of the names that are allowed, on any CPU
  std::optional<bool> reproducible;  // TACC_REPRODUCIBLE; set: stronger than taccConfig_t
  std::optional<bool> halfPartialSums;            // TACC_HALF_PARTIAL_SUMS; likewise
  std::optional<double> initTimeout;              // TACC_INIT_TIMEOUT, seconds; set: stronger than taccConfig_t
  std::optional<double> operationTimeout;         // TACC_TIMEOUT, seconds, 0: for ever; set: stronger than taccConfig_t
  LogLevel logLevel = LogLevel::none;             // TACC_DEBUG
  std::optional<std::size_t> chunkSize;           // TACC_CHUNK_SIZE, bytes of a rank's staging chunk
  CmaMode cma = CmaMode::automatic;               // TACC_CMA
  std::optional<bool> dynamic;                    // TACC_DYNAMIC; set: stronger than taccConfig_t
  std::optional<int> spin;                        // TACC_SPIN, microseconds of spinning before a waiting rank yields
  SegmentSource segments = SegmentSource::memfd;  // TACC_SHM; off: every rank counts as one host
  bool encryption = false;                        // TACC_ENCRYPTION
  std::string transport;                          // TACC_TRANSPORT; empty: the first that works on all ranks
  std::string interfaces;              // TACC_SOCKET_IFNAME, names with commas between; empty: chosen by the library
  std::string trace;                   // TACC_TRACE, a file name; empty: nothing is written
  std::string rendezvous;              // TACC_RENDEZVOUS, HOST:PORT; empty: as the launcher says
  std::string jobSecret;               // TACC_JOB_SECRET; never in messages
  int joinWidth = 32;                  // TACC_JOIN_WIDTH
  std::optional<PortRange> portRange;  // TACC_PORT_RANGE; not set: the kernel chooses

  std::vector<std::string> topologyFiles;  // TACC_TOPO_FILE; empty: where the sources look
  std::string topologySource;              // TACC_TOPO_SOURCE; empty: all of them
  std::string tuningFile;                  // TACC_TUNE_FILE; empty: where one is looked for; "none": no file is used

  /// "TACC_ALGO=ring TACC_CMA=off": the set variables that must be equal on all ranks, in the table's order, for the
  /// agreement at the start of a communicator. Empty when none is set.
  std::string agreed;
};

/// What the documentation and messages say about a variable.
struct EnvironmentVariable {
  std::string_view name;
  std::string allowed;             // e.g. "none, warn, info, trace"
  std::string_view defaultValue;   // in words where it is no value
  std::string_view documentation;  // one sentence
};

/// All variables, in the order in which they are documented.
std::span<const EnvironmentVariable> environmentVariables();

/// Reads "NAME=value" entries, ended by a null pointer, as `environ` is, which is null itself after clearenv(). Names
/// without the prefix TACC_ are ignored, and so are TACC_TEST_* and TACC_BENCH_*. Throws Error (taccInvalidArgument)
/// that lists what is allowed.
Environment parseEnvironment(const char* const* entries);

/// The process's environment as it is now. Every communicator starts with it and keeps what it returns.
Environment checkEnvironment();

/// The process's environment as it was at the first call: for what is decided once per process (TACC_ISA, TACC_SHM).
/// Throws like checkEnvironment() until one call has succeeded. Thread safe.
const Environment& processEnvironment();

}  // namespace tacc

// What launchers of parallel programs tell a process by its environment: who it is, and where the ranks can meet.
//
// One table of launchers (launch_environment.cpp). Everything here is a pure function of the variables; what needs the
// system is done in launch_id.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacc {

using Variables = std::map<std::string, std::string, std::less<>>;

/// Where the ranks of a job are, as far as the launcher tells.
enum class Spread : std::uint8_t { unknown, oneHost, severalHosts };

/// The store of a launcher's process manager, in which ranks can leave words for each other.
enum class Store : std::uint8_t { none, pmi, pmix };

/// Where rank 0 listens.
struct MeetingPoint {
  std::string host;  // name or address; empty: none is known
  std::uint16_t port = 0;
  std::string source;  // the variable that says so, for messages
};

/// One process's part in a job. Everything but `rank` is equal on all ranks.
struct Launch {
  std::string launcher;  // e.g. "torchrun"
  int rank = 0;
  int ranks = 1;
  Spread spread = Spread::unknown;
  MeetingPoint meeting;          // none needed where spread is oneHost
  Store store = Store::none;     // through which rank 0 says where it is met, as nobody else does
  std::vector<std::string> key;  // "NAME=value": what tells this job from others
  bool isKeySecret = false;      // the key holds something random that only the job's processes know
  bool needsManager = false;  // the key lacks the number of the process manager's process, which is equal on one host
};

/// A launcher, for messages and documentation.
struct LauncherInfo {
  std::string_view name;
  std::string_view looksFor;  // the variables that must be there
};

/// All that are known, in the order in which they are tried: an inner launcher (torchrun under srun) before an outer.
std::span<const LauncherInfo> launchers();

/// Whether one of them started this process; its variables may still be incomplete.
bool isLaunched(const Variables& variables);

/// Which process of a job one is.
struct LaunchPlace {
  std::string_view launcher;
  int rank;
  int ranks;
};

/// What the launcher says of that alone. Throws taccInvalidUsage that lists what was looked for and what was found.
LaunchPlace readPlace(const Variables& variables);

/// Finds the launcher and reads what it says. `rendezvous` is TACC_RENDEZVOUS (HOST:PORT, or empty), which is stronger
/// than the launcher's address. Throws taccInvalidUsage that lists what was looked for and what was found.
Launch readLaunch(const Variables& variables, std::string_view rendezvous);

/// "HOST:PORT" or "[ADDRESS]:PORT" in its parts; host empty when it is no such thing.
MeetingPoint parseMeetingPoint(std::string_view text);

/// The first host of a list as Slurm writes it: "node[07-09,12],gpu1" begins with node07. Empty when it is none.
std::string firstHostOf(std::string_view list);

}  // namespace tacc

#include "comm/launch/launch_environment.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "core/environment.hpp"
#include "core/error.hpp"
#include "core/parse.hpp"

namespace tacc {
namespace {

constexpr int portLimit = 65535;
/// 128 random bits.
constexpr std::string_view randomKeyOfOpenMpi = "OMPI_MCA_orte_precondition_transports";

using Names = std::vector<std::string_view>;

/// The first of `names` that is set, and its value.
struct Found {
  std::string_view name;
  std::string_view value;
};
std::optional<Found> find(const Variables& variables, const Names& names) {
  for (const std::string_view name : names) {
    const auto found = variables.find(name);
    if (found != variables.end() && !found->second.empty()) return Found{name, found->second};
  }
  return std::nullopt;
}

/// One kind of launcher. Where several names stand, the first that is set counts.
struct Launcher {
  std::string_view name;
  std::string_view looksFor;
  Names marks;                                                 // all set: it is this launcher
  Names rank;                                                  // of this process
  Names ranks;                                                 // of the job
  Names localRanks;                                            // ranks on this host
  Names hosts = {};                                            // hosts of the job
  Names key = {};                                              // those that are set tell this job from others
  bool needsKey = false;                                       // at least one of them must be
  MeetingPoint (*meet)(const Variables& variables) = nullptr;  // null: it gives no address
  bool hasManager = false;                                     // one process on each host starts all ranks there
  Store store = Store::none;                                   // that it keeps for its ranks,
  Names storeMarks = {};                                       // where all of these are set
};

std::uint32_t hashOf(std::string_view text) {
  std::uint32_t hash = 2166136261u;  // FNV-1a: equal on every host
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

/// The port of the range that this text stands for.
std::uint16_t portIn(const PortRange& range, std::string_view text) {
  return static_cast<std::uint16_t>(range.first + hashOf(text) % range.count());
}

/// TACC_PORT_RANGE, the same on all ranks where rank 0 has to listen at one of these. What is no range is an error
/// elsewhere.
std::optional<PortRange> allowedPorts(const Variables& variables) {
  const auto text = find(variables, {"TACC_PORT_RANGE"});
  return text ? parsePortRange(text->value) : std::nullopt;
}

/// MASTER_PORT itself belongs to the store of torch: the port is 1000 above, or below where there is none above; or of
/// the ports that are allowed.
MeetingPoint meetAtMaster(const Variables& variables) {
  const auto host = find(variables, {"MASTER_ADDR"});
  const auto text = find(variables, {"MASTER_PORT"});
  if (!host || !text) return {};
  const auto port = parseInteger(text->value, 1, portLimit);
  if (!port) fail(taccInvalidUsage, "MASTER_PORT=\"{}\" is no port: it must be 1 to {}", text->value, portLimit);
  if (const auto range = allowedPorts(variables)) {
    return {std::string(host->value), portIn(*range, text->value), "MASTER_ADDR, MASTER_PORT and TACC_PORT_RANGE"};
  }
  constexpr int distance = 1000;
  const std::int64_t chosen = *port + distance <= portLimit ? *port + distance : *port - distance;
  return {std::string(host->value), static_cast<std::uint16_t>(chosen), "MASTER_ADDR and MASTER_PORT"};
}

/// Task 0 runs on the first host of the step, and no port is given: one below those of outgoing connections is chosen
/// from the numbers of job, step and restart.
MeetingPoint meetAtFirstNode(const Variables& variables) {
  const auto list = find(variables, {"SLURM_STEP_NODELIST"});
  const auto job = find(variables, {"SLURM_JOB_ID", "SLURM_JOBID"});
  const auto step = find(variables, {"SLURM_STEP_ID", "SLURM_STEPID"});
  if (!list || !job || !step) return {};
  const PortRange range = allowedPorts(variables).value_or(PortRange{15000, 29999});
  // A job that is requeued keeps its number, and processes of the run before may still have the port.
  const auto restart = find(variables, {"SLURM_RESTART_COUNT"});
  const std::string key = fmt::format("{}.{}.{}", job->value, step->value, restart ? restart->value : "0");
  return {firstHostOf(list->value), portIn(range, key), "SLURM_STEP_NODELIST"};
}

const std::vector<Launcher>& launcherRows() {
  static const std::vector<Launcher> rows = {
      {.name = "torchrun",
       .looksFor = "RANK, WORLD_SIZE, and MASTER_ADDR with MASTER_PORT",
       .marks = {"RANK", "WORLD_SIZE"},
       .rank = {"RANK"},
       .ranks = {"WORLD_SIZE"},
       .localRanks = {"LOCAL_WORLD_SIZE"},
       .key = {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"},
       .meet = meetAtMaster},
      {.name = "Open MPI",
       .looksFor = "OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE",
       .marks = {"OMPI_COMM_WORLD_RANK"},
       .rank = {"OMPI_COMM_WORLD_RANK"},
       .ranks = {"OMPI_COMM_WORLD_SIZE"},
       .localRanks = {"OMPI_COMM_WORLD_LOCAL_SIZE"},
       .key = {randomKeyOfOpenMpi, "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"},
       .needsKey = true,
       .store = Store::pmix,
       .storeMarks = {"PMIX_NAMESPACE", "PMIX_RANK"}},
      {.name = "jsrun",
       .looksFor = "JSM_NAMESPACE_RANK, JSM_NAMESPACE_SIZE",
       .marks = {"JSM_NAMESPACE_RANK"},
       .rank = {"JSM_NAMESPACE_RANK"},
       .ranks = {"JSM_NAMESPACE_SIZE"},
       .localRanks = {"JSM_NAMESPACE_LOCAL_SIZE"},
       .key = {"PMIX_NAMESPACE", "LSB_JOBID"},
       .needsKey = true,
       .store = Store::pmix,
       .storeMarks = {"PMIX_NAMESPACE", "PMIX_RANK"}},
      {.name = "mpirun_rsh",
       .looksFor = "MV2_COMM_WORLD_RANK, MV2_COMM_WORLD_SIZE, and TACC_RENDEZVOUS",
       .marks = {"MV2_COMM_WORLD_RANK", "MPIRUN_ID"},
       .rank = {"MV2_COMM_WORLD_RANK"},
       .ranks = {"MV2_COMM_WORLD_SIZE"},
       .localRanks = {"MV2_COMM_WORLD_LOCAL_SIZE"},
       .key = {"MPIRUN_ID"},
       .needsKey = true},
      {.name = "PALS",
       .looksFor = "PALS_RANKID, PMI_SIZE, and TACC_RENDEZVOUS",
       .marks = {"PALS_RANKID", "PALS_APID"},
       .rank = {"PALS_RANKID"},
       .ranks = {"PMI_SIZE"},
       .localRanks = {"PMI_LOCAL_SIZE"},
       .key = {"PALS_APID"},
       .needsKey = true},
      {.name = "Hydra",
       .looksFor = "PMI_RANK, PMI_SIZE, MPI_LOCALNRANKS",
       .marks = {"PMI_RANK", "MPI_LOCALNRANKS"},
       .rank = {"PMI_RANK"},
       .ranks = {"PMI_SIZE"},
       .localRanks = {"MPI_LOCALNRANKS"},
       .hasManager = true,
       .store = Store::pmi,
       .storeMarks = {"PMI_FD"}},
      {.name = "Slurm",
       .looksFor = "SLURM_PROCID, SLURM_STEP_ID, SLURM_NTASKS, SLURM_JOB_ID, and SLURM_STEP_NODELIST",
       .marks = {"SLURM_PROCID", "SLURM_STEP_ID"},
       .rank = {"SLURM_PROCID"},
       .ranks = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
       .localRanks = {},
       .hosts = {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"},
       .key = {"SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"},
       .needsKey = true,
       .meet = meetAtFirstNode},
      {.name = "another PMI",
       .looksFor = "PMI_RANK, PMI_SIZE, and TACC_RENDEZVOUS",
       .marks = {"PMI_RANK"},
       .rank = {"PMI_RANK"},
       .ranks = {"PMI_SIZE"},
       .localRanks = {},
       .key = {"PMI_JOBID"},
       .store = Store::pmi,
       .storeMarks = {"PMI_FD"}},
  };
  return rows;
}

std::vector<Launcher>::const_iterator launcherOf(const Variables& variables) {
  return std::ranges::find_if(launcherRows(), [&](const Launcher& candidate) {
    return std::ranges::all_of(candidate.marks,
                               [&](std::string_view name) { return find(variables, {name}).has_value(); });
  });
}

/// "RANK=3, WORLD_SIZE not set".
std::string describe(const Variables& variables, const Names& names) {
  std::string text;
  for (const std::string_view name : names) {
    const auto found = variables.find(name);
    if (!text.empty()) text += ", ";
    text += found == variables.end() ? fmt::format("{} not set", name) : fmt::format("{}={}", name, found->second);
  }
  return text;
}

[[noreturn]] void failUnknown(const Variables& variables) {
  std::string looked;
  Names seen;
  for (const Launcher& launcher : launcherRows()) {
    looked += fmt::format("{}{} ({})", looked.empty() ? "" : "; ", launcher.name, launcher.looksFor);
    for (const Names* names : {&launcher.marks, &launcher.rank, &launcher.ranks}) {
      for (const std::string_view name : *names) {
        if (find(variables, {name}) && std::ranges::count(seen, name) == 0) seen.push_back(name);
      }
    }
  }
  fail(taccInvalidUsage,
       "this process was not started by a launcher that tacc knows, or its variables are not complete. Looked for: {}. "
       "Found: {}. Without a launcher use taccCommInitRank, or set RANK, WORLD_SIZE and TACC_RENDEZVOUS=HOST:PORT on "
       "every rank",
       looked, seen.empty() ? "none of them" : describe(variables, seen));
}

int readNumber(const Variables& variables, const Launcher& launcher, const Names& names, int least, int most) {
  const auto found = find(variables, names);
  if (!found) {
    fail(taccInvalidUsage, "{} ({}) started this process, but its environment is not complete: {}", launcher.name,
         describe(variables, launcher.marks), describe(variables, names));
  }
  const auto number = parseInteger(found->value, least, most);
  if (!number) {
    fail(taccInvalidUsage, "{}: {}=\"{}\" cannot be: it must be a number from {} to {}", launcher.name, found->name,
         found->value, least, most);
  }
  return static_cast<int>(*number);
}

Spread readSpread(const Variables& variables, const Launcher& launcher, int ranks) {
  constexpr int mostHosts = 1 << 20;
  if (find(variables, launcher.localRanks)) {
    const int here = readNumber(variables, launcher, launcher.localRanks, 1, ranks);
    return here == ranks ? Spread::oneHost : Spread::severalHosts;
  }
  if (find(variables, launcher.hosts)) {
    const int hosts = readNumber(variables, launcher, launcher.hosts, 1, mostHosts);
    return hosts == 1 ? Spread::oneHost : Spread::severalHosts;
  }
  return ranks == 1 ? Spread::oneHost : Spread::unknown;
}

MeetingPoint readMeeting(const Variables& variables, const Launcher& launcher, std::string_view rendezvous) {
  if (!rendezvous.empty()) {
    MeetingPoint given = parseMeetingPoint(rendezvous);
    if (given.host.empty()) {
      fail(taccInvalidUsage, "TACC_RENDEZVOUS=\"{}\" is not HOST:PORT, as in node1:29400 or [fd00::2]:29400",
           rendezvous);
    }
    given.source = "TACC_RENDEZVOUS";
    return given;
  }
  return launcher.meet != nullptr ? launcher.meet(variables) : MeetingPoint{};
}

}  // namespace

std::span<const LauncherInfo> launchers() {
  static const std::vector<LauncherInfo> infos = [] {
    std::vector<LauncherInfo> all;
    for (const Launcher& launcher : launcherRows()) all.push_back({launcher.name, launcher.looksFor});
    return all;
  }();
  return infos;
}

bool isLaunched(const Variables& variables) { return launcherOf(variables) != launcherRows().end(); }

LaunchPlace readPlace(const Variables& variables) {
  const auto row = launcherOf(variables);
  if (row == launcherRows().end()) failUnknown(variables);
  constexpr int mostRanks = 65536;
  const int ranks = readNumber(variables, *row, row->ranks, 1, mostRanks);
  return {row->name, readNumber(variables, *row, row->rank, 0, ranks - 1), ranks};
}

Launch readLaunch(const Variables& variables, std::string_view rendezvous) {
  const LaunchPlace place = readPlace(variables);
  const Launcher& launcher = *launcherOf(variables);
  Launch launch;
  launch.launcher = place.launcher;
  launch.rank = place.rank;
  launch.ranks = place.ranks;
  launch.spread = readSpread(variables, launcher, launch.ranks);
  launch.meeting = readMeeting(variables, launcher, rendezvous);
  for (const std::string_view name : launcher.key) {
    if (const auto found = find(variables, {name})) launch.key.push_back(fmt::format("{}={}", name, found->value));
  }
  launch.isKeySecret = launcher.name == "Open MPI" && find(variables, {randomKeyOfOpenMpi}).has_value();
  launch.needsManager = launcher.hasManager && launch.spread == Spread::oneHost;
  const bool hasMeeting = !launch.meeting.host.empty();
  const bool hasStore = launcher.store != Store::none &&
                        std::ranges::all_of(launcher.storeMarks,
                                            [&](std::string_view name) { return find(variables, {name}).has_value(); });
  if (launch.spread != Spread::oneHost && !hasMeeting && hasStore) {
    launch.store = launcher.store;
  } else if (launch.spread != Spread::oneHost && !hasMeeting) {
    fail(taccInvalidUsage,
         "{} gives rank {} of {} no address at which ranks of several hosts can meet (looked for: {}): set "
         "TACC_RENDEZVOUS=HOST:PORT to rank 0's host and a free port of it, the same on every rank",
         launch.launcher, launch.rank, launch.ranks, launcher.looksFor);
  }
  if (launcher.needsKey && launch.key.empty() && rendezvous.empty()) {
    fail(taccInvalidUsage, "{} does not say which job this is ({}): set TACC_RENDEZVOUS=HOST:PORT on every rank",
         launch.launcher, describe(variables, launcher.key));
  }
  return launch;
}

MeetingPoint parseMeetingPoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {};
  std::string_view host = text.substr(0, colon);
  const auto port = parseInteger(text.substr(colon + 1), 1, portLimit);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return {};  // an address of version 6 without brackets: its end could be the port
  }
  if (host.empty() || !port || host.find_first_of(" []/") != std::string_view::npos) return {};
  return {std::string(host), static_cast<std::uint16_t>(*port), ""};
}

std::string firstHostOf(std::string_view list) {
  const std::size_t bracket = list.find('[');
  const std::size_t comma = list.find(',');
  if (comma < bracket) return std::string(list.substr(0, comma));
  if (bracket == std::string_view::npos) return std::string(list);
  const std::size_t end = list.find(']', bracket);
  if (end == std::string_view::npos) return "";
  const std::string_view numbers = list.substr(bracket + 1, end - bracket - 1);
  const std::string_view first = numbers.substr(0, numbers.find_first_of("-,"));
  const std::string_view rest = list.substr(end + 1);
  // More brackets may follow in the same name ("rack[1-2]n[1-4]").
  const std::string tail = rest.empty() || rest.front() == ',' ? "" : firstHostOf(rest);
  return fmt::format("{}{}{}", list.substr(0, bracket), first, tail);
}

}  // namespace tacc
